"""One crawl: facts go in, orders come out, the ledger and the events follow.

This is the whole crawl but for the network: no sockets, no files but the ledger's, no
clock. The hub drives it in real time, the simulator in virtual time. The driver's part:

    crawl.orders(now)      requests to make now; call after every fact and when `next_wakeup` comes
    crawl.take_resolves()  names to look up; answer with `learn_address` or `fail_address`
    crawl.complete(...)    a request has ended

Everything that follows from a result is in the ledger's pending changes before `complete`
returns, so whatever a commit holds is whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from gossamer.core import commands
from gossamer.core.catalog import change_of, queued_from, record_of, settled_record
from gossamer.core.commands import Effects
from gossamer.core.domains import registrable_domain
from gossamer.core.frontier import Frontier
from gossamer.core.intake import Intake, LinkContext, Refused
from gossamer.core.robots import MAX_CRAWL_DELAY_S, parse_robots
from gossamer.core.url import canonical, host_id, host_of, link_to
from gossamer.core.workbench import OriginRules
from gossamer.engine.admission import Admission
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.evidence import NOTHING, Evidence
from gossamer.engine.host_directory import HostDirectory
from gossamer.engine.near_duplicates import NearDuplicates
from gossamer.engine.rules import CrawlRules
from gossamer.events import EventName
from gossamer.figures import Totals
from gossamer.ports import Ledger
from gossamer.records import (
    SITEMAP_INDEX,
    ContentRecord,
    DomainRecord,
    HostRecord,
    Link,
    Order,
    OrderKind,
    Outcome,
    QueuedUrl,
    Result,
    RobotsRecord,
    Source,
    UrlId,
    UrlRecord,
    UrlState,
)

MAX_HOPS = 5
MAX_CROSS_SUBMITS = 10_000
MAX_SITEMAP_DEPTH = 3  # an index may list indexes that list sitemaps, and no more


MAX_USAGE_CHARS = 1000
# Members at hand: up to Python 3.11 an enum takes 80 ns to give one.
_REDIRECT = Outcome.REDIRECT
_WORKER_LOST = Outcome.WORKER_LOST
_PAGE = OrderKind.PAGE
_SITEMAP = OrderKind.SITEMAP


class Crawl:
    """The state of one crawl."""

    def __init__(
        self, rules: CrawlRules, frontier: Frontier, intake: Intake, ledger: Ledger, emitter: EventEmitter
    ) -> None:
        self._rules = rules
        self.frontier = frontier
        self._intake = intake
        self._ledger = ledger
        self._events = emitter
        self._evidence = Evidence(intake, frontier, ledger, emitter, is_on=rules.watches_traps)
        self._near = NearDuplicates(ledger, rules.near_dup)
        self.totals = Totals()
        self._hosts = HostDirectory(frontier, ledger, rules.robots_token)
        self._queue = Admission(rules, frontier, intake, ledger, hosts=self._hosts, emitter=emitter, totals=self.totals)
        self._orders: dict[int, Order] = {}
        self._resolves: list[str] = []
        self._places: list[str] = []  # what opened the scope
        self._cross_submits: dict[
            UrlId, set[str]
        ] = {}  # sitemaps, and the domains elsewhere whose robots.txt lists them
        self._before = 0.0, 0.0  # seconds and CPU of the runs before
        self.is_target_reached = False

    def rank_hosts(self, ranks: Callable[[str], float]) -> None:
        """Let new hosts have the ranks that a function gives them, from 0 to 1."""
        self._hosts.ranks = ranks

    # -- starting ---------------------------------------------------------------------------------

    def restore(self, now: float, *, was_clean: bool) -> None:
        """Take up the crawl that the ledger holds."""
        value = self._ledger.get_meta("totals")
        if value is not None:
            self.frontier.take_up(now)
            self.totals.become(msgspec.msgpack.decode(value, type=Totals))
        self._before = self.totals.seconds, self.totals.cpu_seconds
        self._intake.next_seq = self.totals.next_seq
        self.frontier.pages = self.totals.pages
        self._places = msgspec.msgpack.decode(self._ledger.get_meta("scope") or b"\x90", type=list[str])
        for place in self._places:
            self._intake.scope.join(place, host_of(place))
        self._evidence.restore()
        self._near.restore()
        if self._intake.first_pass is not None:
            for domain in self._ledger.domains():
                if domain.pages:
                    self._intake.first_pass.reach(domain.name)
            self._note_target()
        if not was_clean:
            self.frontier.all_asked_at = now
        waiting = sorted((host for host in self._ledger.hosts() if host.queued), key=lambda host: host.first_seen_at)
        saved_at = float(self._ledger.get_meta("now") or b"0")
        turned_back_s = max(0.0, saved_at - now)  # the clock was set back: waits must not grow by that
        for host in waiting:
            host.next_at -= turned_back_s
            host.parked_until -= turned_back_s
            self._restore_host(host, now)
        self.frontier.swapped_in(*self._ledger.swapped_out())

    def keep_refusals(self, quiet_until: Mapping[str, float]) -> None:
        """Hold hosts to what they had asked for, where a kill came before the commit. Call before `restore`."""
        for name, until in quiet_until.items():
            record = self._ledger.host(name)
            if record is not None and record.parked_until < until:
                record.parked_until, record.park_reason = until, "Retry-After"
                self._ledger.put_host(record)

    def _restore_host(self, host: HostRecord, now: float) -> None:
        self.frontier.queued += host.queued
        self._evidence.note_host(host)
        if self._intake.first_pass is not None:
            for _ in range(host.queued):
                self._intake.first_pass.queue(host.domain)
        if not host.swapped_out_until and self.frontier.has_room():
            self._hosts.load(host, now)
        elif not host.swapped_out_until:
            self._hosts.swap_out(host, now)

    def retry_dead(self, is_wanted: Callable[[UrlRecord], bool], now: float) -> int:
        """Queue dead letters again, as if they had never failed; return how many. Call before `restore`."""
        revived: dict[str, HostRecord] = {}
        count = 0
        for url_id, row in self._ledger.urls():
            if row.state is not UrlState.DEAD or not is_wanted(row):
                continue
            name = host_of(row.url)
            host = revived.get(name) or self._hosts.record(name, now)
            revived[name] = host
            row.attempt, row.not_before, row.hops = 0, 0.0, 0
            self._ledger.requeue(queued_from(url_id, name, row), row)
            host.queued += 1
            count += 1
        for host in revived.values():
            host.is_dead, host.failures_in_a_row, host.robots_tries = False, 0, 0
            host.parked_until, host.park_reason, host.backoff = 0.0, "", 0
            self._ledger.put_host(host)
        return count

    def add_seeds(self, links: Sequence[Link], now: float, *, https_first: frozenset[UrlId] = frozenset()) -> int:
        """Queue seeds; return how many were new."""
        added = 0
        places = len(self._places)
        for link in links:
            self._join_scope(link)
            context = LinkContext(depth=0, source=Source.SEED, https_first=link.id in https_first)
            added += len(self._queue.offer([link], context, now))
        if len(self._places) > places:
            self._keep_places()
        return added

    def _join_scope(self, link: Link) -> bool:
        """Let the scope grow; tell whether it did."""
        is_new = self._intake.scope.join(link.url, link.host)
        if is_new:
            self._places.append(link.url)
        return is_new

    def _keep_places(self) -> None:
        self._ledger.put_meta("scope", msgspec.msgpack.encode(self._places))

    # -- orders -----------------------------------------------------------------------------------

    def orders(self, now: float, most: int = 1 << 30) -> list[Order]:
        """Return the requests to make now."""
        orders: list[Order] = []
        frontier = self.frontier
        self._run_commands(now)
        while len(orders) < most:
            order = frontier.next_order(now) if not self.is_target_reached else None
            if frontier.has_denied:
                self._record_denied(now)
            if order is not None:
                self._orders[order.id] = order
                orders.append(order)
                if frontier.has_commands:
                    self._run_commands(now)
            elif not self._run_commands(now):
                break
        return orders

    def take_resolves(self) -> list[str]:
        """Return the host names to look up."""
        names, self._resolves = self._resolves, []
        return names

    def next_wakeup(self) -> float | None:
        """Return when `orders` can next bring something by the passing of time alone."""
        return None if self.is_target_reached else self.frontier.next_wakeup()

    def why_over(self, now: float, max_wait_s: float) -> str | None:
        """Return why the crawl is over, or None."""
        if self.is_target_reached:
            return None if self.frontier.in_flight else "target_domains"
        return self.frontier.why_over(now, max_wait_s)

    def _run_commands(self, now: float) -> bool:
        """Do what the frontier asks for; tell whether there was anything."""
        has_run = False
        while asked := self.frontier.take_commands(now):
            has_run = True
            for command in asked:
                self._run_command(command, now)
        return has_run

    def _run_command(self, command: commands.Command, now: float) -> None:
        match command:
            case commands.Resolve(host):
                self._resolves.append(host)
            case commands.ReadQueue(host, after, count):
                self.frontier.read_queue(host, self._ledger.read_queue(host_id(host), after, count), count, now)
            case commands.LoadHost(host):
                self._hosts.load(self._hosts.record(host, now), now)
            case commands.SwapIn(count):
                self._hosts.swap_in(count, now)
            case commands.SwapOut(record, until):
                self._hosts.swap_out(record, until)
            case commands.KillQueue(record, outcome, error):
                killed = self._ledger.kill_queue(host_id(record.name), outcome.value, error, now)
                self.totals.dead += killed
                self._ledger.put_host(record)
                self._events.host_dead(record.name, outcome, error, killed, now)
                for _ in range(killed):
                    self._note_first_pass_failure(record.name, now)

    # -- facts ------------------------------------------------------------------------------------

    def learn_address(self, host: str, addresses: tuple[str, ...], expires_at: float, now: float) -> None:
        """A name was resolved."""
        self.frontier.learn_address(host, addresses, expires_at, now)

    def fail_address(self, host: str, outcome: Outcome, error: str, now: float) -> None:
        """A name has no usable address: a fetch that ended without an answer."""
        record = self.frontier.fail_address(host, outcome, error, now)
        self._ledger.put_host(record)
        self.totals.count_failed_lookup(outcome)
        if record.parked_until > now:
            self._events.parked(record, record.parked_until - now, now)
        self._run_commands(now)  # what is killed must not be joined by what is found next
        self._events.lookup_failed(host, outcome, error, now)

    def mark_sent(self, order_id: int, sent_at: float, now: float) -> None:
        """A request is on the wire."""
        self.frontier.mark_sent(order_id, sent_at, now)

    def complete(self, result: Result, now: float) -> None:
        """A request has ended."""
        order = self._orders.pop(result.order_id, None)
        if order is None:
            return
        if result.outcome is _REDIRECT:
            self._judge_redirect(order, result)
        effects = self.frontier.complete(result, now)
        ledger = self._ledger
        if result.outcome is not _WORKER_LOST:
            self.totals.count_fetch(order.kind, result)
        if order.kind is _PAGE:
            self._evidence.note_size(effects.hosts[0], result)
        for record in effects.hosts:
            ledger.put_host(record)
        if effects.domain_pages:
            self._count_domain(effects.hosts[0].domain, effects.domain_pages)
        if result.archived is not None:
            ledger.put_archive_end(result.archived.file, result.archive_end)
        if effects.url is None:
            self._end_robots(order, result, effects, now)
        else:
            self._end_page(order, effects.url, result, effects, now)
        if effects.parked_s:
            self._events.parked(effects.hosts[0], effects.parked_s, now)

    def _count_domain(self, name: str, pages: int) -> None:
        record = self._ledger.domain(name) or DomainRecord(name, hosts=1)
        record.pages = pages
        self._ledger.put_domain(record)

    def adopt(self, link: Link, now: float) -> Order | None:
        """Return an order for a queued URL whose answer was read back from the archive; None where it is not queued."""
        record = self._ledger.look_up(link.id)
        if record is None or record.state is not UrlState.QUEUED:
            return None
        if not self.frontier.knows(link.host):
            self._hosts.load(self._hosts.record(link.host, now), now)
        order = self.frontier.adopt(queued_from(link.id, link.host, record), now)
        if order is not None:
            self._orders[order.id] = order
        return order

    def order(self, order_id: int) -> Order:
        """Return an order that is out."""
        return self._orders[order_id]

    def order_for(self, url: str) -> Order | None:
        """Return the order that is out for a URL."""
        return next((order for order in self._orders.values() if order.url == url), None)

    def _judge_redirect(self, order: Order, result: Result) -> None:
        """Turn a redirect that leads nowhere into the failure that it is."""
        if order.kind is OrderKind.ROBOTS:
            return
        if result.redirect_to == order.url:
            result.outcome = Outcome.REDIRECT_LOOP
        elif order.hops >= MAX_HOPS:
            result.outcome = Outcome.TOO_MANY_REDIRECTS

    # -- robots.txt -------------------------------------------------------------------------------

    def _end_robots(self, order: Order, result: Result, effects: Effects, now: float) -> None:
        self._events.robots(order, result, effects.robots_origin, now)
        if effects.robots is not None and not effects.robots.is_unreachable and not effects.robots.is_stand_in:
            self._keep_robots(effects.robots_origin, effects.robots, result, now)
        self._warn_of_robots(order, result, effects, now)
        for url in effects.fallbacks:
            self._fall_back(url, result, now)
        if self._rules.follows_sitemaps and effects.sitemaps and self._intake.first_pass is None:
            self._offer_sitemaps(effects.sitemaps, effects.robots_origin, now)

    def _warn_of_robots(self, order: Order, result: Result, effects: Effects, now: float) -> None:
        """Say where robots.txt is absurd: a redirect loop counts as none, a delay over an hour as an hour."""
        if effects.robots is None:
            return
        rules = effects.robots.rules
        reason = "robots_loop" if result.outcome is _REDIRECT else ""
        if rules is not None and rules.crawl_delay_s == MAX_CRAWL_DELAY_S:
            reason = "crawl_delay_capped"
        if reason:
            self._events.emit(EventName.WARNING, now, url=order.url, host=host_of(order.url), reason=reason)

    def _keep_robots(self, origin: str, rules: OriginRules, result: Result, now: float) -> None:
        record = RobotsRecord(
            origin=origin,
            status=result.status,
            outcome=result.outcome.value,
            body=result.robots if result.outcome is Outcome.OK else b"",
            fetched_at=now,
            expires_at=rules.expires_at,
            etag=rules.etag,
            last_modified=rules.last_modified,
        )
        if result.outcome is Outcome.NOT_MODIFIED:
            kept = (known for known in self._ledger.robots(host_id(host_of(origin + "/"))) if known.origin == origin)
            for known in kept:
                record.status, record.outcome, record.body = known.status, known.outcome, known.body
        self._ledger.put_robots(record)

    def _fall_back(self, url: QueuedUrl, result: Result, now: float) -> None:
        """A bare domain has no https: try it over http."""
        record = record_of(url)
        record.state, record.outcome, record.error = UrlState.DEAD, result.outcome.value, "https not available"
        self._ledger.finish(url, record)
        link = link_to("http:" + url.url.removeprefix("https:"))
        if self._join_scope(link):
            self._keep_places()
        self._events.fallback(url, link, now)
        self._queue.offer([link], LinkContext(depth=0, source=Source.SEED), now)
        self._note_first_pass_failure(url.host, now)

    def recall_robots(self, record: RobotsRecord, now: float) -> None:
        """Let follow from a robots.txt that was read back from the archive what follows from a new one: sitemaps."""
        rules = parse_robots(record.body, self._rules.robots_token)
        if self._rules.follows_sitemaps and rules.sitemaps and self._intake.first_pass is None:
            self._offer_sitemaps(rules.sitemaps, record.origin, now)

    def _offer_sitemaps(self, sitemaps: list[str], origin: str, now: float) -> None:
        urls = [url for text in sitemaps[:100] if (url := canonical(text, origin + "/")) is not None]
        links = [link_to(url) for url in urls]
        host = host_of(origin + "/")
        for link in links:
            if link.host != host and len(self._cross_submits) < MAX_CROSS_SUBMITS:
                self._cross_submits.setdefault(link.id, set()).add(registrable_domain(host))
        self._queue.offer(links, LinkContext(depth=0, source=Source.SITEMAP, kind=_SITEMAP), now)

    # -- pages ------------------------------------------------------------------------------------

    def _end_page(self, order: Order, url: QueuedUrl, result: Result, effects: Effects, now: float) -> None:
        if effects.retry is not None:
            if result.outcome is not _WORKER_LOST:
                self.totals.retries += 1
                self._ledger.requeue(effects.retry)
            self._events.retry(order, url, result, effects.retry.not_before - now, now)
            return
        is_duplicate = self._note_content(url, result) if effects.is_page else False
        is_near = self._note_near(url, result) if effects.is_page and not is_duplicate else False
        before = self._ledger.look_up(url.id) if url.etag or url.last_modified or self._rules.cooldown_s else None
        state = effects.state or UrlState.DONE
        if effects.is_page and (stated := self.frontier.usage_of(url)):
            result.usage = "; ".join([*stated, result.usage] if result.usage else stated)[:MAX_USAGE_CHARS]
        self._ledger.finish(url, settled_record(url, state, result, before))
        shown = self._evidence.note_page(url, result, effects.hosts[0], now) if effects.is_page else NOTHING
        if url.kind is _PAGE:
            change = change_of(url, result, before, is_soft_404=shown.is_soft_404)
            if change is not None:
                self._ledger.note_change(url.id, change)
        new = 0 if shown.is_soft_404 else self._follow(url, result, is_duplicate or is_near, now)
        self._evidence.note_novelty(url, result, effects.hosts[0], self.totals, is_copy=is_duplicate, now=now)
        if shown.probe is not None:
            self._queue.offer([shown.probe], LinkContext(depth=url.depth + 1, source=Source.PROBE, parent=url.id), now)
        if effects.is_page:
            self._count_page(effects, result)
        elif state is UrlState.DEAD:
            self.totals.dead += 1
        if not effects.is_page:
            # A redirect's target counts for itself by now, be it of the same domain or not.
            self._note_first_pass_failure(url.host, now)
        self._events.page(order, url, result, new, now)
        if is_duplicate:
            self._events.duplicate(url, result, now)
        elif is_near:
            self._tell_near(url, result, now)

    def _count_page(self, effects: Effects, result: Result) -> None:
        self.totals.count_page(result)
        if effects.hosts[0].pages == 1:
            self.totals.unique_hosts += 1
        if effects.domain_pages == 1:
            self.totals.unique_domains += 1
            self._note_new_domain(effects.hosts[0].domain)

    def _note_new_domain(self, domain: str) -> None:
        first_pass = self._intake.first_pass
        if first_pass is None:
            return
        first_pass.reach(domain)
        self._note_target()

    def _note_target(self) -> None:
        if self._intake.first_pass is not None and self._intake.first_pass.is_over:
            if self._rules.continues_after_target:
                self._intake.first_pass = None
            else:
                self.is_target_reached = True

    def _note_first_pass_failure(self, host: str, now: float) -> None:
        first_pass = self._intake.first_pass
        if first_pass is None:
            return
        reserve = first_pass.fail(registrable_domain(host))
        while reserve is not None:
            link, depth = reserve
            if self._queue.offer([link], LinkContext(depth=depth, source=Source.REDIRECT), now):
                return
            reserve = first_pass.fail(registrable_domain(host))

    def _note_content(self, url: QueuedUrl, result: Result) -> bool:
        """Tell whether another URL had this very content before."""
        if not result.content_hash:
            return False
        page = ContentRecord(url.id, url.url, result.sent_at, result.payload_digest)
        first = self._ledger.put_content(result.content_hash, page)
        if first is None or first.url_id == url.id:
            return False
        result.duplicate_of = first.url_id
        self.totals.duplicates += 1
        return True

    def _note_near(self, url: QueuedUrl, result: Result) -> bool:
        """Tell whether another page said nearly this before."""
        is_near = self._near.note(url, result)
        self.totals.near_duplicates += is_near
        return is_near

    def _tell_near(self, url: QueuedUrl, result: Result, now: float) -> None:
        first = self._ledger.look_up(result.near_duplicate_of)
        self._events.near_duplicate(url, result, first.url if first is not None else "", now)

    def _follow(self, url: QueuedUrl, result: Result, is_duplicate: bool, now: float) -> int:
        """Offer what a page leads to; return how many new URLs were queued."""
        if result.outcome is _REDIRECT:
            return self._follow_redirect(url, result.redirect_to, now)
        if not result.links or (is_duplicate and not self._rules.follows_duplicates):
            return 0
        source = Source.SITEMAP if url.kind is _SITEMAP else Source.LINK
        if source is Source.SITEMAP and result.content_type == SITEMAP_INDEX:
            if url.depth >= MAX_SITEMAP_DEPTH:
                return 0
            context = LinkContext(depth=url.depth + 1, source=source, parent=url.id, kind=_SITEMAP)
        else:
            context = LinkContext(depth=url.depth + 1, source=source, parent=url.id, found_on=url.url)
        links = self._spoken_for(url, result.links, now) if source is Source.SITEMAP else result.links
        new = self._queue.offer(links, context, now, result.lastmods)
        result.links_final = self._queue.links_final
        return len(new)

    def _spoken_for(self, sitemap: QueuedUrl, links: Sequence[Link], now: float) -> list[Link]:
        """Return the links that a sitemap may speak for: of its own domain, or of one whose robots.txt lists it."""
        domains = {registrable_domain(sitemap.host), *self._cross_submits.get(sitemap.id, ())}
        foreign = [link for link in links if registrable_domain(link.host) not in domains]
        for link in foreign:
            self._events.excluded(Refused(link, "sitemap_of_another"), sitemap.depth + 1, now)
        self.totals.excluded += len(foreign)
        return [link for link in links if registrable_domain(link.host) in domains] if foreign else list(links)

    def _follow_redirect(self, url: QueuedUrl, target: str, now: float) -> int:
        link = link_to(target)
        is_seed = url.depth == 0 and url.kind is _PAGE and url.source in (Source.SEED, Source.REDIRECT)
        if is_seed and self._join_scope(link):
            self._keep_places()
        context = LinkContext(
            depth=url.depth,
            source=Source.REDIRECT,
            parent=url.id,
            hops=url.hops + 1,
            kind=url.kind,
            found_on=url.url,
        )
        if link.id == url.id:
            # Only the spelling differs (a tracking parameter dropped, say): the same URL, asked for as told.
            again = replace(url, url=target, hops=url.hops + 1, seq=self._intake.next_seq, source=Source.REDIRECT)
            self._intake.next_seq += 1
            self.totals.next_seq = self._intake.next_seq
            self._ledger.requeue(again, record_of(again))
            self._intake.note_admitted([again])
            self._queue.take_in([again], now)
            return 1
        return len(self._queue.offer([link], context, now))

    # -- opting out -------------------------------------------------------------------------------

    def opt_out(self, names: frozenset[str], now: float) -> None:
        """Leave these hosts and domains alone from now on: what is queued there goes to the dead letters."""
        for name in sorted(names ^ self._hosts.opted_out):
            self._events.opted_out(name, name not in names, now)
        self._hosts.opted_out = names
        self._intake.scope.block(names)
        for record in list(self._ledger.hosts()):
            is_blocked = self._hosts.has_opted_out(record)
            if record.is_blocked is not is_blocked or (is_blocked and record.queued):
                self._block(self.frontier.record_of(record.name) or record, is_blocked, now)

    def _block(self, record: HostRecord, is_blocked: bool, now: float) -> None:
        if self.frontier.knows(record.name):
            self.frontier.block(record.name, is_blocked, now)
        else:
            record.is_blocked = is_blocked
        gone = 1
        while is_blocked and gone:
            gone = self._queue.evict_last(record, 1000, now, Outcome.OPTED_OUT)
        self._ledger.put_host(record)

    # -- the books --------------------------------------------------------------------------------

    def _record_denied(self, now: float) -> None:
        for denied in self.frontier.take_denied():
            url = denied.url
            record = record_of(url)
            record.state, record.outcome, record.fetched_at = UrlState.DONE, Outcome.ROBOTS_DENIED.value, now
            record.error = f"line {denied.decision.line_number}: {denied.decision.line}"
            self._ledger.finish(url, record)
            host = self.frontier.record_of(url.host)
            if host is not None:
                self._ledger.put_host(host)
            self.totals.robots_disallowed += 1
            self._events.denied(denied, now)
            self._note_first_pass_failure(url.host, now)

    def save_totals(self, seconds: float, cpu_seconds: float, now: float) -> None:
        """Put the totals among the pending changes, ahead of a commit; times are those of this run."""
        self.totals.seconds = self._before[0] + seconds
        self.totals.cpu_seconds = self._before[1] + cpu_seconds
        self._ledger.put_meta("totals", msgspec.msgpack.encode(self.totals))
        self._ledger.put_meta("now", repr(now).encode())

    def give_back(self, order_ids: Sequence[int], now: float) -> None:
        """Return orders that nobody will finish to the queue."""
        for order_id in order_ids:
            self.complete(Result(order_id, _WORKER_LOST), now)

    def orders_out(self) -> list[int]:
        """Return the ids of the orders that are out."""
        return list(self._orders)
