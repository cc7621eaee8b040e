"""Tables: a header, and rows aligned under it."""

from collections.abc import Sequence

from thunder_cli.render.printer import Printer


def print_table(printer: Printer, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text in columns; the last column is as long as it is."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        printer.line(text, "bold" if row is header else "")
