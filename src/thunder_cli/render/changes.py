"""What a pass changed, in a few lines: the events that it recorded, or else how its statements differ."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from thunder_cli.diff.graph import call_text, text_of
from thunder_cli.events import Stage

Line = tuple[str, str, str, str]  # sign, what, why, the user's line


def change_lines(before: Stage, after: Stage) -> list[Line]:
    """What `after` has become of `before`; empty if nothing changed."""
    texts = {name: call_text(data) for data in before.operations if data["depth"] == 0 for name in data["outputs"]}
    lines = [line for event in after.events for line in event_line(event, texts)]
    lines += counted(after.events)
    if not after.events:
        lines = list(statement_changes(before, after))
    if before.returns != after.returns and not any(event["kind"] == "replaced" for event in after.events):
        lines.append(("+", f"return {text_of(after.returns)}", "", ""))
    return lines


def event_line(event: dict[str, Any], texts: dict[str, str]) -> Iterator[Line]:
    """The line of an event that is told by itself."""
    text = next((texts[name] for name in event["values"] if name in texts), ", ".join(event["values"]))
    if event["kind"] == "removed":
        yield "-", text, event["reason"], place(event)
    elif event["kind"] == "replaced":
        yield "-", text, f"replaced by {event['into']}: {event['reason']}", place(event)
    elif event["kind"] == "moved" or (event["kind"] == "inserted" and event["operation"] != "del"):
        names = ", ".join(event["values"])
        yield "+", f"{names} = {event['operation']}", f"{event['kind']}: {event['reason']}", place(event)


def counted(events: Sequence[dict[str, Any]]) -> Iterator[Line]:
    """What happened to many operations alike, on one line each."""
    fused: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event["kind"] == "fused":
            fused.setdefault(event["into"], []).append(event)
    for name, members in fused.items():
        sources = list(dict.fromkeys(filter(None, map(place, members))))
        yield "+", f"{name} ({operations(members)})", f"by {members[0]['by']}", places(sources)
    refused = Counter((e["by"], e["reason"]) for e in events if e["kind"] == "refused")
    for (by, reason), count in refused.items():
        same = [e for e in events if e["kind"] == "refused" and (e["by"], e["reason"]) == (by, reason)]
        yield " ", f"{count} not fused by {by} ({operations(same)})", reason, places([place(same[0])])
    claimed = Counter(event["by"] for event in events if event["kind"] == "claimed")
    for by, count in claimed.items():
        yield " ", f"{count} operation{'s' * (count != 1)} given to {by}", "", ""
    deleted = sum(event["operation"] == "del" for event in events)
    if deleted:
        yield "+", f"{deleted} del", "so that memory is free after the last use", ""


def statement_changes(before: Stage, after: Stage) -> Iterator[Line]:
    sides = [Counter(call_text(data) for data in stage.operations if data["depth"] == 0) for stage in (before, after)]
    yield from (("-", text, "", "") for text in (sides[0] - sides[1]).elements())
    yield from (("+", text, "", "") for text in (sides[1] - sides[0]).elements())


def operations(events: Sequence[dict[str, Any]], limit: int = 6) -> str:
    """`add, mul`"""
    names = [event["operation"].rpartition(".")[2] for event in events]
    kinds = list(dict.fromkeys(names))
    if len(events) <= limit:
        return ", ".join(names)
    return f"{', '.join(kinds[:limit])}, ... {len(names)}" if len(kinds) > 1 else kinds[0]


def place(event: dict[str, Any]) -> str:
    source = event["source"]
    return f"{source['path']}:{source['line']}" if source else ""


def places(sources: Sequence[str], limit: int = 3) -> str:
    """`quickstart.py:4, 7`"""
    lines: dict[str, list[str]] = {}
    for source in filter(None, sources):
        path, _, line = source.rpartition(":")
        lines.setdefault(path, []).append(line)
    return "  ".join(f"{p}:{', '.join(found[:limit])}{', ...' * (len(found) > limit)}" for p, found in lines.items())
