"""Which figures are there, and how is each shown? A figure is declared once; all that show figures follow.

A figure is a number of a `Figures` value. Every one is a metric. One with a label is a row for people, too, in the
places that it names, and is in `more` of the JSON of the same places if it is not zero. Rows that put several figures
into a sentence are made where they are shown, from the same `Figures`.

A share or a mean rests on something that was counted. Without it there is no number anywhere: null in JSON, with the
reason in `unknown`, no sample among the metrics, and a dash for people (`telemetry/text`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Flag, auto

from msgspec import UNSET, Struct, UnsetType

from gossamer.model.figures import MAX_DEPTH, MAX_LINKS_PER_PAGE, NOFOLLOW, TRUNCATED_PAGES, Figures
from gossamer.telemetry.text import count, size


class Place(Flag):
    """Where figures are shown to people. The report begins with the summary."""

    STATUS = auto()
    SUMMARY = auto()
    DASHBOARD = auto()


class Figure(Struct, frozen=True):
    """One number of a crawl: a metric, and with a label a row for people."""

    name: str
    help: str
    value: Callable[[Figures], float | None]  # in seconds, bytes, or as a share of 1; None: there is no evidence
    label: str = ""
    draw: Callable[[float], str] = count
    places: Place = Place.STATUS | Place.SUMMARY | Place.DASHBOARD


COUNTERS = (
    Figure("pages", "Pages: answers with status 200 of a type that is stored.", lambda f: f.totals.pages),
    Figure("html_pages", "Pages that are HTML.", lambda f: f.totals.html_pages),
    Figure("errors", "Fetches without an HTTP answer, or with 4xx or 5xx.", lambda f: f.totals.errors),
    Figure("bytes", "Bytes received.", lambda f: f.totals.bytes),
    Figure("content_bytes", "Bytes of pages, decoded.", lambda f: f.totals.content_bytes),
    Figure("words", "Words of pages.", lambda f: f.totals.words),
    Figure("links", "Links found.", lambda f: f.totals.links),
    Figure("excluded_links", "Links that a rule of the crawl did not queue.", lambda f: f.totals.excluded),
    Figure("urls_seen", "Distinct URLs that were accepted.", lambda f: f.totals.urls_seen),
    Figure("unique_hosts", "Hosts with at least one page.", lambda f: f.totals.unique_hosts),
    Figure("unique_domains", "Registrable domains with at least one page.", lambda f: f.totals.unique_domains),
    Figure("robots_disallowed", "URLs that robots.txt forbids.", lambda f: f.totals.robots_disallowed),
    Figure("robots_fetches", "Requests for robots.txt.", lambda f: f.totals.robots_fetches),
    Figure("failed_lookups", "Name look-ups without a usable address.", lambda f: f.totals.failed_lookups),
    Figure("retries", "Fetches that failed and are made again.", lambda f: f.totals.retries),
    Figure("evicted_urls", "URLs that left the queue because of its maximum length.", lambda f: f.totals.evicted),
    Figure("dropped_links", "Links to be held back, beyond the cap of their host.", lambda f: f.totals.held_dropped),
    Figure("requisites", "Requisites of pages that were fetched and stored.", lambda f: f.totals.requisites),
    Figure("requisite_bytes", "Bytes of requisites, decoded.", lambda f: f.totals.requisite_bytes),
    Figure("failed_requisites", "Requisites that could not be fetched.", lambda f: f.totals.requisites_failed),
    Figure("disallowed_requisites", "Requisites that robots.txt forbids.", lambda f: f.totals.requisites_denied),
    Figure("refused_requisites", "Requisites that a rule refused.", lambda f: f.totals.requisites_refused),
    Figure("cut_requisites", "Requisites beyond the limit for one page.", lambda f: f.totals.requisites_cut),
    Figure("deep_links", "Links of pages at --max-depth.", lambda f: f.totals.cuts.get(MAX_DEPTH, 0)),
    Figure("capped_links", "Links over the limit per page.", lambda f: f.totals.cuts.get(MAX_LINKS_PER_PAGE, 0)),
    Figure("nofollow_links", "Links of pages with nofollow.", lambda f: f.totals.cuts.get(NOFOLLOW, 0)),
    Figure("truncated_pages", "Pages that are incomplete.", lambda f: f.totals.cuts.get(TRUNCATED_PAGES, 0)),
    Figure("crawl_seconds", "Time of all runs.", lambda f: f.totals.seconds),
    Figure("cpu_seconds", "CPU time of all processes.", lambda f: f.cpu_seconds),
    Figure("runs", "Runs of the crawl.", lambda f: f.totals.runs),
    Figure("spam_pages", "Pages that are spam.", lambda f: f.totals.spam_pages),
    Figure("worker_deaths", "Workers that died in this run.", lambda f: f.worker_deaths),
    Figure("failed_writes", "Writes to a store that failed, and were repeated.", lambda f: f.failed_writes),
    Figure("clock_jumps", "Jumps of the machine's clock by more than 5 s.", lambda f: f.clock_jumps),
)
GAUGES = (
    Figure(
        "due_urls",
        "URLs that are due again and wait for their host.",
        lambda f: f.revisits.waiting if f.revisits else 0,
    ),
    Figure("freshness_ratio", "Share of copies that are fresh.", lambda f: f.freshness),
    Figure("process_start_time_seconds", "When this run began, since 1970; 0: not known.", lambda f: f.started_at),
    Figure("queued_requisites", "Requisites of pages that are queued.", lambda f: f.requisites_queued),
    Figure("in_flight_requests", "Requests that are on their way.", lambda f: f.in_flight),
    Figure("workers", "Processes that fetch.", lambda f: f.workers),
    Figure("private_bytes", "Private memory of all processes.", lambda f: f.private_bytes),
    Figure("peak_private_bytes", "The most private memory of this run.", lambda f: f.peak_private_bytes),
    Figure("peak_resident_bytes", "The most resident memory of a process.", lambda f: f.peak_rss_bytes),
    Figure("memory_ceiling_bytes", "Memory that the crawl may use; 0: not known.", lambda f: f.memory_ceiling_bytes),
    Figure(
        "open_files",
        "Open files of the process that has most.",
        lambda f: f.open_files,
        "open files",
        count,
        Place.DASHBOARD,
    ),
    Figure(
        "free_bytes",
        "Free bytes on the disk of the crawl folder.",
        lambda f: f.free_bytes,
        "disk",
        lambda free: f"{size(free)} free",
        Place.DASHBOARD,
    ),
    Figure("loop_stall_p99_seconds", "How long an event loop was held, p99.", lambda f: f.loop_stall_p99_ms / 1000),
    Figure("loop_stall_max_seconds", "How long an event loop was held at most.", lambda f: f.loop_stall_max_ms / 1000),
    Figure(
        "core_wait_p99_seconds", "How long an event loop waited for a core, p99.", lambda f: f.core_wait_p99_ms / 1000
    ),
    Figure("batch_fill_pages", "Pages per batch of a store; without one, per commit.", lambda f: f.batch_fill),
    Figure(
        "compression_ratio",
        "Bytes of the archive's records per byte of its files.",
        lambda f: f.compression_ratio,
        "compression",
        lambda ratio: f"{ratio:.1f} to 1",
        Place.DASHBOARD,
    ),
)


class Evidence(Struct, frozen=True):
    """A share or a mean, and why there is none."""

    name: str
    value: Callable[[Figures], float | None]
    missing: str


RESTING_ON_EVIDENCE = (
    Evidence("error_rate", lambda f: f.error_rate, "nothing was fetched yet"),
    Evidence("html_share", lambda f: f.html_share, "there is no page yet"),
    Evidence("pages_per_second", lambda f: f.pages_per_second, "the crawl has taken no time yet"),
    Evidence("cpu_ms_per_page", lambda f: f.cpu_ms_per_page, "there is no page yet"),
    Evidence("freshness", lambda f: f.freshness if f.revisits else 1.0, "no page was visited again yet"),
)


def unknown(figures: Figures) -> dict[str, str] | UnsetType:
    """Return why there is no number, by the name of each figure that has none; `UNSET` if all have one."""
    return {each.name: each.missing for each in RESTING_ON_EVIDENCE if each.value(figures) is None} or UNSET


_LABELLED = tuple(figure for figure in (*COUNTERS, *GAUGES) if figure.label)


def labelled(figures: Figures, place: Place) -> dict[str, float] | UnsetType:
    """Return the figures with a label that a place shows, by name; `UNSET` if there are none."""
    found = {each.name: each.value(figures) for each in _LABELLED if place in each.places}
    return {name: value for name, value in found.items() if value} or UNSET


def rows_of(more: Mapping[str, float] | UnsetType) -> list[tuple[str, str]]:
    """Return the rows for people of what `labelled` has found."""
    known = {} if isinstance(more, UnsetType) else more
    return [(each.label, each.draw(known[each.name])) for each in _LABELLED if each.name in known]
