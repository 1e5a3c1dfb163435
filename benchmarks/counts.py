"""Do all numbers agree? A crawl of a web with every behaviour, each number as every place shows it, beside the log.

    python -m benchmarks.counts [--pages 400] [--markdown]

The log is that of the servers: it has every request that reached one. What never reached one (names without address,
refused connections), and retries that were still waiting at the end, are in the column of the log as the events have
them. A dash: the place does not show the number. Exit status 1 if two places differ.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from gossamer.model.events import LOOKUP, REQUEST_EVENTS, Event, EventName, outcome_of
from gossamer.model.figures import is_error
from gossamer.model.records import UrlRecord, UrlState
from gossamer.reading.folder import CrawlReader
from gossamer.sim.running import RunningWeb
from gossamer.sim.web.log import LoggedRequest
from gossamer.sim.web.web import WebPlan, preset
from gossamer.telemetry.event_log import read_events
from gossamer.telemetry.metrics import render

PLACES = ("log", "summary", "status", "report", "events", "catalog", "missing", "export", "metrics")
OPTIONS = (
    *("--politeness-ms", "5", "--retry-wait", "0.05", "--timeout", "1", "--max-wait", "1", "--no-progress", "--json"),
    *(
        "--scope",
        "any",
        "--max-depth",
        "2",
        "--max-links-per-page",
        "12",
        "--max-bytes",
        "9000",
        "--max-hosts-per-domain",
        "1",
    ),
    *("--exclude-pattern", "/archive", "--max-pages-per-host", "30"),
)


class Seen(Struct):
    """What the places say: places by number."""

    numbers: dict[str, dict[str, int]] = {}

    def add(self, place: str, **numbers: int) -> None:
        for name, value in numbers.items():
            self.numbers.setdefault(name, {})[place] = value

    def different(self) -> list[str]:
        """Return the numbers that two places do not agree on."""
        return [name for name, places in self.numbers.items() if len(set(places.values())) > 1]


def every_behaviour(pages: int) -> WebPlan:
    """Return a web with errors, redirects, rules, copies, slow and strict hosts, and hosts that cannot be reached."""
    return preset("rough", domains=14, hosts=24, pages=pages, slow=0.1, slow_s=0.2, strict=0.1, closed=0.05)


def gossamer(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "gossamer", *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.stdout


def compare(pages: int) -> Seen:
    """Crawl, and read every number wherever it is."""
    with RunningWeb(every_behaviour(pages)) as web, tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "crawl"
        where = ["--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "-o", str(out)]
        summary = json.loads(gossamer("crawl", *web.seeds()[::2], *where, *OPTIONS).splitlines()[-1])
        seen = Seen()
        events = list(read_events(out / "events"))
        add_log(seen, web.log(), events)
        add_summary(seen, "summary", summary)
        add_status(seen, json.loads(gossamer("status", str(out), "--json")))
        report = json.loads(gossamer("report", str(out), "--json"))
        add_report(seen, report)
        add_events(seen, events)
        with CrawlReader(out) as crawl:
            rows = [row for _, row in crawl.ledger.urls()]
            add_catalog(seen, rows, [(host.fetches, host.errors, host.bytes) for host in crawl.ledger.hosts()])
            add_metrics(seen, render(crawl.figures()))
        missing = json.loads(gossamer("missing", str(out), "--json", "--limit", "0").splitlines()[0])
        add_missing(seen, missing)
        add_export(seen, gossamer("export", str(out), "--format", "jsonl", "-o", "-").splitlines())
    return seen


def add_log(seen: Seen, log: Iterable[LoggedRequest], events: Iterable[Event]) -> None:
    """Add what the servers saw, and what never reached one."""
    requests = [request for request in log if request.status or request.finished_at]
    statuses = Counter(request.status for request in requests)
    robots = [request for request in requests if request.target == "/robots.txt"]
    is_wrong = {id(request): request.status == 0 or request.status >= 400 for request in requests}
    for request in robots:
        if 400 <= request.status < 500 and request.status != 429:
            is_wrong[id(request)] = False
    urls = [request for request in requests if request.target != "/robots.txt"]
    pages = [
        request
        for request in urls
        if request.status == 200 and not request.target.endswith((".xml", ".xml.gz", ".pdf"))
    ]
    unreached = [event for event in events if event.event in REQUEST_EVENTS and not event.requests]
    seen.add(
        "log",
        fetches=len(requests) + len(unreached),
        errors=sum(is_wrong.values()) + len(unreached),
        pages=len(pages),
        robots=len(robots) + sum(event.kind == "robots" for event in unreached),
        retries=len(urls) - len({(request.host, request.target) for request in urls}) + still_waiting(events),
        answers_2xx=sum(number for status, number in statuses.items() if 200 <= status < 300),
        answers_3xx=sum(number for status, number in statuses.items() if 300 <= status < 400),
        answers_4xx=sum(number for status, number in statuses.items() if 400 <= status < 500),
        answers_5xx=sum(number for status, number in statuses.items() if status >= 500),
    )


def still_waiting(events: Iterable[Event]) -> int:
    """Return how many URLs failed, and were not requested again before the crawl ended."""
    last = {event.url: event.event for event in events if event.event in REQUEST_EVENTS}
    return sum(event is EventName.RETRY for event in last.values())


def classes(statuses: Mapping[str, int]) -> dict[str, int]:
    """Return the answers by the class of their status."""
    found = dict.fromkeys((f"answers_{digit}xx" for digit in "2345"), 0)
    for status, number in statuses.items():
        found[f"answers_{status[0]}xx"] = found.get(f"answers_{status[0]}xx", 0) + number
    return found


def add_summary(seen: Seen, place: str, summary: Mapping[str, Any]) -> None:
    cuts = summary["cuts"]
    seen.add(
        place,
        pages=summary["pages"],
        fetches=summary["fetches"],
        errors=summary["errors"],
        bytes=summary["bytes"],
        dead=summary["dead"],
        queued=summary["urls_queued"],
        over_budget=summary["urls_over_budget"],
        parked=summary["urls_parked"],
        known=summary["urls_seen"],
        forbidden=summary["robots_disallowed"],
        duplicates=summary["duplicates"],
        held=sum(summary["held"].values()),
        refused=cuts.get("rules", 0),
        too_deep=cuts.get("max_depth", 0),
        links_cut=cuts.get("max_links_per_page", 0),
        truncated=cuts.get("truncated_pages", 0),
    )


def add_status(seen: Seen, status: Mapping[str, Any]) -> None:
    cuts = status["cuts"]
    seen.add(
        "status",
        pages=status["pages"],
        fetches=status["fetches"],
        errors=status["errors"],
        bytes=status["bytes"],
        queued=status["urls_queued"],
        over_budget=status["urls_over_budget"],
        parked=status["urls_parked"],
        known=status["urls_seen"],
        held=sum(status["held"].values()),
        refused=cuts.get("rules", 0),
        too_deep=cuts.get("max_depth", 0),
        links_cut=cuts.get("max_links_per_page", 0),
        truncated=cuts.get("truncated_pages", 0),
    )


def add_report(seen: Seen, report: Mapping[str, Any]) -> None:
    urls = {one["name"]: one["count"] for one in report["urls"]}
    left = report["left"]
    seen.add(
        "report",
        pages=sum(report["corpus"]["depths"]),
        fetches=sum(one["count"] for one in report["fetches"]["outcomes"]),
        errors=sum(one["count"] for one in report["fetches"]["errors"]),
        words=report["corpus"]["words"],
        dead=sum(one["count"] for one in left["dead"]),
        queued=left["queued"],
        known=sum(urls.values()),
        forbidden=urls.get("forbidden by robots.txt", 0),
        duplicates=report["corpus"]["duplicates"],
        held=sum(one["count"] for one in left["held"]),
        truncated=sum(one["count"] for one in report["corpus"]["truncated"]),
        robots=report["robots"]["fetched"] + report["robots"]["unreachable"],
        **classes({one["name"]: one["count"] for one in report["fetches"]["statuses"]}),
    )


def add_events(seen: Seen, events: Iterable[Event]) -> None:
    made: dict[tuple[int, int] | int, Event] = {}
    named: Counter[EventName] = Counter()
    for number, event in enumerate(events):
        named[event.event] += 1
        if event.event in REQUEST_EVENTS:  # a task counts once, however often its event was written
            made[(event.order, 0) if event.order else -number] = event
    requests = list(made.values())
    pages = [event for event in requests if event.event is EventName.FETCH_OK]
    holds = {
        "first_pass",
        "calendar",
        "hosts_per_domain",
        "link_backlog",
        "max_hosts_per_address",
        "quarantine",
        "spam",
    }
    capped = [event for event in events if event.event is EventName.LINKS_CAPPED]
    excluded = [event for event in events if event.event is EventName.EXCLUDED_BY_RULE and event.reason not in holds]
    seen.add(
        "events",
        pages=len(pages),
        fetches=len(requests),
        errors=sum(is_error(outcome_of(event), is_robots=event.kind == "robots") for event in requests),
        robots=sum(event.kind == "robots" for event in requests),
        bytes=sum(event.bytes for event in requests),
        retries=named[EventName.RETRY],
        forbidden=named[EventName.ROBOTS_DISALLOW],
        duplicates=named[EventName.DUPLICATE],
        refused=len(excluded),
        links_cut=sum(event.links for event in capped),
        truncated=sum(bool(event.truncated) for event in pages),
        **classes(Counter(str(event.status) for event in requests if event.status and event.kind != LOOKUP)),
    )


def add_catalog(seen: Seen, rows: Iterable[UrlRecord], hosts: Iterable[tuple[int, int, int]]) -> None:
    known = [row for row in rows if row.kind.name != "REQUISITE"]
    pages = [row for row in known if row.outcome in ("ok", "not_modified") and row.kind.name == "PAGE"]
    counts = list(hosts)
    seen.add(
        "catalog",
        pages=len(pages),
        fetches=sum(fetches for fetches, _, _ in counts),
        errors=sum(errors for _, errors, _ in counts),
        bytes=sum(size for _, _, size in counts),
        words=sum(row.words for row in pages),
        dead=sum(row.state is UrlState.DEAD for row in known),
        queued=sum(row.state is UrlState.QUEUED for row in known),
        known=len(known),
        forbidden=sum(row.outcome == "robots_denied" for row in known),
        duplicates=sum(bool(row.duplicate_of) for row in pages),
        truncated=sum(bool(row.truncated) for row in pages),
    )


def add_metrics(seen: Seen, text: str) -> None:
    values: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            values[name.removeprefix("gossamer_")] = float(value)

    def total(prefix: str) -> int:
        return int(sum(value for name, value in values.items() if name.startswith(prefix)))

    seen.add(
        "metrics",
        pages=int(values["pages_total"]),
        fetches=total("fetches_total{"),
        errors=int(values["errors_total"]),
        robots=int(values["robots_fetches_total"]),
        bytes=int(values["bytes_total"]),
        words=int(values["words_total"]),
        retries=int(values["retries_total"]),
        dead=int(values['urls{state="dead"}']),
        queued=int(values['urls{state="queued"}']),
        parked=int(values['urls{state="parked"}']),
        known=int(values["urls_seen_total"]),
        forbidden=int(values["robots_disallowed_total"]),
        duplicates=int(values['duplicates_total{kind="exact"}']),
        held=total("held_urls{"),
        refused=int(values["excluded_links_total"]),
        too_deep=int(values["deep_links_total"]),
        links_cut=int(values["capped_links_total"]),
        truncated=int(values["truncated_pages_total"]),
        **{f"answers_{digit}xx": int(values.get(f'answers_total{{class="{digit}xx"}}', 0)) for digit in "2345"},
    )


def add_missing(seen: Seen, head: Mapping[str, Any]) -> None:
    """Add what `missing` counts: it names each URL."""
    counted = {each["outcome"]: each["urls"] for each in head["counts"]}
    seen.add("missing", held=counted.get("held", 0), truncated=counted.get("truncated", 0), queued=head["queued"])


def add_export(seen: Seen, lines: Iterable[str]) -> None:
    """Add what the exported documents say, one of each page."""
    pages = [json.loads(line) for line in lines]
    seen.add(
        "export",
        pages=len(pages),
        words=sum(page["words"] for page in pages),
        duplicates=sum(bool(page["duplicate_of"]) and page["similarity"] == 1 for page in pages),
        truncated=sum(bool(page["truncated"]) for page in pages),
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="counts", description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=400)
    parser.add_argument("--markdown", action="store_true", help="print the table for the documentation")
    arguments = parser.parse_args()
    seen = compare(arguments.pages)
    wrong = seen.different()
    bar, edge = (" | ", "| ") if arguments.markdown else ("  ", "")
    print(edge + bar.join(f"{each:>9}" for each in ("number", *PLACES)))
    if arguments.markdown:
        print("|" + "---|" * (1 + len(PLACES)))
    for name, places in seen.numbers.items():
        cells = [f"{places[place]:,}" if place in places else "–" for place in PLACES]
        mark = "  DIFFERS" if name in wrong else ""
        print(edge + bar.join(f"{each:>9}" for each in (name.replace("_", " "), *cells)) + mark)
    print(f"{len(seen.numbers)} numbers, {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
