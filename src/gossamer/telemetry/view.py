"""The live view of a crawl on a terminal: a few lines, made of its figures for a width. Pure.

A line has parts in the order of their importance, and shows as many as fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.model.figures import HIGH_ERROR_RATE, Figures, RevisitFigures, RunState
from gossamer.telemetry.screen import ViewLine
from gossamer.telemetry.text import count, duration, percent, plural, printable, roughly, size

BAR_CHARS = 20
NARROW = 60  # columns: hosts in states that none is in are left out
SEPARATOR = " · "
_DIM = "\x1b[2m"
_RED = "\x1b[31m"
_GREEN = "\x1b[32m"
_YELLOW = "\x1b[33m"
_BOLD = "\x1b[1m"
_RESET = "\x1b[0m"


def view_of(figures: Figures, width: int, *, has_colors: bool) -> list[ViewLine]:
    """Return the lines of the view, each shorter than `width`."""
    room = max(1, width - 1)  # a line that fills the last column wraps on some terminals
    lines = [
        (_head(figures, room), _BOLD),
        (_fit(_speed(figures), room), _RED if is_failing(figures) else ""),
        (_fit(_queue(figures, room), room), ""),
    ]
    if figures.revisits is not None:
        lines.append((_fit(_visits(figures, figures.revisits), room), ""))
    if figures.bound_by is not None:
        bound = f"bound by {figures.bound_by.resource}: {printable(figures.bound_by.evidence, 500)}"
        lines.append((_cut(bound, room), _YELLOW if figures.state is RunState.PAUSED else _DIM))
    if figures.forecast is not None and figures.forecast.text:
        lines.append((_cut(printable(figures.forecast.text, 500), room), _DIM))
    lasting = [each.rule for each in figures.warnings if each.is_lasting]
    if lasting:
        lines.append((_cut(f"warnings: {', '.join(lasting)}", room), _YELLOW))
    return [ViewLine(text, f"{style}{text}{_RESET}" if style and has_colors else text) for text, style in lines]


def share_done(figures: Figures) -> float:
    """Return the share of the crawl that is done: of the pages if they are limited, else of the known URLs."""
    totals = figures.totals
    if figures.max_pages:
        goal = min(figures.max_pages, totals.pages + figures.urls_queued)
        return min(1.0, totals.pages / goal) if goal else 0.0
    known = totals.fetches + figures.urls_queued
    return totals.fetches / known if known else 0.0


def is_failing(figures: Figures) -> bool:
    """Return whether too many of the last fetches were errors."""
    rate = figures.rates.get("1m")
    return rate is not None and rate.errors > HIGH_ERROR_RATE * rate.fetches


def time_left(figures: Figures) -> str:
    """Return the time left, for people; empty if it is not known."""
    if figures.forecast is None or figures.forecast.seconds is None or figures.state is not RunState.RUNNING:
        return ""
    return f"{'at least ' if figures.forecast.is_at_least else ''}{roughly(figures.forecast.seconds)} left"


def state_text(figures: Figures) -> str:
    """Return what the process of a crawl is doing; if it is paused, for how long."""
    if figures.state is RunState.PAUSED:
        return f"paused for {duration(figures.paused_seconds)}"
    return str(figures.state)


def _head(figures: Figures, room: int) -> str:
    share = share_done(figures)
    limit = figures.max_pages
    known = figures.totals.pages + figures.urls_queued
    goal = f" of {'' if known >= limit else 'at most '}{count(limit)}" if limit else ""
    state = "" if figures.state is RunState.RUNNING else state_text(figures)
    noun = "page" if (limit or figures.totals.pages) == 1 else "pages"
    parts = [f"{count(figures.totals.pages)}{goal} {noun}", state, time_left(figures)]
    text = _fit([part for part in parts if part], room)
    bar = f"[{'#' * round(share * BAR_CHARS):-<{BAR_CHARS}}] {100 * share:.0f} %  "
    return bar + text if len(bar) + len(text) <= room else text


def _speed(figures: Figures) -> list[str]:
    totals = figures.totals
    rate = figures.rates.get("10s")
    now = f"{rate.pages if rate is not None else figures.run_pages_per_second:.1f} pages/s"
    if figures.state is RunState.PAUSED:
        now = f"{figures.run_pages_per_second:.1f} pages/s before"
    memory = f"memory {size(figures.private_bytes)}"
    if figures.memory_ceiling_bytes:
        memory += f" of {size(figures.memory_ceiling_bytes)}"
    return [
        now,
        f"{plural(totals.errors, 'error')} ({percent(figures.error_rate)})",
        memory,
        duration(figures.run_seconds),
        *([f"{size(rate.bytes)}/s"] if rate is not None and figures.state is not RunState.PAUSED else []),
        f"{size(totals.bytes)} received",
    ]


def _visits(figures: Figures, revisits: RevisitFigures) -> list[str]:
    totals = figures.totals
    return [
        f"again: {plural(totals.visits, 'visit')}",
        f"{count(totals.visits_changed)} changed",
        f"{count(revisits.waiting)} due",
        *([f"{percent(revisits.freshness)} fresh"] if revisits.freshness is not None else []),
        f"{count(totals.visits_gone)} gone",
        f"{count(revisits.per_day)} per day allowed",
        *([f"{plural(revisits.held_domains, 'domain')} held back"] if revisits.held_domains else []),
    ]


def _queue(figures: Figures, room: int) -> list[str]:
    hosts = {state: figures.hosts.get(state, 0) for state in ("ready", "waiting", "parked")}
    if room < NARROW:
        hosts = {state: number for state, number in hosts.items() if number}
    parts = {"over budget": figures.urls_over_budget, "to be retried": figures.urls_retried}
    of_these = ", ".join(f"{count(number)} {what}" for what, number in parts.items() if number)
    return [
        f"{count(figures.urls_queued)} queued" + (f" ({of_these})" if of_these else ""),
        f"hosts: {', '.join(f'{count(number)} {state}' for state, number in hosts.items()) or 'none'}",
        f"{count(figures.in_flight)} in flight",
        plural(figures.totals.unique_domains, "domain"),
    ]


def _fit(parts: Sequence[str], room: int) -> str:
    """Return as many parts as fit, at least the beginning of the first."""
    text = parts[0]
    for part in parts[1:]:
        if len(text) + len(SEPARATOR) + len(part) <= room:
            text += SEPARATOR + part
    return _cut(text, room)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: max(0, room - 1)] + "…"
