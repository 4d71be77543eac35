"""Figures and tables as text: quantities with units, HTML for notebooks. Text from outside is escaped."""
from __future__ import annotations

import math
from typing import Any, Iterable, Mapping, Optional, Sequence

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def is_known(value: Any) -> bool:
    """False for None and NaN."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def number(value: float) -> str:
    """Three significant digits, without an exponent where that reads well: 0.0123, 1.23, 12.3, 123, 1230."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = 2 - math.floor(math.log10(abs(value)))
    if not -6 < digits < 9:
        return f"{value:.3g}"
    return f"{round(value, digits):.{max(digits, 0)}f}"


def quantity(value: Optional[float], unit: str) -> str:
    """With a prefix: quantity(1234.5, "J") is "1.23 kJ"; unknown values are "n/a"."""
    if value is None or math.isnan(value):
        return "n/a"
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor * 0.9995:
            return f"{number(value / factor)} {prefix}{unit}"
    return f"{number(value)} {unit}" if value == 0 else f"{value:.3g} {unit}"


#: below tables that have the mark, as in reports of the program
UNRESOLVED_NOTE = "?: the error is as large as the value."


def unresolved_mark(value: Optional[float], error: Optional[float]) -> str:
    """" ?" if the error is as large as the value, else ""."""
    unresolved = value is not None and error is not None and error > 0 and error >= abs(value)  # False of NaN
    return " ?" if unresolved else ""


def with_error(value: Optional[float], error: Optional[float], unit: str) -> str:
    """"1.23 kJ ± 45.0 J", "1.23 J ± 2.00 J ?"."""
    if not is_known(value) or not is_known(error):
        return quantity(value, unit)
    return f"{quantity(value, unit)} ± {quantity(error, unit)}{unresolved_mark(value, error)}"


# Endings of names, the contract of wattle: a column is shown by its unit.
_UNITS = {"_s": "s", "_j": "J", "_w": "W", "_bytes": "B"}


def cell(name: str, value: Any) -> str:
    """A value as it is shown under a column of that name."""
    if not is_known(value):
        return "n/a"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        for ending, unit in _UNITS.items():
            if name.endswith(ending):
                return quantity(float(value), unit)
        return number(value) if isinstance(value, float) else str(value)
    return str(value)


def escape(text: str) -> str:
    """For HTML."""
    import html  # few programs show any, and its table of entities takes its time
    return html.escape(text)


def aligned(lines: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Lines of aligned cells; right: the right-aligned columns."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["  ".join(cell.rjust(width) if to_right else cell.ljust(width)
                      for cell, width, to_right in zip(line, widths, right)).rstrip() for line in lines]


def html_of(head: Sequence[str], lines: Iterable[Sequence[str]], right: Sequence[bool], caption: str = "",
            more: int = 0) -> str:
    """The same as a table for notebooks; `more` is the number of omitted lines. Leading blanks indent a cell."""
    lines = list(lines)
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f'<{tag} style="text-align:{"right" if r else "left"}">{indented(cell)}</{tag}>'
                                for cell, r in zip(cells, right)) + "</tr>"

    def indented(cell: str) -> str:
        text = cell.lstrip(" ")
        return "&ensp;" * (len(cell) - len(text)) + escape(text)

    rest = f'<tr><td colspan="{len(head)}">… and {more} more</td></tr>' if more else ""
    title = f'<caption style="text-align:left">{escape(caption)}</caption>' if caption else ""
    body = "".join(row(line, "td") for line in lines)
    note = "".join(f"<p>{line}</p>" for line in unresolved_note(lines))
    return f"<table>{title}<thead>{row(head, 'th')}</thead><tbody>{body}{rest}</tbody></table>{note}"


def unresolved_note(lines: Iterable[Sequence[str]]) -> list[str]:
    """The explanation of the mark as a list, empty if no figure has it."""
    marked = any(cell.endswith(" ?") and cell[0] in "-.0123456789" for line in lines for cell in line[1:])
    return [UNRESOLVED_NOTE] if marked else []


def html_table(caption: str, names: Sequence[str], rows: Sequence[Sequence[Any]], more: int = 0) -> str:
    """Rows of values under column names, numbers right-aligned."""
    return html_of(names, _cells(names, rows), _right(names, rows), caption, more)


def text_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The same as text."""
    cells = _cells(names, rows)
    return "\n".join(aligned([list(names), *cells], _right(names, rows)) + unresolved_note(cells))


#: columns that have the mark where error_j is as large as total_j or energy_j
_MARKED = ("error_j", "mean_j", "j_per_gmac")


def _cells(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    return [_row_cells(dict(zip(names, row))) for row in rows]


def _row_cells(row: Mapping[str, Any]) -> list[str]:
    mark = unresolved_mark(row.get("total_j", row.get("energy_j")), row.get("error_j"))
    return [cell(name, value) + (mark if name in _MARKED and is_known(value) else "") for name, value in row.items()]


def _right(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[bool]:
    return [any(isinstance(row[i], (int, float)) and not isinstance(row[i], bool) for row in rows)
            for i in range(len(names))]
