"""Builds the report of a crawl from ledger and events: report.json and report.html.

One pass over the events, one over the catalog, one over hosts and domains, and a sample of the archive;
memory does not grow with the crawl. Also works on a ledger that is open for reading only, while the crawl
runs: the report then shows what is committed. Costs: 2.5 µs per event, 2.1 µs per URL; 1.3 s for a
crawl of 100,000 pages with 300,000 events and 200,000 URLs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.model.errors import UsageError
from gossamer.model.events import masked_values
from gossamer.model.figures import Figures, Totals
from gossamer.model.state import CrawlState
from gossamer.reading.aggregates import NamedCount
from gossamer.reading.outlook import outlook_of
from gossamer.report.catalog import CatalogFigures, DomainFigures, HostTables
from gossamer.report.events import EventFigures
from gossamer.report.findings import Findings
from gossamer.report.html import render_html
from gossamer.report.languages import AllLanguages, ReadRecord
from gossamer.report.record import Left, Report, RobotsFigures
from gossamer.settings.load import from_file, merged
from gossamer.settings.model import Settings
from gossamer.telemetry.summary import summary_of
from gossamer.telemetry.text import agreeing, percent

if TYPE_CHECKING:
    from gossamer.ports import Catalog

HIGH_ERROR_RATE = 0.1
MIN_FETCHES_TO_JUDGE = 50


def write_report(out: Path, ledger: Catalog, figures: Figures, settings: Settings) -> None:
    """Write both reports into the crawl folder, each atomically."""
    report = build_whole_report(_sources(out, ledger), settings, figures, time.time())
    write_whole(out / "report.json", msgspec.json.format(msgspec.json.encode(report), indent=2))
    write_whole(out / "report.html", render_html(report).encode())


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically: a reader sees all of it or none."""
    unfinished = path.with_name(f".{path.name}.tmp")
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def build_report(out: Path, ledger: Catalog, figures: Figures, now: float) -> Report:
    """Return the report of a crawl folder; with `--mask-queries` no text in it has the value of a query parameter."""
    return build_whole_report(_sources(out, ledger), _settings(out), figures, now)


def _sources(out: Path, ledger: Catalog) -> ReportSources:
    return ReportSources([out / "events"], ledger, ArchiveFiles(out / "archive").read)


class ReportSources(Struct, frozen=True):
    """What a report is read from, besides the figures."""

    events: Sequence[Path]  # one or more folders
    ledger: Catalog
    read_record: ReadRecord  # of the archive, as far as it is on this machine
    reads_all_texts: bool = False  # for their languages, instead of a sample


def build_whole_report(
    sources: ReportSources, settings: Settings, figures: Figures, now: float, on_row: Callable[[], None] = lambda: None
) -> Report:
    """Return the report of a crawl; `on_row` is called for every URL of the catalog."""
    report = _build(sources, settings, figures, now, on_row)
    if settings.mask_queries:
        report = msgspec.convert(masked_values(msgspec.to_builtins(report)), Report)
    return report


def _build(
    sources: ReportSources, settings: Settings, figures: Figures, now: float, on_row: Callable[[], None]
) -> Report:
    events = EventFigures()
    catalog = CatalogFigures(AllLanguages(sources.read_record) if sources.reads_all_texts else None)
    domains = DomainFigures()
    ledger = sources.ledger
    events.read(sources.events, (ledger.crawl_state() or CrawlState()).event_ends)
    found = Findings()
    for _, row in ledger.urls():
        catalog.add(row)
        found.add(row)
        on_row()
    for domain in ledger.domains():
        domains.add(domain)
    outlook = outlook_of(settings, figures.totals, ledger.domains(), now)
    hosts = HostTables(now, outlook, figures.totals.seconds, events.rate_limited)
    for host in ledger.hosts():
        hosts.add(host)
    return Report(
        summary=summary_of(figures),
        made_at=round(now, 3),
        started_at=events.started_at,
        last_event_at=events.last_at,
        runs=events.runs,
        recovered_files=events.recovered_files,
        bin_s=events.rates.width_s,
        timeline=events.timeline(figures.totals, catalog.queued),
        fetches=events.fetches(),
        robots=_robots(events, catalog),
        corpus=catalog.corpus(figures.totals, domains, catalog.sample.detect(sources.read_record)),
        hosts=hosts.figures(),
        left=_left(events, catalog, hosts, figures.totals),
        urls=catalog.urls(),
        warnings=_warnings(events, figures),
        findings=found.figures(ledger),
        requisites=catalog.requisites.figures(figures.totals),
    )


def _robots(events: EventFigures, catalog: CatalogFigures) -> RobotsFigures:
    return RobotsFigures(
        fetched=events.robots_fetched,
        unreachable=events.robots_unreachable,
        answers=events.robots_answers.top(20),
        disallowed=catalog.disallowed,
        rules=catalog.rules.top(20),
    )


def _left(events: EventFigures, catalog: CatalogFigures, hosts: HostTables, totals: Totals) -> Left:
    return Left(
        queued=catalog.queued,
        queued_by_depth=catalog.queued_by_depth(),
        hosts=hosts.left(),
        finish_s=round(hosts.finish_s, 1),
        dead=catalog.dead(),
        excluded=events.excluded.top(20),
        types_refused=catalog.types_refused,
        held=[NamedCount(rule, urls) for rule, urls in sorted(totals.held.items())],
        held_dropped=totals.held_dropped,
        evicted=totals.evicted,
    )


def _settings(out: Path) -> Settings:
    """Return the settings of the folder."""
    try:
        return merged((str(out), from_file(out / "crawl.toml")))
    except UsageError:
        return Settings()


def _warnings(events: EventFigures, figures: Figures) -> list[str]:
    found = events.warnings.lines()
    if figures.totals.fetches >= MIN_FETCHES_TO_JUDGE and (figures.error_rate or 0.0) > HIGH_ERROR_RATE:
        found.append(f"many errors: {percent(figures.error_rate)} of all fetches")
    if events.workers_lost:
        found.append(
            f"{agreeing(events.workers_lost, 'order', 'was', 'were')} returned to the queue: a worker died, or a stop"
        )
    return found
