"""Runs a Python program on a virtual device: `python -m thunder.virtual_cuda [--chip h100] [--devices 2] script.py`.

The first process only prepares the environment; it then becomes the one that runs the program.
"""

import argparse
import os
import runpy
import sys

from thunder.virtual_cuda import CHIPS, UnknownChip, VirtualDeviceError, activate, environment
from thunder.virtual_cuda.launcher import CHIP_VARIABLE

_PREPARED = "THUNDER_VIRTUAL_CUDA_PREPARED"


def main(arguments: list[str]) -> None:
    """Run the program that the command line names."""
    options = _parser().parse_args(arguments)
    if os.environ.get(_PREPARED) != str(os.getpid()):
        _restart(options, arguments)
    del os.environ[_PREPARED]
    activate()
    _run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m thunder.virtual_cuda", description="Run a Python program on a virtual CUDA device."
    )
    chip = os.environ.get(CHIP_VARIABLE, "h100")
    parser.add_argument("--chip", default=chip, help=f"one of {', '.join(CHIPS)} ({chip})")
    parser.add_argument("--devices", type=int, default=1, help="how many devices of that chip (1)")
    parser.add_argument("-c", dest="code", help="run this code", metavar="CODE", nargs=argparse.REMAINDER)
    parser.add_argument("-m", dest="module", help="run this module", metavar="MODULE", nargs=argparse.REMAINDER)
    parser.add_argument("script", nargs=argparse.REMAINDER, help="the script, and its arguments")
    return parser


def _restart(options: argparse.Namespace, arguments: list[str]) -> None:
    """Become a process that starts with the virtual device's environment. An exec keeps the process's id."""
    if not (options.code or options.module or options.script):
        _parser().error("name a script, or give -m MODULE or -c CODE")
    try:
        variables = environment(options.chip, options.devices)
    except (UnknownChip, VirtualDeviceError) as error:
        _parser().exit(2, f"thunder: {error}\n")
    variables[_PREPARED] = str(os.getpid())
    interpreter = [sys.executable, *_interpreter_options(), "-m", "thunder.virtual_cuda"]
    os.execve(sys.executable, interpreter + arguments, variables)


def _interpreter_options() -> list[str]:
    """The options Python itself was started with: `-X dev`, `-W error`."""
    import subprocess

    return subprocess._args_from_interpreter_flags()


def _run(options: argparse.Namespace) -> None:
    if options.code:
        sys.argv = ["-c", *options.code[1:]]
        sys.path[0] = ""
        exec(compile(options.code[0], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
    elif options.module:
        sys.argv = options.module
        sys.path[0] = os.getcwd()
        runpy.run_module(options.module[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = options.script
        sys.path[0] = os.path.dirname(os.path.abspath(options.script[0]))
        runpy.run_path(options.script[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
