"""The script that runs one fusion alone, with nothing but torch and nvFuser."""

import torch

from thunder.executors.nvfuserex import version
from thunder.executors.nvfuserex.facts import TensorFacts
from thunder.executors.nvfuserex.fusion import Fusion


def versions() -> str:
    """The comments at the head of a script: what it was made on."""
    devices = [f"#  {i}: {torch.cuda.get_device_name(i)}\n" for i in range(torch.cuda.device_count())]
    return (
        f"# CUDA devices:\n{''.join(devices)}"
        f"# torch version: {torch.__version__}\n"
        f"# cuda version: {torch.version.cuda}\n"
        f"# nvfuser version: {version.version()}\n"
    )


def script(fusion: Fusion) -> str:
    """A Python program that defines `fusion` and runs it on inputs like its last ones, of other values.

    The same text for the same fusion on every machine. Numbers are exact, unlike those of nvFuser's own text.
    """
    inputs = "".join(f"    {_expression(facts)},\n" for facts in fusion.inputs)
    return (
        "import torch\n"
        f"from {version.MODULE} import FusionDefinition, DataType\n"
        "\n"
        f"{fusion.definition.exact()}"
        "\n"
        "with FusionDefinition() as fd:\n"
        "    nvfuser_fusion(fd)\n"
        "\n"
        f"inputs = [\n{inputs}]\n"
        "fd.execute(inputs)\n"
    )


def _expression(facts: TensorFacts) -> str:
    elements = 1 + sum((size - 1) * stride for size, stride in zip(facts.shape, facts.strides))
    where = f"dtype={facts.dtype}, device='{facts.device}'"
    if facts.dtype.is_floating_point:
        memory = f"torch.randn(({elements},), {where})"
    else:
        memory = f"torch.randint(0, {2 if facts.dtype is torch.bool else 10}, ({elements},), {where})"
    return f"{memory}.as_strided({facts.shape}, {facts.strides})"
