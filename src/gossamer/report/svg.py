"""Charts as SVG text, for a page without scripts.

Colours and fonts come from the page's style sheet by class, so that light and dark both
work; a chart has no style of its own. Every text is escaped here. Axes start at zero and
have round steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log10

from msgspec import Struct
from msgspec.structs import replace

from gossamer.telemetry.text import escape

WIDTH = 520
HEIGHT = 220
MAX_MOMENTS = 80  # of a line chart: each is 5 wide then, enough to point at
_LEFT = 52
_RIGHT = 14
_TOP = 14
_BOTTOM = 34
_TIME_STEPS_S = (
    0.1,
    0.2,
    0.5,
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10_800,
    21_600,
    43_200,
    86_400,
)

Format = Callable[[float], str]


class Series(Struct, frozen=True):
    """A line of a chart; `css` is its class in the style sheet."""

    label: str
    css: str
    points: list[tuple[float, float]]


class Bar(Struct, frozen=True):
    """A bar; `note` is shown while the pointer is over it."""

    label: str
    value: float
    note: str


def round_step(most: float, steps: int = 4) -> float:
    """Return 1, 2, 2.5 or 5 times a power of ten, so that about `steps` of them cover `most`."""
    if most <= 0:
        return 1.0
    rough = most / steps
    power = 10.0 ** ceil(log10(rough) - 1)
    return next((step * power for step in (1, 2, 2.5, 5) if step * power >= rough), 10 * power)


def _ticks(most: float, *, is_whole: bool) -> list[float]:
    step = round_step(most)
    if is_whole:
        step = max(1.0, ceil(step))
    count = max(1, ceil(most / step - 1e-9))
    return [step * number for number in range(count + 1)]


def line_chart(title: str, series: Sequence[Series], format_x: Format, format_y: Format) -> str:
    """Return lines over time; the first one is filled. All lines have the same times."""
    series = [replace(line, points=_thinned(line.points)) for line in series]
    last_x = max((x for line in series for x, _ in line.points), default=0.0) or 1.0
    most = max((y for line in series for _, y in line.points), default=0.0)
    ticks = _ticks(most, is_whole=True)
    top = ticks[-1]

    def point(x: float, y: float) -> tuple[float, float]:
        return (
            _LEFT + x / last_x * (WIDTH - _LEFT - _RIGHT),
            HEIGHT - _BOTTOM - y / top * (HEIGHT - _TOP - _BOTTOM),
        )

    parts = [_grid(ticks, format_y), _time_axis(last_x, format_x)]
    for number, line in enumerate(series):
        spots = [point(x, y) for x, y in line.points]
        if not spots:
            continue
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        if number == 0:
            base = HEIGHT - _BOTTOM
            parts.append(
                f'<polygon class="area {line.css}" points="{spots[0][0]:.1f},{base} {path} {spots[-1][0]:.1f},{base}"/>'
            )
        parts.append(f'<polyline class="line {line.css}" points="{path}"/>')
    parts.append(_moments(series, last_x, format_x, format_y))
    return _svg(title, "".join(parts))


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return at most as many points as can be pointed at, the first and the last included."""
    step = ceil(len(points) / MAX_MOMENTS)
    return [points[0], *points[:0:-step][::-1]] if step > 1 else points


def _moments(series: Sequence[Series], last_x: float, format_x: Format, format_y: Format) -> str:
    """Return a strip per point that shows its values while the pointer is over it."""
    times = [x for x, _ in series[0].points]
    scale = (WIDTH - _LEFT - _RIGHT) / last_x
    strips = []
    for number, x in enumerate(times):
        left = (times[number - 1] + x) / 2 if number else x
        right = (x + times[number + 1]) / 2 if number + 1 < len(times) else x
        values = ", ".join(f"{line.label} {format_y(line.points[number][1])}" for line in series)
        strips.append(
            f'<rect class="moment" x="{_LEFT + left * scale:.1f}" y="{_TOP}" width="{(right - left) * scale:.1f}" '
            f'height="{HEIGHT - _TOP - _BOTTOM}"><title>{escape(f"{format_x(x)}: {values}")}</title></rect>'
        )
    return "".join(strips)


def _time_axis(last_s: float, format_x: Format) -> str:
    marks = []
    step_s = round_time_step(last_s)
    for number in range(int(last_s / step_s) + 1):
        x = _LEFT + number * step_s / last_s * (WIDTH - _LEFT - _RIGHT)
        anchor = "end" if WIDTH - x < 40 else "middle"
        marks.append(_text(x, HEIGHT - _BOTTOM + 18, format_x(number * step_s), anchor))
    return "".join(marks)


def round_time_step(last_s: float) -> float:
    """Return the shortest usual time step of which at most six cover `last_s`; beyond that, whole days."""
    step_s = next((step_s for step_s in _TIME_STEPS_S if step_s * 6 >= last_s), 0.0)
    return step_s or 86_400 * ceil(round_step(last_s / 86_400, 6))


def bar_chart(title: str, bars: Sequence[Bar], format_y: Format) -> str:
    """Return upright bars with a label under each (every second or third if there are many)."""
    ticks = _ticks(max((bar.value for bar in bars), default=0.0), is_whole=True)
    slot = (WIDTH - _LEFT - _RIGHT) / max(1, len(bars))
    width = min(48.0, slot * 0.72)
    labels_every = max(1, ceil(max((len(bar.label) for bar in bars), default=1) * 7.2 / slot))
    parts = [_grid(ticks, format_y)]
    for number, bar in enumerate(bars):
        middle = _LEFT + (number + 0.5) * slot
        height = bar.value / ticks[-1] * (HEIGHT - _TOP - _BOTTOM)
        height = max(height, 1.0) if bar.value else 0.0
        parts.append(
            f'<rect class="bar" x="{middle - width / 2:.1f}" y="{HEIGHT - _BOTTOM - height:.1f}" '
            f'width="{width:.1f}" height="{height:.1f}" rx="2"><title>{escape(bar.note)}</title></rect>'
        )
        if number % labels_every == 0:
            parts.append(_text(middle, HEIGHT - _BOTTOM + 18, bar.label, "middle"))
    return _svg(title, "".join(parts))


def share_bar(title: str, shares: Sequence[tuple[str, Bar]]) -> str:
    """Return one long bar in parts; each has its class in the style sheet."""
    total = sum(part.value for _, part in shares) or 1.0
    parts = []
    x = 0.0
    for css, part in shares:
        width = part.value / total * 1000
        parts.append(
            f'<rect class="{css}" x="{x:.2f}" y="0" width="{width:.2f}" height="18">'
            f"<title>{escape(part.note)}</title></rect>"
        )
        x += width
    return (
        f'<svg class="share" viewBox="0 0 1000 18" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )


def meter(value: float, most: float) -> str:
    """Return a short bar for a cell of a table."""
    width = 100 * value / most if most else 0.0
    return (
        '<svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="bar" width="{width:.1f}" height="8" rx="1"/></svg>'
    )


def _grid(ticks: Sequence[float], format_y: Format) -> str:
    parts = []
    for tick in ticks:
        y = HEIGHT - _BOTTOM - tick / ticks[-1] * (HEIGHT - _TOP - _BOTTOM)
        css = "axis" if tick == 0 else "grid"
        parts.append(f'<line class="{css}" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(_LEFT - 8, y + 4, format_y(tick), "end"))
    return "".join(parts)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(title: str, inner: str) -> str:
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{inner}</svg>'
