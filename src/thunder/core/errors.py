"""Errors that are the user's matter. Their message is complete: the user's line, what happened, the way out."""

from thunder.core.symbol import SourceLine


class ThunderError(RuntimeError):
    """Base class of what `thunder.jit` raises about a user's program.

    Args:
        what: what happened, one sentence.
        way_out: what to do, one sentence.
        source: the user's line at which it happened.
    """

    def __init__(self, what: str, way_out: str, source: SourceLine | None = None):
        self.what, self.way_out, self.source = what, way_out, source
        where = f"{source.path}:{source.line}  {source.text.strip()}\n" if source else ""
        super().__init__(f"{where}{what}\n{way_out}")


class ValueChanged(Exception):
    """A compiled program met a value that its trace did not see: another specialization must run.

    Nothing has been written yet when this is raised.
    """

    def __init__(self, expected: object, now: object):
        self.expected, self.now = expected, now
        super().__init__(f"{expected} -> {now}")


class SharpEdgeError(ThunderError):
    """The program read something that cannot be guarded, or had an effect, and was jitted with sharp_edges="error"."""


class NotRepresentable(BaseException):
    """The program does something that no trace can stand for; run plainly, it works.

    No `Exception`: it goes through the program, which must not catch it. Arguments as those of `ThunderError`.

    Args:
        once: whether another call may well be compiled.
    """

    def __init__(self, what: str, way_out: str, source: SourceLine | None = None, *, once: bool = False):
        self.error, self.once = ThunderError(what, way_out, source), once
        super().__init__(str(self.error))


class UnsupportedError(ThunderError, NotImplementedError):
    """The program does something that thunder cannot trace."""


class NumbersMustBeConstant(BaseException):
    """The program does with a number what only a Python number can do: it is traced again, with constants.

    No `Exception`: it goes through the program.
    """
