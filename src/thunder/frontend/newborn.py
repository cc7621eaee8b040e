"""Which objects a program makes while it is traced. The garbage collector knows: they are its youngest generation."""

import gc
import threading
from itertools import chain

_lock = threading.Lock()
_inside = 0  # contexts that are entered, in all threads
_was_enabled = True


class Newborn:
    """Inside the context, keeps the objects that are made apart from those that were there before.

    What other threads make meanwhile is taken for made here; what is made here may be missed if another one enters.
    """

    def __enter__(self) -> "Newborn":
        global _inside, _was_enabled
        with _lock:
            if _inside == 0:
                _was_enabled = gc.isenabled()
                gc.disable()  # a collection would move what is made to an older generation
            _inside += 1
            gc.collect(0)
        return self

    def __exit__(self, *exc: object) -> None:
        global _inside
        with _lock:
            _inside -= 1
            if _inside == 0 and _was_enabled:
                gc.enable()

    def known(self) -> "Objects":
        """The objects that were made; to be asked for inside the context. Those without references are not there."""
        # Another thread that meets references to a tuple that it has not finished fails. So this is one call into C,
        # and calls nothing that auditing hooks hear of, as `id` is: they run Python, which lets other threads go on.
        return Objects(frozenset(map(object.__hash__, chain.from_iterable(map(gc.get_objects, (0,))))))


class Objects:
    """A set of objects by identity, which does not hold them."""

    def __init__(self, hashes: frozenset[int] = frozenset()) -> None:
        self._hashes = hashes  # `object.__hash__` tells objects apart as `id` does

    def __contains__(self, x: object) -> bool:
        return object.__hash__(x) in self._hashes
