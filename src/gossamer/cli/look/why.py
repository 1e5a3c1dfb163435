"""`gossamer why DIR URL`: the whole history of a URL.

Where it was found, why it was refused or queued, when it was fetched, and where it is stored. An id is accepted, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import msgspec

from gossamer.backends.registry import object_store_in
from gossamer.cli.opening import add_crawl, open_view, warn_of_elsewhere
from gossamer.core.ledger.tables import HOST_VISITS
from gossamer.core.links.intake import URL_CHARS
from gossamer.model.records import ArchiveSpan, UrlRecord, UrlState
from gossamer.reading.archive_access import archive_files
from gossamer.reading.cluster import SharedReader
from gossamer.reading.view import CrawlView
from gossamer.reading.why.life import FOUND_AS, Life
from gossamer.reading.why.source import VisitHistory, life_as_json, life_in, visit_history
from gossamer.report.terminal import moment
from gossamer.telemetry.advice import advice_on
from gossamer.telemetry.text import count, duration, plural, printable, size

MAX_ATTEMPTS = 12  # that are listed: a page may have been fetched a thousand times
Lines = Iterator[tuple[str, str]]


def configure(parser: argparse.ArgumentParser) -> None:
    add_crawl(parser)
    parser.add_argument("url", metavar="URL", help="a URL, a bare domain, or the id of a URL in hex, as events show it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: the crawl never saw the URL."""
    with open_view(arguments) as crawl:
        life = life_in(crawl, arguments.url)
        if isinstance(crawl, SharedReader):
            warn_of_elsewhere(crawl, "the history in the events")
        if arguments.json:
            print(msgspec.json.encode(life_as_json(life)).decode())
        else:
            for name, text in _rendered(life, crawl):
                print(f"{name:<11} {printable(text, 2000)}".rstrip())
    return 0 if life.has_trace else 1


# -- output ---------------------------------------------------------------------------------------


def _rendered(life: Life, crawl: CrawlView) -> Lines:
    yield "url", life.url
    if life.key != life.url:
        yield "compared as", life.key
    yield "id", life.id
    yield "host", f"{life.host} (domain {life.domain})"
    yield "state", _state(life)
    yield from _origin(life)
    yield from _needed(life, crawl)
    if life.meta:
        yield "metadata", f"{life.meta}, attached to its link by a program"
    yield from _refused(life, crawl)
    yield from (("but known", f"{twin}: ask for that one") for twin in life.twins)
    yield "robots.txt", _robots(life, crawl.now)
    yield from (("pace", line) for line in (life.pace.lines() if life.pace is not None else ()))
    yield from _attempts(life)
    yield from (("note", note) for note in life.notes)
    yield from _advice(life, crawl)
    yield from _waiting(life)
    if life.row is not None and life.row.state is not UrlState.QUEUED:
        yield from _stored(life, life.row, crawl)
    yield from _node_place(life)


def _state(life: Life) -> str:
    row = life.row
    if row is None:
        if life.held_back:
            return f"held back {life.held_back}"
        if life.requisite is not None:
            return "no page: only needed by pages"
        return "not in the catalog" + ("" if life.has_trace else ": never seen")
    if row.state is UrlState.QUEUED:
        return "queued" + (f", {plural(row.attempt, 'attempt')} failed" if row.attempt else "")
    what = f"{row.outcome}{f' {row.status}' if row.status else ''}"
    error = f": {row.error}" if row.error else ""
    held = f"; held back {life.held_back}" if life.held_back else ""
    return f"{row.state.name.lower()}, {what}{error}, {moment(row.fetched_at)} UTC{held}"


def _origin(life: Life) -> Lines:
    row = life.row
    seed = life.seed
    if seed is not None:
        yield "seed", f"from the seed {seed.url}, with {seed.stated}"
    if row is None:
        return
    how = FOUND_AS[life.found_as]
    where = f" {life.ancestors[0].url}" if life.ancestors else ""
    yield "found", f"{moment(row.found_at)} UTC, depth {row.depth}, {how}{where}"
    for number, ancestor in enumerate(life.ancestors):
        above = life.ancestors[number + 1].url if number + 1 < len(life.ancestors) else ""
        yield "", f"  {ancestor.url}: depth {ancestor.depth}, {FOUND_AS[ancestor.source]} {above}".rstrip()


def _needed(life: Life, crawl: CrawlView) -> Lines:
    """Return what became of a URL as something that pages need to be shown."""
    found = life.requisite
    if found is None:
        return
    what = f"{found.outcome}{f' {found.status}' if found.status else ''}"
    ended = f", {what}{f': {found.error}' if found.error else ''}, {moment(found.fetched_at)} UTC"
    yield "needed", f"as a requisite of pages: {found.state}{ended if found.outcome else ''}"
    for each in found.named_by:
        yield "", f"  named by the {each.what} {each.url}"
    if found.redirect_to:
        yield "", f"  redirects to {found.redirect_to}"
    if found.archived is not None:
        yield "", f"  {found.content_type}, {size(found.content_bytes)}, archived in {_archived(found.archived, crawl)}"


def _refused(life: Life, crawl: CrawlView) -> Lines:
    for refusal in life.refusals if not life.held_back else ():
        when = f", {moment(refusal.at)} UTC" if refusal.at else ", decided now by the crawl's settings"
        yield "refused", f"{refusal.rule} ({refusal.detail}){when}"
    if life.row is None and not life.refusals and not life.attempts and not life.held_back and life.requisite is None:
        yield (
            "why not",
            "no rule refuses it: no fetched page links to it, or only pages at the maximum depth "
            f"({crawl.settings.max_depth}, or that of their seed; both can be raised) "
            f"or with more than {count(crawl.settings.max_links_per_page)} new links (or {URL_CHARS} times as many "
            "characters in their URLs)",
        )


def _robots(life: Life, now: float) -> str:
    robots = life.robots
    own = "; the host is your own (--own-host), so that does not matter" if robots.is_own else ""
    if not robots.is_known:
        return f"of {robots.origin} is unknown: never fetched, or it could not be reached{own}"
    verdict = "allowed" if robots.is_allowed else "not allowed" + own
    line = f"line {robots.line_number}: {robots.line}" if robots.line_number else "no rule matches it"
    delay = f"; crawl-delay {robots.crawl_delay_s:g} s" if robots.crawl_delay_s else ""
    age = duration(max(0.0, now - robots.fetched_at))
    return f"{verdict}: {line} ({robots.origin}, status {robots.status}, fetched {age} ago{delay})"


def _attempts(life: Life) -> Lines:
    shown = life.attempts[-MAX_ATTEMPTS:]
    if len(shown) < len(life.attempts):
        yield "fetched", f"{plural(len(life.attempts) - len(shown), 'time')} before; --json has all of them"
    for attempt in shown:
        what = f"{attempt.status} " if attempt.status else ""
        again = f", again after {duration(attempt.wait_s)}" if attempt.event == "retry" else ""
        target = f" to {attempt.target}" if attempt.target else ""
        reason = attempt.reason if attempt.reason not in ("", attempt.outcome) else attempt.outcome
        yield "fetched", f"{moment(attempt.at)} UTC, {what}{reason}{target}, {attempt.total_ms} ms{again}"


def _advice(life: Life, crawl: CrawlView) -> Lines:
    row = life.row
    advice = advice_on(row.outcome, row.status) if row is not None and row.state is UrlState.DEAD else ""
    if row is not None and advice:
        yield "what helps", f"{advice}; with it 'gossamer retry {crawl.name}' tries again"


def _waiting(life: Life) -> Lines:
    place = life.queue
    if place is not None:
        ahead = "far back" if place.ahead is None else f"{count(place.ahead)} before it"
        yield (
            "queue",
            f"priority {place.priority}, seq {place.seq}: {ahead}, {count(place.queued)} at its host in total",
        )
    yield from (("waits for", reason) for reason in life.waits_for)
    if life.place is not None and life.place.lacks_label and (life.row is None or life.row.state is UrlState.QUEUED):
        yield "waits for", f"a node with label {life.place.label}: regions are strict, and no live node has it"


def _visits(history: VisitHistory) -> Lines:
    for visit in history.visits:
        yield "visited", f"{moment(visit.at)} UTC, {visit.found}{f' ({visit.status})' if visit.status else ''}"
    how = "set by --revisit-class" if history.is_class_set else "by what it does"
    yield "class", f"{history.page_class}, {how}; changes about every {duration(history.changes_every_s)}"
    if not history.due_at:
        yield "next visit", f"none: it was not there {plural(history.misses, 'time')} in a row"
        return
    missing = f"; not there {plural(history.misses, 'time')} in a row" if history.misses else ""
    yield "next visit", f"{moment(history.due_at)} UTC, interval {duration(history.interval_s)}{missing}"
    if history.held_until:
        yield "waits for", f"its turn at {moment(history.held_until)} UTC: its domain has had its share of all visits"


def _stored(life: Life, row: UrlRecord, crawl: CrawlView) -> Lines:
    if row.redirect_to:
        yield "redirect to", row.redirect_to
    if row.content_type:
        cut = f", truncated ({row.truncated})" if row.truncated else ""
        language = f", language {row.language}" if row.language else ""
        yield "content", f"{row.content_type}, {size(row.content_bytes)}{language}{cut}"
    if row.title:
        yield "title", printable(row.title)
    if row.directives:
        yield "asks for", row.directives
    if row.usage:
        yield "usage", row.usage
    if row.lastmod:
        yield "changed", f"{row.lastmod}, according to its sitemap"
    yield from _judged(life, row)
    if row.visits > 1:
        yield "visits", count(row.visits)
    if row.revisit is not None:
        host = crawl.ledger.record(HOST_VISITS, crawl.ledger.host_id(life.host))
        yield from _visits(visit_history(row.revisit, host))
    if row.archived is not None:
        yield "archived", _archived(row.archived, crawl)


def _judged(life: Life, row: UrlRecord) -> Lines:
    if life.duplicate_of:
        yield "same as", life.duplicate_of
    if life.near_duplicate_of:
        yield "nearly as", f"{life.near_duplicate_of} (similarity {row.similarity:.2f})"
    if row.spam is not None:
        yield "spam", f"score {row.spam.score:g}: {', '.join(row.spam.signals)}"


def _node_place(life: Life) -> Lines:
    place = life.place
    if place is None:
        return
    state = "" if place.is_live else "; it is not alive: the next owner continues"
    owner = f"node {place.owner}, epoch {place.epoch}{state}" if place.owner else "no node owns it"
    known = [f"label {place.label}"] if place.label else []
    known += [f"its address is in {place.country}"] if place.country else []
    region = f" ({'; '.join(known)})" if known else ""
    yield "shard", f"{place.shard}{region}: {owner}"
    if place.stored_on:
        yield "stored on", f"node {place.stored_on}"


def _archived(span: ArchiveSpan, crawl: CrawlView) -> str:
    where = f"{span.file} at {span.offset}, {span.length} bytes"
    folder = crawl.folders.folder_of(span.file)
    stores = crawl.settings.store
    if folder is None and not object_store_in(stores):
        return f"{where}: its bytes lie elsewhere"
    record = archive_files(None if folder is None else folder.archive, stores).read(span)
    if record is None:
        return f"{where}: MISSING; 'gossamer verify' shows more"
    return f"{where} ({record.type} of {record.fields.get('warc-date', '')})"
