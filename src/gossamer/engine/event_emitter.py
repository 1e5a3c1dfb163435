"""Emits each step of the crawl as an event. No decisions here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from gossamer.core.frontier.effects import Denied
from gossamer.core.links.intake import Refused
from gossamer.core.traps.quarantine import Quarantine
from gossamer.core.url.forms import host_of
from gossamer.model.events import LOOKUP, MAX_REFUSED_CHARS, REQUISITE, Emit, Event, EventName
from gossamer.model.figures import MAX_LINKS_PER_PAGE, Figures
from gossamer.model.records import FetchKind, FetchTask, HostRecord, Link, Outcome, QueuedUrl, Result, UrlId

if TYPE_CHECKING:
    from gossamer.ports import FetchLog

_PAGE_EVENTS = {
    Outcome.OK: EventName.FETCH_OK,
    Outcome.OTHER_SUCCESS: EventName.OTHER_SUCCESS,
    Outcome.NOT_MODIFIED: EventName.NOT_MODIFIED,
    Outcome.REDIRECT: EventName.REDIRECT,
    Outcome.TYPE_REFUSED: EventName.TYPE_REFUSED,
    Outcome.LINKS_ONLY: EventName.PDF_LINKS_EXTRACTED,
}
_KINDS = {
    FetchKind.PAGE: "",
    FetchKind.ROBOTS: "robots",
    FetchKind.SITEMAP: "sitemap",
    FetchKind.REQUISITE: REQUISITE,
}
# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_PAGE = FetchKind.PAGE
_EXCLUDED = EventName.EXCLUDED_BY_RULE
_OK = Outcome.OK
_READ = {FetchKind.SITEMAP: EventName.SITEMAP_READ, FetchKind.REQUISITE: EventName.REQUISITE_FETCHED}


class VisitNote(Struct, frozen=True, gc=False):
    """What another visit of a URL found, and how long until the next; 0: it is not fetched again."""

    found: str
    wait_s: float


class EventEmitter:
    """Makes events and emits them."""

    def __init__(self, emit: Emit, started_at: float, fetch_log: FetchLog | None = None) -> None:
        self._emit = emit
        self._fetch_log = fetch_log
        self._started_at = started_at

    def emit(self, event: EventName, now: float, **fields: Any) -> None:  # noqa: ANN401 - the fields of Event
        """Emit an event; fields that are not given are empty."""
        self._emit(
            Event(
                ts=now,
                event=event,
                url=fields.pop("url", ""),
                host=fields.pop("host", ""),
                depth=fields.pop("depth", 0),
                status=fields.pop("status", 0),
                bytes=fields.pop("bytes", 0),
                content_type=fields.pop("content_type", ""),
                worker=fields.pop("worker", 0),
                t_ms_from_start=round((now - self._started_at) * 1000),
                reason=fields.pop("reason", ""),
                **fields,
            )
        )

    def _fetched(
        self,
        event: EventName,
        task: FetchTask,
        result: Result,
        now: float,
        reason: str,
        *,
        new_links: int = 0,
        **fields: Any,  # noqa: ANN401 - the other fields of Event
    ) -> None:
        if result.retry_after_s > 0:
            fields["retry_after_s"] = result.retry_after_s
        if result.truncated:
            fields["truncated"] = str(result.truncated)
        sent_at = result.sent_at
        first_byte_at = result.first_byte_at
        self._emit(
            # Positional arguments, in the order of the fields: called for every page, in half the time.
            Event(
                now,
                event,
                task.url,
                task.host,
                task.depth,
                result.status,
                result.wire_bytes,
                result.content_type,
                result.worker,
                round((now - self._started_at) * 1000),
                reason,
                task.id,
                _KINDS[task.kind],
                sent_at,
                result.requests_sent,
                round(1000 * (first_byte_at - sent_at)) if first_byte_at > sent_at else 0,
                max(0, round(1000 * (result.finished_at - task.issued_at))),
                result.address,
                task.attempt,
                result.redirect_to,
                result.title,
                result.links_found,
                new_links,
                result.directives,
                result.usage,
                **fields,
            )
        )

    def robots(self, task: FetchTask, result: Result, origin: str, now: float, *, lacks_https: bool = False) -> None:
        """robots.txt of an origin was requested, perhaps of another host that it redirected to."""
        if self._fetch_log is not None:
            self._fetch_log.record(task, None, result, now)
        reason = f"{result.outcome}: {result.error}".rstrip(": ")
        if lacks_https:
            event = EventName.HTTPS_MISSING
            reason = f"{Outcome.NO_HTTPS}: {reason}"
        elif result.outcome is Outcome.WORKER_LOST:
            event = EventName.WORKER_LOST
        elif result.status and result.outcome not in (Outcome.SERVER_ERROR, Outcome.RATE_LIMITED):
            event = EventName.ROBOTS_FETCHED
        else:
            event = EventName.ROBOTS_UNREACHABLE
        self._fetched(
            event,
            task,
            result,
            now,
            reason,
            origin=origin if task.hops else "",
        )

    def page(
        self,
        task: FetchTask,
        url: QueuedUrl,
        result: Result,
        new_links: int,
        now: float,
        *,
        visit: VisitNote | None = None,
    ) -> None:
        """A page, a sitemap or a final error was received; at another visit with what was found."""
        if self._fetch_log is not None:
            self._fetch_log.record(task, url, result, now)
        event = _PAGE_EVENTS.get(result.outcome, EventName.ERROR)
        reason = ""
        if result.outcome is not _OK:
            reason = f"{result.outcome}: {result.error}".rstrip(": ")
        elif url.kind is not _PAGE:
            event = _READ[url.kind]
        again = {"found": visit.found, "wait_s": round(visit.wait_s, 3)} if visit is not None else {}
        self._fetched(event, task, result, now, reason, new_links=new_links, **again)

    def retry(self, task: FetchTask, url: QueuedUrl, result: Result, wait_s: float, now: float) -> None:
        """A fetch failed and will be tried again."""
        event = EventName.WORKER_LOST if result.outcome is Outcome.WORKER_LOST else EventName.RETRY
        self._fetched(
            event,
            task,
            result,
            now,
            reason=f"{result.outcome}: {result.error}".rstrip(": "),
            wait_s=round(max(0.0, wait_s), 3),
        )

    def denied(self, denied: Denied, now: float) -> None:
        """robots.txt forbids a URL."""
        self.emit(
            EventName.ROBOTS_DISALLOW,
            now,
            url=denied.url.url,
            host=denied.url.host,
            depth=denied.url.depth,
            reason="robots.txt",
            rule=denied.decision.line,
            line=denied.decision.line_number,
            kind=_KINDS[denied.url.kind] if denied.url.kind is FetchKind.REQUISITE else "",
        )

    def overridden(self, denied: Denied, now: float) -> None:
        """A URL that robots.txt forbids is fetched, since its host is the operator's own."""
        self.emit(
            EventName.ROBOTS_OVERRIDDEN,
            now,
            url=denied.url.url,
            host=denied.url.host,
            depth=denied.url.depth,
            reason="own-host",
            rule=denied.decision.line,
            line=denied.decision.line_number,
        )

    def excluded(self, links: Iterable[Refused], depth: int, now: float) -> None:
        since_ms = round((now - self._started_at) * 1000)
        emit = self._emit
        for refused in links:
            link = refused.link
            name = refused.rule
            detail = refused.detail
            url = link.url
            host = link.host
            if len(url) > MAX_REFUSED_CHARS:
                cut = url[:MAX_REFUSED_CHARS]
                identity = link.id.hex()
                emit(Event(now, _EXCLUDED, cut, host, depth, 0, 0, "", 0, since_ms, name, rule=detail, url_id=identity))
            elif detail:
                emit(Event(now, _EXCLUDED, url, host, depth, 0, 0, "", 0, since_ms, name, rule=detail))
            else:
                emit(Event(now, _EXCLUDED, url, host, depth, 0, 0, "", 0, since_ms, name))

    def capped(self, parent: UrlId, url: str, count: int, now: float) -> None:
        """A page had more new links than one page may add."""
        page = {"url": url, "host": host_of(url) if url else "", "parent": parent.hex()}
        self.emit(EventName.LINKS_CAPPED, now, **page, links=count, reason=MAX_LINKS_PER_PAGE)

    def requisites_cut(self, url: QueuedUrl, count: int, now: float) -> None:
        """A page or stylesheet needs more than may be fetched for one page."""
        why = "max_requisites_per_page"
        parent = url.id.hex()
        self.emit(EventName.REQUISITES_CUT, now, url=url.url, host=url.host, parent=parent, links=count, reason=why)

    def requisite_refused(self, refused: Refused, parent: UrlId, now: float) -> None:
        """What a page needs was not queued."""
        link = refused.link
        page = parent.hex()
        where = {"url": link.url, "host": link.host, "parent": page, "kind": REQUISITE}
        self.emit(EventName.REQUISITE_REFUSED, now, **where, reason=refused.rule, rule=refused.detail)

    def cooling(self, url: QueuedUrl, wait_s: float, now: float) -> None:
        """A URL was found again before its time."""
        self.emit(EventName.COOLDOWN_SKIP, now, url=url.url, host=url.host, depth=url.depth, wait_s=round(wait_s, 3))

    def duplicate(self, url: QueuedUrl, result: Result, now: float) -> None:
        self.emit(
            EventName.DUPLICATE,
            now,
            url=url.url,
            host=url.host,
            depth=url.depth,
            parent=result.duplicate_of.hex(),
            order=result.task_id,
        )

    def near_duplicate(self, url: QueuedUrl, result: Result, first: str, now: float) -> None:
        """A page has nearly the same text as an earlier one."""
        self.emit(
            EventName.NEAR_DUPLICATE,
            now,
            url=url.url,
            host=url.host,
            depth=url.depth,
            parent=result.near_duplicate_of.hex(),
            target=first,
            similarity=round(result.similarity, 4),
            order=result.task_id,
        )

    def soft_404(self, url: QueuedUrl, now: float) -> None:
        """A page is a "not found" with status 200."""
        self.emit(EventName.SOFT_404, now, url=url.url, host=url.host, depth=url.depth, reason="soft_404")

    def trap(self, name: EventName, quarantine: Quarantine, now: float) -> None:
        """A pattern of URLs is suspected, held, or neither any more."""
        self.emit(
            name,
            now,
            url=quarantine.samples[0] if quarantine.samples else "",
            host=quarantine.host,
            rule=quarantine.name,
            links=quarantine.held,
            reason=f"{quarantine.reason}; {quarantine.fetched} pages judged",
        )

    def spam_page(self, url: QueuedUrl, result: Result, now: float) -> None:
        signals = ", ".join(result.spam.signals) if result.spam is not None else ""
        reason = result.spam_reason
        self.emit(EventName.SPAM_PAGE, now, url=url.url, host=url.host, depth=url.depth, rule=signals, reason=reason)

    def spam_host(self, decided: Quarantine, now: float) -> None:
        """A host is demoted or quarantined, since most of its pages are spam."""
        rule = "demoted" if decided.demotes_only else "quarantined"
        self.emit(EventName.SPAM_HOST, now, host=decided.host, rule=rule, reason=decided.reason)

    def fallback(self, url: QueuedUrl, link: Link, now: float) -> None:
        """A bare domain is tried over http."""
        self.emit(EventName.HTTP_FALLBACK, now, url=url.url, host=url.host, target=link.url, reason="no https")

    def parked(self, host: HostRecord, wait_s: float, now: float) -> None:
        self.emit(EventName.HOST_PARKED, now, host=host.name, wait_s=round(wait_s, 3), reason=host.park_reason)

    def opted_out(self, name: str, is_over: bool, now: float) -> None:
        """A host or domain opted out of the crawl, or is no longer on the list."""
        event = EventName.OPT_OUT_ENDED if is_over else EventName.OPTED_OUT
        self.emit(event, now, host=name, reason="on the list of those who opted out" if not is_over else "off the list")

    def heartbeat(self, figures: Figures, now: float) -> None:
        """Some pages were fetched since the last heartbeat: the current figures."""
        totals = figures.totals
        self.emit(
            EventName.HEARTBEAT,
            now,
            fetched=totals.pages,
            enqueued=totals.urls_seen,
            errors=totals.errors,
            unique_domains=totals.unique_domains,
            frontier_size=figures.urls_queued,
            pages_per_second=round(figures.run_pages_per_second, 2),
        )

    def lookup_failed(self, host: str, outcome: Outcome, error: str, now: float) -> None:
        """A name look-up returned no usable address. No request was sent, but it counts as a fetch."""
        reason = f"{outcome}: {error}".rstrip(": ")
        self.emit(EventName.ERROR, now, host=host, kind=LOOKUP, requests=0, reason=reason)

    def host_dead(self, host: str, outcome: Outcome, error: str, urls: int, now: float) -> None:
        self.emit(EventName.HOST_DEAD, now, host=host, reason=f"{outcome}: {error}", links=urls)
