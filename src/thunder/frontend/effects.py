"""Python state that a program wrote: statements of the epilogue that write it, at every call."""

import types
from collections.abc import Iterable
from typing import Any

from thunder.core.printing import Live, Printer, statement_rules
from thunder.core.symbol import BoundSymbol, Symbol, Tag
from thunder.frontend.dependence import Change, Dependence

make = Symbol("make", "epilogue")
write_entry = Symbol("write_entry", "epilogue", tags=(Tag.EFFECT,))
delete_entry = Symbol("delete_entry", "epilogue", tags=(Tag.EFFECT,))
write_contents = Symbol("write_contents", "epilogue", tags=(Tag.EFFECT,))
write_cell = Symbol("write_cell", "epilogue", tags=(Tag.EFFECT,))
empty_cell = Symbol("empty_cell", "epilogue", tags=(Tag.EFFECT,))


def _made(bound_symbol: BoundSymbol, printer: Printer) -> list[str]:
    return [f"{bound_symbol.output.name} = {printer.value(bound_symbol.args[0])}"]


def _entry(bound_symbol: BoundSymbol, printer: Printer) -> list[str]:
    target, key, value = bound_symbol.args
    if isinstance(target.object, type):
        return [f"setattr({printer.value(target)}, {key!r}, {printer.value(value)})"]
    return [f"{printer.value(target)}[{printer.value(key)}] = {printer.value(value)}"]


def _deleted(bound_symbol: BoundSymbol, printer: Printer) -> list[str]:
    target, key = bound_symbol.args
    if isinstance(target.object, type):
        return [f"delattr({printer.value(target)}, {key!r})"]
    return [f"del {printer.value(target)}[{printer.value(key)}]"]


def _contents(bound_symbol: BoundSymbol, printer: Printer) -> list[str]:
    target, value = bound_symbol.args
    container = printer.value(target)
    if isinstance(target.object, list):
        return [f"{container}[:] = {printer.value(value)}"]
    fill = "extend" if isinstance(target.object, types.GenericAlias) or hasattr(target.object, "extend") else "update"
    return [f"{container}.clear()", f"{container}.{fill}({printer.value(value)})"]


def _cell(bound_symbol: BoundSymbol, printer: Printer) -> list[str]:
    target, value = bound_symbol.args
    return [f"{printer.value(target)}.cell_contents = {printer.value(value)}"]


def _emptied(bound_symbol: BoundSymbol, printer: Printer) -> list[str]:
    return [f"del {printer.value(bound_symbol.args[0])}.cell_contents"]


statement_rules.update(
    {
        make: _made,
        write_entry: _entry,
        delete_entry: _deleted,
        write_contents: _contents,
        write_cell: _cell,
        empty_cell: _emptied,
    }
)


def statements(changes: Iterable[tuple[Change, Any]], dependence: Dependence) -> list[BoundSymbol]:
    """The statements that make the changes, each given with its value in terms of the epilogue's."""
    owners = {id(store.entries): (key, store) for key, store in dependence.stores.items()}
    result = []
    for change, value in changes:
        target = change.target
        if isinstance(target, types.CellType):
            cell = Live(target, "cell")
            if change.deleted:
                result.append(BoundSymbol(empty_cell, (cell,), {}, None))
            else:
                result.append(BoundSymbol(write_cell, (cell, value), {}, None))
        elif change.key is None:
            result.append(BoundSymbol(write_contents, (Live(target, type(target).__name__), value), {}, None))
        else:
            key, store = owners[id(target)]
            live = Live(key, store.name) if isinstance(key, type) else Live(target, store.name)
            if change.deleted:
                result.append(BoundSymbol(delete_entry, (live, change.key), {}, None))
            else:
                result.append(BoundSymbol(write_entry, (live, change.key, value), {}, None))
    return result
