"""What goes wrong in the worker, as failures: the user's own traceback, or a finished message. Runs in the worker."""

import os
import traceback

import thunder
import thunder_cli
from thunder_cli.errors import CommandError, Exit
from thunder_cli.events import Failure

KIND_OF = {Exit.USAGE: "usage", Exit.PROGRAM: "program", Exit.OURS: "ours"}
_OURS = tuple(os.path.dirname(os.path.abspath(m.__file__)) + os.sep for m in (thunder, thunder_cli))


def is_ours(filename: str) -> bool:
    """Whether a frame of this file is thunder's and not the user's."""
    return filename.startswith(("<thunder ", "<frozen ", *_OURS))


def user_traceback(error: BaseException) -> str:
    """The traceback that Python prints, without frames of ours; torch's innermost ones go as well."""
    report = traceback.TracebackException.from_exception(error)
    _trim(report)
    return "".join(report.format()).rstrip("\n")


def _trim(report: traceback.TracebackException | None) -> None:
    if report is None:
        return
    frames = [frame for frame in report.stack if not is_ours(frame.filename)]
    users = [i for i, frame in enumerate(frames) if not _is_torch(frame.filename)]
    report.stack = traceback.StackSummary.from_list(frames[: users[-1] + 1] if users else [])
    _trim(report.__cause__)
    _trim(report.__context__)


def _is_torch(filename: str) -> bool:
    import torch

    return filename.startswith(os.path.dirname(torch.__file__) + os.sep)


def user_line(error: BaseException) -> str:
    """`script.py:7`: the innermost line of the user's that was running, or nothing."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not is_ours(f.filename)]
    frames = [f for f in frames if not _is_torch(f.filename)]
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def program_failure(error: Exception) -> Failure:
    """The user's program raised."""
    where = user_line(error)
    lines = traceback.format_exception_only(error)  # of a syntax error the source first; notes last
    summary = next((line for line in lines if not line.startswith(" ")), lines[-1]).strip().partition("\n")[0]
    return Failure("program", f"{where + ': ' if where else ''}{summary}\n{user_traceback(error)}")


def command_failure(error: CommandError) -> Failure:
    return Failure(KIND_OF[error.code], str(error))


def our_failure(error: BaseException, doing: str) -> Failure:
    """Thunder itself failed while `doing`."""
    message = (
        f"thunder failed while {doing}: {type(error).__name__}: {error}\nThis is a bug in thunder; -v prints where."
    )
    return Failure("ours", message, "".join(traceback.format_exception(error)))
