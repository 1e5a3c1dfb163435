"""The parts of a report's page: cards, tables, axes; and the one function for texts from the web.

Everything that came from the web goes through `safe`: control characters shown, HTML escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct

from gossamer.foundation.expressions import expression
from gossamer.reading.aggregates import NamedCount
from gossamer.report.svg import meter
from gossamer.telemetry.text import UNKNOWN, count, escape, printable

_PARTS = expression(r"[^./?&=_,;]*[./?&=_,;]|[^./?&=_,;]+")


def safe(text: str, most: int = 300) -> str:
    """Return a text from the web as HTML that only shows it."""
    return escape(printable(text, most))


def breakable(text: str, most: int = 300) -> str:
    """Return a URL or a name as HTML: it may be broken between its parts, not within them."""
    return "<wbr>".join(escape(part) for part in _PARTS.findall(printable(text, most)))


def named(text: str, most: int = 80) -> str:
    """Return the cell of a name."""
    return f'<td class="name">{breakable(text, most)}</td>'


def moment(at: float) -> str:
    """Return a time in UTC."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S") if at else "never"
    except (OverflowError, ValueError, OSError):  # of a row that was written by somebody else
        return "at an impossible time"


class Section(Struct, frozen=True):
    """Cards under a title: in rows, or flowing down columns if their heights differ."""

    ident: str
    title: str
    cards: Sequence[str]
    flows: bool = True

    def html(self) -> str:
        """Return the section."""
        css = "flow" if self.flows else "cards"
        return f'<h2 id="{self.ident}">{self.title}</h2><div class="{css}">{"".join(self.cards)}</div>'


def contents(sections: Sequence[Section]) -> str:
    """Return the table of contents."""
    links = (f'<a href="#{one.ident}">{one.title}</a>' for one in sections)
    return f'<nav aria-label="Contents">{"".join(links)}</nav>'


def card(title: str, inner: str) -> str:
    """Return a box with a title; `inner` is HTML."""
    return f'<div class="card"><h3>{title}</h3>{inner}</div>'


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: frozenset[int]) -> str:
    """Return a table; cells are HTML already, columns in `numbers` are aligned to the right."""
    if not rows:
        return '<p class="none">none</p>'
    head = "".join(f'<th class="n">{h}</th>' if n in numbers else f"<th>{h}</th>" for n, h in enumerate(heads))
    body = []
    for row in rows:
        cells = (
            cell if cell.startswith("<td") else f'<td class="n">{cell}</td>' if n in numbers else f"<td>{cell}</td>"
            for n, cell in enumerate(row)
        )
        body.append(f"<tr>{''.join(cells)}</tr>")
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f'<div class="scroll">{whole}</div>'


def counts(entries: Sequence[NamedCount], head: str, what: str = "URLs", *, is_code: bool = False) -> str:
    """Return a table of names and counts with a bar each."""
    most = max((entry.count for entry in entries), default=0)
    rows = [
        (
            f"<code>{breakable(entry.name)}</code>" if is_code else named(entry.name, 300),
            count(entry.count),
            f'<td class="m">{meter(entry.count, most)}</td>',
        )
        for entry in entries
    ]
    return table([head, what, ""], rows, frozenset({1}))


def key(entries: Sequence[tuple[str, str]]) -> str:
    """Return the key of a chart: a coloured dot and its meaning each."""
    return (
        '<div class="key">'
        + "".join(f'<span><i class="dot {css}"></i>{text}</span>' for css, text in entries)
        + "</div>"
    )


def examples(urls: Sequence[str]) -> str:
    """Return URLs as a list; those behind the third are folded."""
    items = [f"<li><code>{breakable(url)}</code></li>" for url in urls]
    folded = f"<details><summary>{len(items) - 3} further examples</summary><ul>{''.join(items[3:])}</ul></details>"
    return f"<ul>{''.join(items[:3])}</ul>" + (folded if len(items) > 3 else "")


def span(seconds: float) -> str:
    """Return a time for an axis, whose steps are round."""
    for unit, width in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= width:
            whole, rest = divmod(round(seconds), width)
            below = {"d": f" {rest // 3600} h", "h": f" {rest // 60} min", "min": f" {rest} s"}[unit]
            return f"{whole} {unit}" + (below if rest else "")
    return f"{seconds:.3g} s"


def short(number: float) -> str:
    """Return a number for an axis: short, without decimals if it is whole."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:g}{unit}"
    return f"{number:g}"


def ms(value: float | None) -> str:
    """Return a short time."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.1f} s"


def binary(least: int) -> str:
    """Return the lower end of a doubling: 512 B, 1 KiB, 2 KiB, …"""
    for unit, width in (("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20)):
        if least < width << 10:
            return f"{least // width} {unit}"
    return f"{least >> 30} GiB"
