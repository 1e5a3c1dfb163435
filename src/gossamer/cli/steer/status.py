"""`gossamer status DIR`: is the crawl running, what is its progress, and what does it wait for?

It also says what the speed is bound by, how long the crawl needs for what is queued, and what is wrong.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path

import msgspec

from gossamer.cli.cluster.ledger import ledger_status, to_json
from gossamer.cli.cluster.ledger import render as render_ledger
from gossamer.control.record import is_ledger_url
from gossamer.model.errors import GossamerError
from gossamer.model.figures import Figures, RunState
from gossamer.reading.folder import CrawlReader
from gossamer.reading.status import CrawlStatus, crawl_status
from gossamer.report.terminal import moment
from gossamer.telemetry.figure_list import rows_of
from gossamer.telemetry.summary import (
    CUT_BECAUSE,
    CUT_BY_LIMITS,
    ENDED_WITHOUT_QUEUE,
    REASONS,
    cuts_text,
    held_because,
    held_text,
    requisites_text,
    visits_text,
)
from gossamer.telemetry.text import count, decimal, duration, percent, plural, printable, size

ANSWER_WITHIN_S = 3.0  # else what is committed is shown


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", help="the crawl folder, or the ledger that nodes share")
    parser.add_argument("--json", action="store_true", help="print the status as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    if is_ledger_url(arguments.dir):
        found = ledger_status(arguments.dir)
        print(to_json(found) if arguments.json else render_ledger(found))
        return 0
    with CrawlReader(Path(arguments.dir)) as crawl:
        status = crawl_status(crawl, _live(crawl) if crawl.is_running else None)
    print(msgspec.json.encode(status).decode() if arguments.json else render(status))
    return 0


def _live(crawl: CrawlReader) -> Figures | None:
    """Return the figures of the process that runs the crawl, if it answers."""
    from gossamer.control.running import query

    with suppress(
        GossamerError, msgspec.ValidationError
    ):  # it has just ended, is about to begin, or of another version
        return msgspec.convert(query(crawl.folder.state, "figures", within_s=ANSWER_WITHIN_S), Figures)
    return None


def render(status: CrawlStatus) -> str:
    limit = f" of at most {count(status.max_pages)}" if status.max_pages else ""
    ago = f", {duration(status.quiet_s)} ago" if status.last_activity_at else ""
    states = ", ".join(f"{count(number)} {name.replace('_', ' ')}" for name, number in status.hosts.items() if number)
    rows = [
        ("state", _state(status)),
        ("pages", f"{count(status.pages)}{limit}, {decimal(status.pages_per_second)}/s{_lately(status)}"),
        ("queued", f"{plural(status.urls_queued, 'URL')}{_parts_of_queue(status)}"),
        ("errors", f"{count(status.errors)} of {plural(status.fetches, 'fetch')} ({percent(status.error_rate)})"),
        ("hosts", states or "none"),
        ("domains", f"{count(status.unique_domains)} with pages"),
        ("volume", f"{size(status.bytes)} received in {duration(status.seconds)}, {plural(status.runs, 'run')}"),
        *rows_of(status.more),
        ("last event", f"{moment(status.last_activity_at)} UTC{ago}: {printable(status.last_activity, 60)}"),
    ]
    if status.bound_by is None or not status.is_running:
        rows.append(("waits for", printable(status.waits_for)))
    rows += [("", printable(line)) for line in status.parked]
    rows += _outlook(status)
    if status.visits.all or status.revisits is not None:
        freshness = status.revisits.freshness if status.revisits is not None else None
        held_domains = status.revisits.held_domains if status.revisits is not None else 0
        rows.insert(2, ("again", visits_text(status.visits, freshness, held_domains)))
    if status.requisites is not None:
        rows.insert(2, ("needed", requisites_text(status.requisites)))
    if cuts := cuts_text(status.cuts):
        rows.insert(3, ("left out", cuts))
    held = held_text(status.held, status.held_dropped)
    if held:
        rows.insert(3, ("held back", held))
    if status.released:
        rows.insert(3, ("released", f"{plural(status.released, 'URL')} from quarantine, queued with the next run"))
    if status.evicted:
        rows.insert(3, ("evicted", f"{plural(status.evicted, 'URL')}, by --max-queued"))
    return "\n".join([f"Crawl {printable(status.out)}", *(f"  {name:<10} {text}" for name, text in rows)])


def _parts_of_queue(status: CrawlStatus) -> str:
    """Return what the queue consists of; nothing if all of it will be fetched."""
    parked = f"parked at hosts that wait for longer than --max-wait ({status.max_wait_s:g} s)"
    parts = [
        (status.urls_over_budget, "over budget"),
        (status.urls_retried, "waiting for a retry"),
        (status.urls_parked, parked),
    ]
    if not any(number for number, _ in parts):
        return ""
    rest = max(0, status.urls_queued - sum(number for number, _ in parts))
    return ": " + ", ".join(f"{count(number)} {what}" for number, what in ((rest, "to be fetched"), *parts) if number)


def _lately(status: CrawlStatus) -> str:
    """Return how fast a running crawl is now."""
    lately = status.rates.get("10s") if status.is_running and status.state is RunState.RUNNING else None
    return "" if lately is None else f" on average, {lately.pages:.1f}/s now"


def _outlook(status: CrawlStatus) -> list[tuple[str, str]]:
    """Return what binds the crawl, how long it needs, and what is wrong with it."""
    rows = []
    if status.bound_by is not None:
        rows.append(("bound by", f"{status.bound_by.resource}: {printable(status.bound_by.evidence)}"))
    if status.forecast is not None and status.forecast.text:
        # The next run finds out which of the queued URLs a robots.txt forbids.
        bound = "" if status.is_running else "at most: "
        rows.append(("forecast", bound + printable(status.forecast.text)))
    if status.is_running and status.private_bytes:
        rows.append(("memory", f"{size(status.private_bytes)} private"))
    for each in status.warnings:
        kind = "lasts since" if each.is_lasting else "at"
        rows.append(("warning", f"{printable(each.text)} ({kind} {moment(each.since)} UTC)"))
    return rows


def _state(status: CrawlStatus) -> str:
    if status.state is RunState.PAUSED:
        since = f" for {duration(status.paused_seconds)}" if status.paused_seconds else ""
        return f"paused{since}, process {status.owner}; 'gossamer resume {status.out}' goes on with it"
    if status.is_running and status.state is RunState.STOPPING:
        waits = f"waits for {plural(status.in_flight, 'request')} in flight" if status.in_flight else "commits"
        return f"stopping, process {status.owner}: {waits}"
    if status.is_between:
        return f"begins or ends, process {status.owner}; it takes no commands now"
    if status.is_running:
        return f"running, process {status.owner}"
    if status.finished == "interrupted":
        return f"interrupted: its process is gone; 'gossamer resume {status.out}' continues it"
    if status.finished in ENDED_WITHOUT_QUEUE and (status.held or status.held_dropped):
        return f"finished ({status.finished}): {held_because(status.held, status.held_dropped)}"
    if status.finished == "exhausted" and status.evicted:
        return "finished (exhausted): nothing is queued any more, but URLs were left out"
    if status.finished == "exhausted" and not CUT_BY_LIMITS.isdisjoint(status.cuts):
        return f"finished (exhausted): {CUT_BECAUSE}"
    if status.finished in ("signal", "stopped", "failed"):
        why = REASONS[status.finished].partition(";")[0]
        return f"{why}; 'gossamer resume {status.out}' continues it"
    word = "stopped" if status.finished == "max_time" else "finished"
    return f"{word} ({status.finished}): {REASONS.get(status.finished, status.finished)}"
