"""Results as text, Markdown and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gossamer.report.svg import round_step

Row = Sequence[str]
_BAR, _GAP, _LEFT, _RIGHT, _TOP = 20, 8, 170, 110, 40
_WIDTH = 720
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#222}.t{font-weight:600}.n{fill:#666}"
    ".b{fill:#9aa7b5}.o{fill:#1f7a5c}.g{stroke:#ddd}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.n{fill:#999}.b{fill:#5c6875}.o{fill:#4bb391}.g{stroke:#333}}"
)


def text_table(head: Row, rows: Sequence[Row]) -> str:
    """Return an aligned table: the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return "\n".join(_aligned(row, widths) for row in (head, ["-" * width for width in widths], *rows))


def _aligned(row: Row, widths: Sequence[int]) -> str:
    cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
    return "  ".join(cells).rstrip()


def markdown_table(head: Row, rows: Sequence[Row]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def bar_plot(title: str, bars: Sequence[tuple[str, float, str]], *, ours: str) -> str:
    """Return bars that lie, as a whole SVG file: label, value, note; bars whose label begins with `ours` stand out."""
    most = max((value for _, value, _ in bars), default=0.0) or 1.0
    scale = (_WIDTH - _LEFT - _RIGHT) / most
    height = _TOP + len(bars) * (_BAR + _GAP) + 28
    parts = [f'<text class="t" x="12" y="22">{escape(title)}</text>', _axis(most, scale, height)]
    for number, (label, value, note) in enumerate(bars):
        y = _TOP + number * (_BAR + _GAP)
        css = "o" if label.startswith(ours) else "b"
        width = max(1.0, value * scale)
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(label)}</text>')
        parts.append(f'<rect class="{css}" x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="2"/>')
        parts.append(f'<text class="n" x="{_LEFT + width + 6:.1f}" y="{y + 15}">{escape(note)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}"><style>{_STYLE}</style>{"".join(parts)}</svg>\n'
    )


def _axis(most: float, scale: float, height: int) -> str:
    step = round_step(most, 5)
    marks = []
    for number in range(int(most / step) + 1):
        x = _LEFT + number * step * scale
        marks.append(f'<line class="g" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 6}" y2="{height - 24}"/>')
        marks.append(f'<text class="n" x="{x:.1f}" y="{height - 8}" text-anchor="middle">{number * step:g}</text>')
    return "".join(marks)
