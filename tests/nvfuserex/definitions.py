"""The golden file of definitions: nvFuser's own text for every region. Run this, with nvFuser, to write it anew."""

from pathlib import Path

from regions import Region, regions

from thunder.executors.nvfuserex.backends import nvfuser_definition
from thunder.executors.nvfuserex.definition import Definition
from thunder.executors.nvfuserex.layout import Layout
from thunder.executors.nvfuserex.translate import translate

GOLDEN = Path(__file__).parent / "golden" / "definitions.txt"


def definition(region: Region) -> Definition:
    """What a region translates to."""
    calls, inputs, outputs = region.record()
    return translate(calls, inputs, outputs, [Layout.of(x.shape, x.strides) for x in inputs])


def read() -> dict[str, str]:
    """The golden definitions by the names of their regions."""
    parts = GOLDEN.read_text().split("# region ")[1:]
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}


if __name__ == "__main__":
    texts = {name: repr(nvfuser_definition(definition(region))) for name, region in regions.items()}
    GOLDEN.write_text("".join(f"# region {name}\n{text}" for name, text in texts.items()))
