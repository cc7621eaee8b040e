"""What torch and nvFuser say about themselves, as a line of JSON: a process of its own, for `thunder doctor`."""

import json
import sys


def main() -> None:
    virtual = sys.argv[1:] == ["virtual"]
    import torch

    if virtual:
        import thunder.virtual_cuda

        thunder.virtual_cuda.activate()
    from thunder.executors.nvfuserex.backends import backend
    from thunder.executors.nvfuserex.version import INSTALL, installed, version
    from thunder_cli.commands.doctor import finding

    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU build"
    chosen = backend()
    made = (torch.full((2,), 2.0, device="cuda") * 3).tolist()
    findings = [
        finding("torch", True, f"{torch.__version__} ({build})"),
        finding("nvFuser", installed() or None, version(), INSTALL),
        finding("device", made == [6.0, 6.0], torch.cuda.get_device_name(), "its values are wrong"),
        finding("backend", True, f"{chosen.name}: {chosen.reason}"),
    ]
    print(json.dumps(findings))


if __name__ == "__main__":
    main()
