"""The figures of a crawl as metrics, in Prometheus' text format 0.0.4. Pure.

Names begin with `gossamer_`, units are seconds and bytes, counters end in `_total` and count over all runs. Nothing is
labelled by host: a crawl has millions. Rates are not here, since Prometheus computes them. Every label value is one of
our own words (outcomes, states, phases, rules), so the number of series is bounded: about 250.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from math import isfinite, isnan
from typing import TypeAlias

from gossamer import __version__
from gossamer.model.figures import BOUNDS_S, Figures, Histogram, Resource, RunState

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

Value: TypeAlias = Callable[[Figures], float]
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


COUNTERS: tuple[tuple[str, str, Value], ...] = (
    ("pages", "Pages: answers with status 200 of a type that is stored.", lambda f: f.totals.pages),
    ("html_pages", "Pages that are HTML.", lambda f: f.totals.html_pages),
    ("errors", "Fetches without an HTTP answer, or with 4xx or 5xx.", lambda f: f.totals.errors),
    ("bytes", "Bytes received.", lambda f: f.totals.bytes),
    ("content_bytes", "Bytes of pages, decoded.", lambda f: f.totals.content_bytes),
    ("words", "Words of pages.", lambda f: f.totals.words),
    ("links", "Links found.", lambda f: f.totals.links),
    ("excluded_links", "Links that a rule of the crawl did not queue.", lambda f: f.totals.excluded),
    ("urls_seen", "Distinct URLs that were accepted.", lambda f: f.totals.urls_seen),
    ("unique_hosts", "Hosts with at least one page.", lambda f: f.totals.unique_hosts),
    ("unique_domains", "Registrable domains with at least one page.", lambda f: f.totals.unique_domains),
    ("robots_disallowed", "URLs that robots.txt forbids.", lambda f: f.totals.robots_disallowed),
    ("robots_fetches", "Requests for robots.txt.", lambda f: f.totals.robots_fetches),
    ("failed_lookups", "Name look-ups without a usable address.", lambda f: f.totals.failed_lookups),
    ("retries", "Fetches that failed and are made again.", lambda f: f.totals.retries),
    ("evicted_urls", "URLs that left the queue because of its maximum length.", lambda f: f.totals.evicted),
    ("dropped_links", "Links to be held back, beyond the cap of their host.", lambda f: f.totals.held_dropped),
    ("requisites", "Requisites of pages that were fetched and stored.", lambda f: f.totals.requisites),
    ("requisite_bytes", "Bytes of requisites, decoded.", lambda f: f.totals.requisite_bytes),
    ("failed_requisites", "Requisites that could not be fetched.", lambda f: f.totals.requisites_failed),
    ("disallowed_requisites", "Requisites that robots.txt forbids.", lambda f: f.totals.requisites_denied),
    ("refused_requisites", "Requisites that a rule refused.", lambda f: f.totals.requisites_refused),
    ("cut_requisites", "Requisites beyond the limit for one page.", lambda f: f.totals.requisites_cut),
    ("crawl_seconds", "Time of all runs.", lambda f: f.totals.seconds),
    ("cpu_seconds", "CPU time of all processes.", lambda f: f.cpu_seconds),
    ("runs", "Runs of the crawl.", lambda f: f.totals.runs),
    ("spam_pages", "Pages that are spam.", lambda f: f.totals.spam_pages),
    ("worker_deaths", "Workers that died in this run.", lambda f: f.worker_deaths),
    ("failed_writes", "Writes to a store that failed, and were repeated.", lambda f: f.failed_writes),
    ("clock_jumps", "Jumps of the machine's clock by more than 5 s.", lambda f: f.clock_jumps),
)
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
GAUGES: tuple[tuple[str, str, Value], ...] = (
    ("due_urls", "URLs that are due again and wait for their host.", lambda f: f.revisits.waiting if f.revisits else 0),
    (
        "freshness_ratio",
        "Share of copies that are fresh.",
        lambda f: f.revisits.freshness if f.revisits else 0,
    ),
    ("process_start_time_seconds", "When this run began, since 1970; 0: not known.", lambda f: f.started_at),
    ("queued_requisites", "Requisites of pages that are queued.", lambda f: f.requisites_queued),
    ("in_flight_requests", "Requests that are on their way.", lambda f: f.in_flight),
    ("workers", "Processes that fetch.", lambda f: f.workers),
    ("private_bytes", "Private memory of all processes.", lambda f: f.private_bytes),
    ("peak_private_bytes", "The most private memory of this run.", lambda f: f.peak_private_bytes),
    ("peak_resident_bytes", "The most resident memory of a process.", lambda f: f.peak_rss_bytes),
    ("memory_ceiling_bytes", "Memory that the crawl may use; 0: not known.", lambda f: f.memory_ceiling_bytes),
    ("open_files", "Open files of the process that has most.", lambda f: f.open_files),
    ("free_bytes", "Free bytes on the disk of the crawl folder.", lambda f: f.free_bytes),
    ("loop_stall_p99_seconds", "How long an event loop was held, p99.", lambda f: f.loop_stall_p99_ms / 1000),
    ("loop_stall_max_seconds", "How long an event loop was held at most.", lambda f: f.loop_stall_max_ms / 1000),
    ("core_wait_p99_seconds", "How long an event loop waited for a core, p99.", lambda f: f.core_wait_p99_ms / 1000),
    ("batch_fill_pages", "Pages per batch of a store; without one, per commit.", lambda f: f.batch_fill),
    ("compression_ratio", "Bytes of the archive's records per byte of its files.", lambda f: f.compression_ratio),
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
    """Return all metrics."""
    lines = _family("build_info", "gauge", "The program.", [f"{_labels(version=__version__)} 1"])
    for name, text, value in COUNTERS:
        lines += _family(f"{name}_total", "counter", text, [f" {_number(value(figures))}"])
    for name, label, text, values in LABELLED_COUNTERS:
        lines += _family(f"{name}_total", "counter", text, _samples(label, values(figures)))
    for name, text, value in GAUGES:
        lines += _family(name, "gauge", text, [f" {_number(value(figures))}"])
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
        lines += _family(name, "gauge", text, [] if value is None else [f" {_number(value)}"])
    return lines


def _family(name: str, kind: str, text: str, samples: Iterable[str]) -> list[str]:
    head = [f"# HELP gossamer_{name} {text}", f"# TYPE gossamer_{name} {kind}"]
    return [*head, *(f"gossamer_{name}{sample}" for sample in samples)]


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
