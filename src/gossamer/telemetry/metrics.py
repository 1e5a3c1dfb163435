"""The figures of a crawl as metrics, in Prometheus' text format 0.0.4. Pure.

Those of one number are declared in `figure_list`, those with labels here. Names begin with `gossamer_`, units are
seconds and bytes, counters end in `_total` and count over all runs. Nothing is labelled by host: a crawl has millions.
Rates are not here, since Prometheus computes them. Every label value is one of our own words (outcomes, states, phases,
rules), so the number of series is bounded: about 250.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from math import isfinite, isnan
from typing import TypeAlias

from gossamer import __version__
from gossamer.model.figures import BOUNDS_S, Figures, Histogram, Resource, RunState
from gossamer.telemetry.figure_list import COUNTERS, GAUGES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# The conditions that last (`runtime/watch/conditions`): each has a series, also while it does not hold.
LASTING_RULES = (
    "error_rate",
    "frontier_starving",
    "stalled",
    "loop_stalled",
    "open_files",
    "disk",
    "memory",
    "pace_exceeded",
)

Values: TypeAlias = Callable[[Figures], Mapping[str, float]]


def _urls(figures: Figures) -> dict[str, float]:
    totals = figures.totals
    queued = figures.urls_queued
    done = max(0, totals.urls_seen - queued - totals.dead)
    return {"queued": queued, "parked": figures.urls_parked, "dead": totals.dead, "done": done}


def _classes(statuses: Mapping[str, int]) -> dict[str, float]:
    found: dict[str, float] = {}
    for status, number in statuses.items():
        name = f"{status[0]}xx" if len(status) == 3 and status[0] in "12345" else "other"
        found[name] = found.get(name, 0) + number
    return found


def _lasting(figures: Figures) -> dict[str, float]:
    now = {warning.rule for warning in figures.warnings if warning.is_lasting}
    return {rule: rule in now for rule in {*LASTING_RULES, *now}}


LABELLED_COUNTERS: tuple[tuple[str, str, str, Values], ...] = (
    ("fetches", "outcome", "Orders that ended, and failed name look-ups.", lambda f: f.totals.outcomes),
    ("answers", "class", "HTTP answers by class of status.", lambda f: _classes(f.totals.statuses)),
    (
        *("visits", "found", "Visits of known URLs that were fetched again."),
        lambda f: {
            "changed": f.totals.visits_changed,
            "same": f.totals.visits_same,
            "gone": f.totals.visits_gone,
            "failed": f.totals.visits_failed,
        },
    ),
    (
        *("duplicates", "kind", "Pages with the content of an earlier one, or nearly so."),
        lambda f: {"exact": f.totals.duplicates, "near": f.totals.near_duplicates},
    ),
)
LABELLED_GAUGES: tuple[tuple[str, str, str, Values], ...] = (
    (
        *("urls", "state", "URLs by state. Those that are parked, at hosts with a long wait, are queued, too."),
        _urls,
    ),
    ("held_urls", "rule", "URLs that a rule holds back.", lambda f: f.totals.held),
    ("hosts", "state", "Hosts by state.", lambda f: f.hosts),
    ("core_share", "process", "CPU of the hub and the busiest worker; 1: a core.", lambda f: f.core_share),
    (
        *("bound_by", "resource", "1 for what the speed is bound by, else 0."),
        lambda f: {one: f.bound_by is not None and f.bound_by.resource is one for one in Resource},
    ),
    (
        *("state", "state", "1 for what the process of the crawl is doing, else 0."),
        lambda f: {one: f.state is one for one in RunState},
    ),
    ("warning", "rule", "1 while a condition lasts that the operator must know of, else 0.", _lasting),
    (
        *("warning_timestamp_seconds", "rule", "When a warning was last given, since 1970."),
        lambda f: {one.rule: one.since for one in sorted(f.warnings, key=lambda one: one.since)},
    ),
)
HISTOGRAMS: tuple[tuple[str, str, str, Callable[[Figures], Mapping[str, Histogram]]], ...] = (
    ("fetch_seconds", "phase", "Time of requests by phase.", lambda f: f.latency),
    ("commit_seconds", "", "Time of commits.", lambda f: {"": f.commit_time}),
    ("flush_seconds", "", "Time until what a commit refers to is in archive and stores.", lambda f: {"": f.flush_time}),
)


def render(figures: Figures) -> str:
    lines = _family("build_info", "gauge", "The program.", [f"{_labels(version=__version__)} 1"])
    for each in COUNTERS:
        lines += _family(f"{each.name}_total", "counter", each.help, _sample(each.value(figures)))
    for name, label, text, values in LABELLED_COUNTERS:
        lines += _family(f"{name}_total", "counter", text, _samples(label, values(figures)))
    for each in GAUGES:
        lines += _family(each.name, "gauge", each.help, _sample(each.value(figures)))
    for name, label, text, values in LABELLED_GAUGES:
        lines += _family(name, "gauge", text, _samples(label, values(figures)))
    lines += _optional(figures)
    for name, label, text, histograms in HISTOGRAMS:
        samples = [sample for key, one in histograms(figures).items() for sample in _buckets(label, key, one)]
        lines += _family(name, "histogram", text, samples)
    return "\n".join(lines) + "\n"


def _optional(figures: Figures) -> list[str]:
    """Return the gauges that are missing if their value is not known."""
    forecast = figures.forecast
    known = {
        ("max_pages", "Pages after which the crawl ends."): figures.max_pages,
        ("forecast_seconds", "Time until what is queued is done."): None if forecast is None else forecast.seconds,
    }
    lines: list[str] = []
    for (name, text), value in known.items():
        lines += _family(name, "gauge", text, _sample(value))
    return lines


def _family(name: str, kind: str, text: str, samples: Iterable[str]) -> list[str]:
    head = [f"# HELP gossamer_{name} {text}", f"# TYPE gossamer_{name} {kind}"]
    return [*head, *(f"gossamer_{name}{sample}" for sample in samples)]


def _sample(value: float | None) -> list[str]:
    """Return the sample of a figure; none if nothing speaks for a number yet."""
    return [] if value is None else [f" {_number(value)}"]


def _samples(label: str, values: Mapping[str, float]) -> list[str]:
    return [f"{_labels(**{label: key})} {_number(value)}" for key, value in sorted(values.items())]


def _buckets(label: str, key: str, histogram: Histogram) -> list[str]:
    own = {label: key} if label else {}
    bounds = [*map(_number, BOUNDS_S), "+Inf"]
    totals = list(accumulate(histogram.counts))
    samples = [f"_bucket{_labels(**own, le=bound)} {total}" for bound, total in zip(bounds, totals, strict=True)]
    return [*samples, f"_sum{_labels(**own)} {_number(histogram.sum_s)}", f"_count{_labels(**own)} {totals[-1]}"]


def _labels(**labels: str) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if not isfinite(value):
        return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
