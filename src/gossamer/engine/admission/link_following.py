"""Which URLs follow from a page? Links, the entries of a sitemap, the target of a redirect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.ledger.tables import SUBMITTERS
from gossamer.core.links.intake import LinkContext, Refused
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import link_to
from gossamer.engine.admission.admission import NOTHING_OFFERED, Admission, Offered
from gossamer.engine.admission.link_backlog import LinkBacklog
from gossamer.engine.admission.scope_record import ScopeRecord
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.rules import CrawlRules
from gossamer.model.records import SITEMAP_INDEX, FetchKind, FetchTask, Link, Outcome, QueuedUrl, Result, Source
from gossamer.model.state import CrawlState

if TYPE_CHECKING:
    from gossamer.ports import RecordStore

MAX_SITEMAP_DEPTH = 3  # an index may list indexes that list sitemaps, and no more
# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_REDIRECT = Outcome.REDIRECT
_PAGE = FetchKind.PAGE
_SITEMAP = FetchKind.SITEMAP
_LINK = Source.LINK


class LinkFollowing:
    def __init__(
        self,
        rules: CrawlRules,
        ledger: RecordStore,
        admission: Admission,
        scope: ScopeRecord,
        *,
        backlog: LinkBacklog,
        emitter: EventEmitter,
        state: CrawlState,
    ) -> None:
        self._rules = rules
        self._ledger = ledger
        self._admission = admission
        self._backlog = backlog
        self._scope = scope
        self._events = emitter
        self._state = state

    def probe(self, url: QueuedUrl, link: Link, now: float) -> None:
        """Offer a URL that no site has, to learn what a host's "not found" looks like."""
        self._admission.offer(
            [link], LinkContext(depth=url.depth + 1, source=Source.PROBE, parent=url.id, seed=url.seed), now
        )

    def follow(self, url: QueuedUrl, result: Result, is_copy: bool, now: float) -> Offered:
        if result.outcome is _REDIRECT:
            return self._follow_redirect(url, result.redirect_to, now)
        if not result.links or (is_copy and not self._rules.follows_duplicates):
            return NOTHING_OFFERED
        if url.kind is _SITEMAP:
            return self._follow_sitemap(url, result, now)
        context = LinkContext(depth=url.depth + 1, source=_LINK, parent=url.id, found_on=url.url, seed=url.seed)
        if result.anchors:
            context = replace(context, anchors=result.anchors)
        return self._backlog.offer(result.links, context, now, result.lastmods)

    def _follow_sitemap(self, url: QueuedUrl, result: Result, now: float) -> Offered:
        kind = _SITEMAP if result.content_type == SITEMAP_INDEX else _PAGE
        if kind is _SITEMAP and url.depth >= MAX_SITEMAP_DEPTH:
            return NOTHING_OFFERED
        found_on = url.url if kind is _PAGE else ""
        context = LinkContext(
            depth=url.depth + 1,
            source=Source.SITEMAP,
            parent=url.id,
            kind=kind,
            found_on=found_on,
            seed=url.seed,
        )
        links = self._submitted(url, result.links, now)
        return self._backlog.offer(links, context, now, result.lastmods)

    def _submitted(self, sitemap: QueuedUrl, links: Sequence[Link], now: float) -> list[Link]:
        """Return the links that a sitemap may list: of its own domain, or of one whose robots.txt lists it."""
        submitters = self._ledger.record(SUBMITTERS, sitemap.id)
        domains = {registrable_domain(sitemap.host), *(submitters.domains if submitters is not None else ())}
        foreign = [link for link in links if registrable_domain(link.host) not in domains]
        self._events.excluded((Refused(link, "sitemap_of_another") for link in foreign), sitemap.depth + 1, now)
        self._state.totals.excluded += len(foreign)
        return [link for link in links if registrable_domain(link.host) in domains] if foreign else list(links)

    def _follow_redirect(self, url: QueuedUrl, target: str, now: float) -> Offered:
        link = link_to(target)
        if url.depth == 0 and url.kind is _PAGE and url.source in (Source.SEED, Source.REDIRECT):
            self._scope.join(link, url.seed)
        if link.id == url.id:
            # Only the spelling differs (a dropped tracking parameter, say): the same URL, requested as the target.
            target_url = replace(url, url=target, hops=url.hops + 1, source=Source.REDIRECT)
            self._admission.requeue(target_url, now)
            return Offered([target_url])
        context = LinkContext(
            depth=url.depth,
            source=Source.REDIRECT,
            parent=url.id,
            hops=url.hops + 1,
            kind=url.kind,
            found_on=url.url,
            seed=url.seed,
        )
        return self._admission.offer([link], context, now)


def judged_redirect(task: FetchTask, result: Result, max_redirects: int) -> Result:
    """Return the result of a redirect; one without a usable target is a failure."""
    if task.kind is FetchKind.ROBOTS:
        return result
    if result.redirect_to == task.url:
        return replace(result, outcome=Outcome.REDIRECT_LOOP)
    if task.hops < max_redirects:
        return result
    why = f"long chain: more than {max_redirects} redirects in a row (--max-redirects)"
    return replace(result, outcome=Outcome.TOO_MANY_REDIRECTS, error=why)
