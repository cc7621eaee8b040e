"""Which frames an error shows that leaves a jitted callable: the user's."""

import os
from types import TracebackType

import torch

import thunder
from thunder.core.errors import ThunderError
from thunder.frontend import tracing

_OURS = os.path.dirname(os.path.abspath(thunder.__file__)) + os.sep
_TORCHS = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def hide_internal_frames(error: BaseException) -> None:
    """Take our frames, and while tracing torch's, off the tracebacks of an error and of those it came from.

    An error among none of the user's frames is a defect of ours, and keeps its traceback.
    """
    shown = _users_entries(error.__traceback__)
    if not shown and not isinstance(error, ThunderError):
        return
    error.__traceback__ = _chained(shown)
    for link in ("__cause__", "__context__"):
        earlier = getattr(error, link)
        if earlier is None:
            continue
        if earlier.__traceback__ is not None and not _users_entries(earlier.__traceback__):
            setattr(error, link, None)  # raised and caught among our own
        else:
            hide_internal_frames(earlier)


def _users_entries(entry: TracebackType | None) -> list[TracebackType]:
    entries = []
    is_traced = False
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        is_traced = is_traced or file == tracing.__file__
        if not file.startswith(_OURS) and not (is_traced and file.startswith(_TORCHS)):
            entries.append(entry)
        entry = entry.tb_next
    return entries


def _chained(entries: list[TracebackType]) -> TracebackType | None:
    chain = None
    for entry in reversed(entries):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chain
