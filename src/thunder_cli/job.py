"""What the front asks of the worker. Imports no torch."""

import json
from dataclasses import asdict, dataclass, field


@dataclass
class Job:
    """One run of the worker.

    Attributes:
        script: path of the script as it was given, or None for a module.
        module: dotted name of the module, or None for a script.
        entry: dotted name inside it.
        inputs: expressions and short forms, one per argument.
        arguments: the script's own.
        device: a chip's key, `cuda` or `cpu`.
        virtual: whether the process was started on the virtual device.
        executors: names in order of priority, or None for the default ones.
        grad: whether gradients are traced.
        timeout: the time limit in seconds, for messages.
    """

    script: str | None
    module: str | None
    entry: str
    device: str
    virtual: bool
    inputs: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    executors: list[str] | None = None
    grad: bool = False
    timeout: float | None = None

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> "Job":
        return cls(**json.loads(text))
