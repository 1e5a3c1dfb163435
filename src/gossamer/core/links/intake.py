"""Which of the links that were found are to be queued? Scope, traps, first pass; each refusal has a name.

Four rules hold a link back instead of refusing it for good: `HoldRule`. The engine stores it and offers it again.

Known links skip all of this by a memo of URLs decided recently: most links of a page are
on every other page of its site too (0.1 µs instead of 5). What depends on depth is not
remembered: the same URL may later be found nearer to a seed. A seed with a scope of its own has a
memo of its own: what it refuses another may accept. All layers that know seen URLs: `engine/admission/admission`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import DEMOTION, Ordering
from gossamer.core.links.scope import Scope, Surroundings
from gossamer.core.traps.calendar import DateBudget
from gossamer.core.traps.quarantine import BUDGET
from gossamer.core.traps.shapes import is_dated, shape_trap
from gossamer.core.traps.watch import MAX_PATTERNS, TrapWatch
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of
from gossamer.core.url.identity import host_id, shard_of
from gossamer.model.records import Anchor, FetchKind, Link, QueuedUrl, Source, UrlId
from gossamer.model.state import HoldRule

if TYPE_CHECKING:
    from gossamer.core.links.first_pass import FirstPass

MEMO_URLS = 200_000
SCORE_STEPS = 1000  # of priority per point of a hook's score
URL_CHARS = 500  # of a new link, on average: a page may add `max_links_per_page` times as much to the ledger
DEEP = 2  # beyond this depth links to a host that sends over-size answers are not followed
# What depends on more than the URL, as on the page it was found on.
_NOT_REMEMBERED = frozenset({"oversize_host", "hook", "repeated_segment", "path_too_deep"})
_HOLD_RULES = frozenset(HoldRule)
_EXPLAINED = frozenset({"exclude_pattern", "extension"})
_SPECIAL = _NOT_REMEMBERED | _HOLD_RULES | _EXPLAINED  # most links that are refused are out of scope
# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_SEED = Source.SEED
_FROM_SITEMAP = Source.SITEMAP
_FROM_REDIRECT = Source.REDIRECT
_SITEMAP = FetchKind.SITEMAP
_PAGE = FetchKind.PAGE


class Refused(Struct, frozen=True):
    """A link that was not queued, and the rule that refused it."""

    link: Link
    rule: str
    detail: str = ""  # what in the rule: the pattern, or the extension


class Screened(Struct):
    """The links that passed, those that were refused, and those that wait for their rule."""

    candidates: list[QueuedUrl] = []
    refused: list[Refused] = []
    held: list[Refused] = []
    dated: list[QueuedUrl] = []  # the candidates that count against the calendar's budget
    capped: int = 0  # over the limit for one page
    is_final: bool = True  # whether each link would be decided the same way if it were found again


class LinkContext(Struct, frozen=True):
    depth: int  # of what is found
    source: Source
    parent: UrlId = b""
    hops: int = 0
    kind: FetchKind = FetchKind.PAGE
    https_first: bool = False
    found_on: str = ""  # the URL of the page
    seed: int = 0  # see `QueuedUrl`
    submitter: str = ""  # of sitemaps at another host: the domain whose robots.txt lists them
    added: int = 0  # links of the same page that were queued before
    is_offered_again: bool = False  # they were held back, since their page's address led to too many hosts
    held_by: HoldRule | None = None  # the rule that held them back until now
    anchors: Mapping[UrlId, Anchor] | None = None  # for hooks


class FoundLink(Struct, frozen=True):
    """A link that is about to be queued, as a hook sees it."""

    url: str
    host: str
    depth: int
    found_on: str  # the URL of the page; empty for seeds
    text: str = ""  # of the anchor; empty if it has none, or was not found in a page
    rel: str = ""  # in lower case
    page_meta: dict[str, Any] = {}  # metadata of the page, for hooks of a program


class LinksForHooks(Struct):
    """Links about which hooks are asked: at once, or when a rule holds them back no more."""

    links: list[FoundLink] = []
    held: list[FoundLink] = []


class LinkHooks(Struct, frozen=True):
    """A user's functions that accept and score links."""

    accept: Callable[[FoundLink], bool | bytes] | None = None  # bytes: yes, with this metadata, JSON
    score: Callable[[FoundLink], float] | None = None  # 0 to 100, more is sooner within its host

    @property
    def are_set(self) -> bool:
        return self.accept is not None or self.score is not None


class IntakeRules(Struct, frozen=True):
    max_links_per_page: int = 1000
    remembers: bool = True  # URLs decided recently; not if a URL may be queued again
    memo_urls: int = MEMO_URLS
    max_patterns: int = MAX_PATTERNS
    trap_budget: int = BUDGET


class Intake:
    """Decides which of the links that were found are queued. `limits` are the frontier's: the depth is one of them."""

    def __init__(
        self,
        scope: Scope,
        ordering: Ordering,
        limits: FrontierLimits,
        rules: IntakeRules,
        *,
        first_pass: FirstPass | None = None,
        hooks: LinkHooks | None = None,
    ) -> None:
        self.scope = scope
        self.seed_scopes: dict[int, Surroundings] = {}  # of seeds that have a scope of their own
        self.first_pass = first_pass
        self.holds_first_pass = False  # whether what the first pass refuses is offered when it is over
        self._ordering = ordering
        self._limits = limits
        self._max_links = rules.max_links_per_page
        self._remembers = rules.remembers
        self._hooks = hooks or LinkHooks()
        self.metas: dict[UrlId, bytes] = {}  # that hooks attached to links of the current offer
        self.dates = DateBudget()
        self.traps = TrapWatch(max_patterns=rules.max_patterns, budget=rules.trap_budget)
        self.heavy_hosts: set[str] = set()  # that send over-size answers
        # Hashes of URLs, by Python's own, which has a key: an id may be another's, and the URLs take 130 bytes each.
        self._memo: set[int] = set()
        self._seed_memos: dict[int, set[int]] = {}
        self._seed_memo_urls = 0  # in all of them
        self._memo_urls = rules.memo_urls
        self.next_seq = 1  # of the next candidate: see `state.ShardState`
        self.foreign: set[int] = set()  # shards that are not owned: their owners decide what is not in the URL itself

    def screen(self, links: Iterable[Link], context: LinkContext, now: float) -> Screened:
        """Return the links that are candidates for the queue, in order, and the refusals."""
        screened = Screened(is_final=self._remembers)
        max_links = self._max_links - context.added
        room = max_links * URL_CHARS
        memo = self._memo
        max_depth = self._limits.max_depth
        if context.seed:
            memo = self._memo_of(context.seed)
            max_depth = self._limits.seed_depths.get(context.seed, max_depth)
        if context.depth > max_depth:
            return screened
        if context.source is _SEED or context.is_offered_again:
            memo = set()  # it may have been refused as a link, or held back after it was screened
        spammer = self._demoted_source(context)
        for link in links:
            if hash(link.url) in memo:
                continue
            rule = self._refusal(link, context)
            if rule is not None:
                self._sort_out(link, rule, context.seed, screened)
                continue
            if (len(screened.candidates) >= max_links or room <= 0) and context.source is not _FROM_SITEMAP:
                screened.capped += 1
                screened.is_final = False
                continue
            room -= len(link.url)
            self._remember(link.url, context.seed)
            url = self._candidate(link, context, now)
            if spammer and link.host != spammer:
                url = replace(url, priority=url.priority + DEMOTION)
            elif self.traps.is_suspected(link.url, link.host, context.found_on):
                screened.is_final = False  # another page may name it, too
                if not self.traps.gets_a_turn(link.url, link.host):
                    url = replace(url, priority=url.priority + DEMOTION)
            screened.candidates.append(url)
            if is_dated(link.url) and self._counts_as_dated(link, context):
                self.dates.admit(link.host)
                screened.dated.append(url)
        return screened

    def follows(self, depth: int, seed: int) -> bool:
        return depth <= (self._limits.seed_depths.get(seed, self._limits.max_depth) if seed else self._limits.max_depth)

    def sample(self, link: Link, context: LinkContext, now: float) -> QueuedUrl:
        """Return the candidate for a link of a pattern that is held: behind everything else."""
        self._remember(link.url, context.seed)
        url = self._candidate(link, context, now)
        return replace(url, priority=url.priority + DEMOTION)

    def _counts_as_dated(self, link: Link, context: LinkContext) -> bool:
        """Return whether a dated URL counts against the calendar's budget: only if another dated page led to it."""
        if context.kind is not _PAGE or self._is_foreign(link):
            return False
        return context.held_by is HoldRule.CALENDAR or is_dated(context.found_on)

    def _demoted_source(self, context: LinkContext) -> str:
        """Return the host that links were found on if it is demoted: what they lead to elsewhere comes late, too."""
        demoted = self._limits.demoted_hosts
        host = host_of(context.found_on) if demoted and context.found_on else ""
        return host if host in demoted else ""

    def take_acceptable(self, links: Iterable[Link], context: LinkContext) -> list[Link]:
        """Return the links that no rule refuses now and that were not seen recently: the caller stores them."""
        if context.depth > self._limits.seed_depths.get(context.seed, self._limits.max_depth):
            return []
        memo = self._memo_of(context.seed)
        found = [link for link in links if hash(link.url) not in memo and self._refusal(link, context) is None]
        for link in found:
            self._remember(link.url, context.seed)
        return found

    def _sort_out(self, link: Link, rule: str, seed: int, screened: Screened) -> None:
        """Record a link that is not queued now."""
        if rule not in _SPECIAL:
            self._remember(link.url, seed)
            detail = self.seed_scopes[seed].name if seed and rule == "out_of_scope" and seed in self.seed_scopes else ""
            screened.refused.append(Refused(link, rule, detail))
            return
        if rule in _HOLD_RULES:
            screened.is_final = False  # it is offered again, and another page may name it
            if rule != "first_pass" or self.holds_first_pass:
                screened.held.append(Refused(link, rule))
            return
        if rule in _NOT_REMEMBERED:
            screened.is_final = False
        else:
            self._remember(link.url, seed)
        detail = self.scope.explain(rule, link.url) if rule in _EXPLAINED else ""
        screened.refused.append(Refused(link, rule, detail))

    def _refusal(self, link: Link, context: LinkContext) -> str | None:
        if context.source is _SEED:
            return None
        url = link.url
        host = link.host
        rule = self.scope.refusal(url, host, self.seed_scopes.get(context.seed) if context.seed else None)
        if context.kind is _SITEMAP:
            return None if rule == "extension" else rule  # sitemap.xml.gz
        if rule is not None:
            return rule
        if self.foreign and self._is_foreign(link):
            return shape_trap(url, context.found_on) or self._first_pass_elsewhere(host, context)
        rule = (
            shape_trap(url, context.found_on)
            or self.dates.refusal(url, host, context.found_on)
            or self.traps.refusal(url, host, context.found_on)
        )
        if rule is None and host in self.heavy_hosts and context.depth > DEEP:
            rule = "oversize_host"
        if rule is not None:
            return rule
        if self._hooks.accept is not None and not self._is_accepted(link, context):
            return "hook"
        if self.first_pass is not None and context.source is not _FROM_REDIRECT:
            domain = registrable_domain(link.host)
            return None if self.first_pass.admits(link, domain, context.depth, context.seed) else "first_pass"
        return None

    def _is_accepted(self, link: Link, context: LinkContext) -> bool:
        accept = self._hooks.accept
        decision = True if accept is None else accept(_as_found(link, context))
        if isinstance(decision, bytes):
            self.metas[link.id] = decision
            return True
        return decision

    def asked(self, links: Iterable[Link], context: LinkContext) -> LinksForHooks:
        """Return the links about which hooks would be asked if these were offered, now or later. Changes nothing."""
        asked = LinksForHooks()
        if context.depth > self._limits.seed_depths.get(context.seed, self._limits.max_depth):
            return asked

        def refuse(link: FoundLink) -> bool:
            asked.links.append(link)
            return False

        memo = self._memo_of(context.seed)
        hooks = self._hooks
        self._hooks = LinkHooks(accept=refuse)
        try:
            for link in links:
                if hash(link.url) not in memo and self._refusal(link, context) in _HOLD_RULES:
                    asked.held.append(_as_found(link, context))
        finally:
            self._hooks = hooks
        return asked

    def _first_pass_elsewhere(self, host: str, context: LinkContext) -> str | None:
        """Refuse most links to a domain of another node; if they are held back during the pass, that node does it."""
        first_pass = self.first_pass
        if first_pass is None or self.holds_first_pass or context.source is _FROM_REDIRECT:
            return None
        return None if first_pass.sends(registrable_domain(host)) else "first_pass"

    def _is_foreign(self, link: Link) -> bool:
        return bool(self.foreign) and shard_of(link.id) in self.foreign

    def _candidate(self, link: Link, context: LinkContext, now: float) -> QueuedUrl:
        return QueuedUrl(
            url=link.url,
            id=link.id,
            host=link.host,
            priority=self._priority(link, context),
            seq=self.next_arrival(),
            depth=context.depth,
            kind=context.kind,
            source=context.source,
            parent=context.parent,
            hops=context.hops,
            found_at=now,
            https_first=context.https_first,
            seed=context.seed,
        )

    def _priority(self, link: Link, context: LinkContext) -> int:
        if context.kind is _SITEMAP:  # by its name it would be a document, to be read after all pages
            return context.depth
        if self._hooks.score is None or context.source is _SEED:
            return self._ordering.priority(link.url, link.id, context.depth)
        score = self._hooks.score(_as_found(link, context))
        return round((100.0 - min(100.0, max(0.0, score))) * SCORE_STEPS)

    def release(self, shards: Collection[int]) -> None:
        """Forget what depends on the hosts of shards."""
        self.dates.release(shards)
        self.traps.release(shards)
        self.heavy_hosts = {host for host in self.heavy_hosts if shard_of(host_id(host)) not in shards}
        if self.first_pass is not None:
            self.first_pass.release(shards)

    def next_arrival(self) -> int:
        """Return the next sequence number, in order of arrival."""
        seq = self.next_seq
        self.next_seq = seq + 1
        return seq

    def record_admitted(self, urls: Iterable[QueuedUrl], candidates: Iterable[QueuedUrl] = ()) -> None:
        if self.first_pass is None:
            return
        for url in urls:
            self.first_pass.queue(registrable_domain(url.host))
        self.forget_unqueued(url.host for url in candidates)

    def forget_unqueued(self, hosts: Iterable[str]) -> None:
        """Record that links to hosts were accepted and are not queued: the first pass does not wait for them."""
        if self.first_pass is not None:
            for host in hosts:
                self.first_pass.forget_unqueued(registrable_domain(host))

    def withdraw_dated(self, screened: Screened, new: Iterable[QueuedUrl]) -> None:
        """Take the candidates that are not queued after all out of the calendar's budget."""
        queued = {url.id for url in new}
        for url in screened.dated:
            if url.id not in queued:
                self.dates.withdraw(url.host)

    def _memo_of(self, seed: int) -> set[int]:
        """Return the memo of a seed's links: its own if it has a scope of its own."""
        return self._seed_memos.setdefault(seed, set()) if seed in self.seed_scopes else self._memo

    def forget_link(self, url: str, seed: int) -> None:
        """Decide about a URL again when it is offered next."""
        self._memo_of(seed).discard(hash(url))

    def _remember(self, url: str, seed: int) -> None:
        if not self._remembers:
            return
        if len(self._memo) + self._seed_memo_urls >= self._memo_urls:
            self._memo.clear()
            self._seed_memos.clear()
            self._seed_memo_urls = 0
        if seed and seed in self.seed_scopes:
            self._memo_of(seed).add(hash(url))
            self._seed_memo_urls += 1
        else:
            self._memo.add(hash(url))


def _as_found(link: Link, context: LinkContext) -> FoundLink:
    anchor = context.anchors.get(link.id) if context.anchors else None
    if anchor is None:
        return FoundLink(link.url, link.host, context.depth, context.found_on)
    return FoundLink(link.url, link.host, context.depth, context.found_on, anchor.text, anchor.rel)
