"""`--stage` and `--only`: which part of what happened is shown."""

from dataclasses import dataclass

from thunder_cli.errors import CommandError
from thunder_cli.events import Event, Failure, Fusion, Stage
from thunder_cli.session import Session, slug

ONLY = ("stages", "fusions", "kernels", "repro")
SHOWN_TRACES = ("computation", "backward")


@dataclass(frozen=True)
class Part:
    """What is shown: everything, one stage (`stage`), or one kind of text (`only`)."""

    stage: str | None = None
    only: str | None = None

    def __post_init__(self) -> None:
        if self.only not in (None, *ONLY):
            raise CommandError(f"--only {self.only} is not a part.\nChoose one of {', '.join(ONLY)}.")
        if self.only and self.stage:
            raise CommandError("--only and --stage exclude each other.\n--stage alone prints one stage.")

    @property
    def is_whole(self) -> bool:
        return self.stage is None and self.only is None

    def selects(self, event: Event) -> bool:
        """Whether the part holds the event. Failures always show."""
        if self.is_whole or isinstance(event, Failure):
            return True
        if isinstance(event, Stage):
            if self.stage is not None:
                return is_called(event, self.stage)
            return self.only == "stages" and event.trace in SHOWN_TRACES
        return isinstance(event, Fusion) and self.only in ("fusions", "kernels", "repro")

    def remarks(self, kept: Session) -> list[str]:
        """What whoever sees only the part must know nevertheless."""
        if self.is_whole:
            return []
        remarks = []
        if kept.plain is not None:
            remarks.append(f"it is run plainly, not compiled: {kept.plain.reason}")
        elif self.only in ("fusions", "kernels", "repro") and not kept.fusions and not kept.failures:
            remarks.append("there are no fusions. --stage 2 shows what runs each operation.")
        if kept.result is not None and kept.result.equal is False:
            remarks.append(f"the result is {kept.result.comparison}")
        return remarks

    def check(self, stages: list[Stage]) -> None:
        """Raise if no stage is the one asked for."""
        if self.stage is not None and stages and not any(is_called(stage, self.stage) for stage in stages):
            listing = "\n".join(f"  {stage.trace}/{stage.index}  {stage.title}" for stage in stages)
            raise CommandError(f"there is no stage {self.stage}.\nThe stages are\n{listing}")


def is_called(stage: Stage, name: str) -> bool:
    """Whether `name` means the stage: `2`, `transform-for-execution`, `prologue/0`, `backward`."""
    trace, slash, rest = name.rpartition("/")
    if name == stage.trace:
        return True
    if stage.trace != (trace if slash else "computation") and (slash or rest.isdigit()):
        return False
    return int(rest) == stage.index if rest.isdigit() else slug(rest) == slug(stage.title)
