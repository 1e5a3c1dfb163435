"""What does an answer mean for the crawl? Everything in it becomes one small result.

CPU only and without state but for the memo of links, so it runs in the event loop, in a thread, or again over the
archive after a crash, with equal results. What the pages themselves contain is read by `runtime/workers/page`.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.dedup.scheme import NearDup
from gossamer.core.robots.rules import MAX_ROBOTS_BYTES
from gossamer.core.url.forms import redirect_target
from gossamer.core.url.href_memo import MEMO_HREFS, HrefMemo
from gossamer.fetch.freshness import fresh_s
from gossamer.fetch.retry_after import retry_after_s
from gossamer.model.exchanges import Exchange
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.parse.dispatch import declared_type
from gossamer.parse.types.directives import ROBOTS_TOKEN
from gossamer.runtime.watch.crash import describe
from gossamer.runtime.workers.page import read_page, read_requisite, read_sitemap, read_validators

# Constants: up to Python 3.11, reading a member from its class takes 80 ns.
_OK = Outcome.OK
_OTHER_SUCCESS = Outcome.OTHER_SUCCESS
_REDIRECT = Outcome.REDIRECT
_PAGE = FetchKind.PAGE
# Answers to HEAD that say little: some servers know no HEAD, and some frameworks have no route for it.
HEAD_REFUSALS = frozenset({400, 403, 404, 405, 406, 501})


class WorkerRules(Struct, frozen=True):
    number: int = 0
    parses_pdf: bool = True
    parses_pdf_deep: bool = False
    accepts: tuple[str, ...] = ()
    html_only: bool = False  # beside what it accepts
    robots_token: str = ROBOTS_TOKEN  # of directives in pages
    previews: int = 0  # pages of which the first words are read, for whoever watches the crawl
    near_dup: NearDup = NearDup.MINHASH
    max_hrefs: int = MEMO_HREFS  # in the cache of links
    sketches: bool = False  # what is needed to fetch pages again: sketches of their texts, how long they stay fresh
    judges_spam: bool = True
    parsers: tuple[str, ...] = ()  # plugins
    reads_anchors: bool = False  # text and rel of links, for hooks and plugins that decide about them
    checks_only: bool = False  # no page is read: see `is_head`
    max_requisites: int = 0  # of one page, to be fetched; 0: they are not looked for


def is_head(task: FetchTask) -> bool:
    """Return whether a URL that is only checked is asked for by HEAD: the first time, since some servers refuse it."""
    return task.kind is FetchKind.PAGE and not task.attempt


def read_answer(task: FetchTask, exchange: Exchange, rules: WorkerRules, memo: HrefMemo | None = None) -> Result:
    """Return the result of an answer, without links that are decided according to the memo. CPU only: thread-safe."""
    named = exchange.named
    result = Result(
        task.id,
        exchange.outcome,
        status=exchange.status,
        error=exchange.error,
        sent_at=exchange.sent_at,
        requests_sent=exchange.requests_sent,
        first_byte_at=exchange.first_byte_at,
        finished_at=exchange.finished_at,
        address=exchange.address,
        wire_bytes=exchange.wire_bytes,
        content_bytes=len(exchange.content),
        truncated=exchange.truncated,
        connect_s=exchange.connect_s,
        tls_s=exchange.tls_s,
        retry_after_s=retry_after_s(named["retry-after"], exchange.finished_at) if "retry-after" in named else -1.0,
    )
    if rules.sketches and exchange.outcome in (Outcome.OK, Outcome.NOT_MODIFIED):
        result.fresh_s = fresh_s(named, exchange.finished_at)
    if exchange.outcome is _REDIRECT:
        _read_redirect(exchange, result)
    elif rules.checks_only and task.kind is FetchKind.PAGE:
        _read_check(task, exchange, result)
    elif exchange.outcome is _OK or exchange.outcome is _OTHER_SUCCESS:
        if task.kind is _PAGE:
            read_page(task, exchange, result, rules, memo)
            if exchange.outcome is _OTHER_SUCCESS:
                result.content_hash = result.signature = b""  # it is no page: nothing is a copy of it
        else:
            result.outcome = _OK  # RFC 9309 2.3.1.1: every 2xx is a robots.txt
            _read_other(task, exchange, result, rules)
    return result


def _read_other(task: FetchTask, exchange: Exchange, result: Result, rules: WorkerRules) -> None:
    if task.kind is FetchKind.ROBOTS:
        result.robots = exchange.content[:MAX_ROBOTS_BYTES]
        read_validators(exchange.named, result)
    elif task.kind is FetchKind.SITEMAP:
        read_sitemap(task, exchange, result, rules)
    else:
        read_requisite(task, exchange, result, rules)


def _read_check(task: FetchTask, exchange: Exchange, result: Result) -> None:
    """Record the answer to a URL that is only checked: a link is called broken by a GET, never by HEAD alone."""
    result.content_type = declared_type(exchange).essence
    if is_head(task) and exchange.status in HEAD_REFUSALS:
        result.outcome = Outcome.HEAD_REFUSED


def crashed_result(task: FetchTask, exchange: Exchange, error: Exception) -> Result:
    """Return the result of an answer on which our code raised: the request, and nothing of the answer's content."""
    known = replace(exchange, outcome=Outcome.INTERNAL_ERROR, error=describe(error), status=0, headers=[])
    return read_answer(task, known, WorkerRules())


def add_stored_links(result: Result, task: FetchTask, stored: Exchange | None, rules: WorkerRules) -> None:
    if task.kind is FetchKind.ROBOTS or not task.needs_links:
        return
    if stored is None:
        result.error = "unchanged, but the stored copy cannot be read: its links are unknown"
        return
    known = read_answer(task, stored, rules)
    result.links = known.links
    result.links_found = known.links_found
    result.lastmods = known.lastmods
    if task.kind is FetchKind.SITEMAP:
        result.content_type = known.content_type


def _read_redirect(exchange: Exchange, result: Result) -> None:
    location = exchange.header("location")
    target = redirect_target(location, exchange.url)
    if target is None:
        result.outcome = Outcome.BAD_REDIRECT
        result.error = f"Location {location[:200]!r}"
    else:
        result.redirect_to = target
