"""Which objects a program makes while it is traced. The garbage collector knows: they are its youngest generation."""

import gc


class Newborn:
    """Inside the context, keeps the objects that are made apart from those that were there before."""

    def __enter__(self) -> "Newborn":
        self.enabled = gc.isenabled()
        gc.disable()  # a collection would move what is made to an older generation
        gc.collect(0)
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            gc.enable()

    def ids(self) -> frozenset[int]:
        """The ids of the objects that were made; valid inside the context. Those without references are not there."""
        return frozenset(map(id, gc.get_objects(generation=0)))
