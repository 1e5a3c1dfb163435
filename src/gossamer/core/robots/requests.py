"""Requests for robots.txt: which origin they are for, and what follows from the answer.

robots.txt belongs to an origin. After a redirect the request may go to another host: then the owner
waits until that host has had its turn. An answer contains the owner's rules; without an answer the
owner is parked, or the last good copy stays in force.
"""

from __future__ import annotations

from collections.abc import Collection

from gossamer.core.frontier.counts import Counts
from gossamer.core.frontier.effects import Effects, LoadHost
from gossamer.core.frontier.host_table import HostTable
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.outstanding import Again
from gossamer.core.frontier.workbench import HeadEntry, HostSlot, OriginRules, RobotsRequest
from gossamer.core.politeness.pace import Pace
from gossamer.core.robots import answers
from gossamer.core.robots.cache import AT_ONCE_BYTES, REREAD_S_PER_BYTE, RobotsCache
from gossamer.core.robots.rules import ALLOW_ALL, RobotsRules
from gossamer.core.url.forms import host_of, origin_of
from gossamer.core.url.identity import host_id, shard_of
from gossamer.model.records import Outcome, QueuedUrl, Result

# Answers that make a bare domain fall back from https to http at once.
_HTTPS_MISSING = frozenset({Outcome.CONNECT_FAILED, Outcome.CONNECT_TIMEOUT, Outcome.TLS_ERROR, Outcome.DISCONNECTED})


ELSEWHERE_S = 60.0  # until another node is asked again for a robots.txt at one of its hosts
UNREACHABLE = "robots.txt unreachable"  # begins the reason why such a host is parked


def first_wait_s(host: HostSlot, limits: FrontierLimits) -> float:
    return max(limits.retry_wait_s, 2 * host.delay_s())


class RobotsRequests:
    """The requests for robots.txt that are waiting, and the effects of answers."""

    def __init__(self, table: HostTable, limits: FrontierLimits, counts: Counts, pace: Pace, token: str) -> None:
        self.cache = RobotsCache(limits, token)
        self._reader = self.cache.reader()
        self._table = table
        self._limits = limits
        self._counts = counts
        self._pace = pace
        self._ahead: dict[str, list[RobotsRequest]] = {}  # for hosts that are being loaded
        self.foreign: Collection[int] = ()  # shards whose hosts another node contacts
        self.draining: set[int] = set()  # shards whose hosts are not contacted here any more, or not at all

    def hand_over(self, host: HostSlot) -> None:
        """Add the requests that waited for a host to be loaded into memory."""
        for request in self._ahead.pop(host.name, ()):
            host.push_robots(request)

    def end(
        self,
        host: HostSlot,
        request: RobotsRequest,
        result: Result,
        effects: Effects,
        now: float,
        *,
        again: Again = Again.NO,
    ) -> None:
        """Record the answer to a request for robots.txt, made at a host for itself or for another."""
        effects.robots_origin = request.origin
        if result.outcome is Outcome.WORKER_LOST or again:
            host.push_robots(request)
            return
        owner = self._table.hosts.get(host_of(request.origin + "/"))
        is_redirect = result.outcome is Outcome.REDIRECT
        if is_redirect and answers.is_followed(request.url, result.redirect_to, request.hops):
            following = RobotsRequest(request.origin, result.redirect_to, request.hops + 1)
            if self._is_foreign(following.url) or self._is_drained(following.url):
                self._ask_elsewhere(following, owner, effects, now)
            else:
                self.send(following, now)
            return
        if owner is None:
            if self._is_foreign(request.origin + "/"):
                effects.robots_answered = request
            return
        self._apply(owner, request, result, effects, now)
        if owner is not host:
            if owner.crawl_delay_s:  # it may have been contacted just before, when its Crawl-delay was unknown
                owner.start_delay(owner.record.last_fetch_at)
            effects.hosts.append(owner.record)
            self._table.reschedule(owner, now)

    def learn_elsewhere(self, request: RobotsRequest, result: Result, now: float) -> Effects | None:
        """Record the answer that another node got; None if nobody waits for it any more."""
        owner = self._table.hosts.get(host_of(request.origin + "/"))
        if owner is None:
            return None
        effects = Effects(hosts=[owner.record], robots_origin=request.origin)
        self._apply(owner, request, result, effects, now)
        if effects.robots is not None and not effects.robots.is_unreachable:
            owner.record.parked_until = min(owner.record.parked_until, now)
            if owner.crawl_delay_s:
                owner.start_delay(owner.record.last_fetch_at)
        self._table.reschedule(owner, now)
        return effects

    def _is_foreign(self, url: str) -> bool:
        return bool(self.foreign) and shard_of(host_id(host_of(url))) in self.foreign

    def _is_drained(self, url: str) -> bool:
        return bool(self.draining) and shard_of(host_id(host_of(url))) in self.draining

    def _ask_elsewhere(self, request: RobotsRequest, owner: HostSlot | None, effects: Effects, now: float) -> None:
        """Have another node make a request; without an answer the owner asks again after a while."""
        effects.robots_asked = request
        if owner is not None:
            ban = OriginRules(rules=None, expires_at=now + ELSEWHERE_S, is_unreachable=True)
            owner.origins[request.origin] = ban
            if owner.record.parked_until <= now:
                owner.record.park_reason = f"{UNREACHABLE}: another node requests it"
            _park(owner, ban, now)
            self._table.reschedule(owner, now)

    def _apply(self, owner: HostSlot, request: RobotsRequest, result: Result, effects: Effects, now: float) -> None:
        last = owner.origins.get(request.origin)
        rules = answers.rules_from(result, self.cache.read)
        effects.fallbacks = _https_fallbacks(owner, request, result)
        self._counts.enqueue(owner.record, -len(effects.fallbacks))
        if result.outcome is Outcome.NOT_MODIFIED and last is not None and last.rules is not None:
            effects.robots = owner.origins[request.origin] = answers.renewed(last, now)
        else:
            effects.robots = self._learn(owner, request.origin, rules, result, now)
        if effects.robots.is_unreachable and not effects.fallbacks:
            _park(owner, effects.robots, now)
        effects.sitemaps = list(rules.sitemaps) if rules else []

    def give_up(self, host: HostSlot, outcome: Outcome, now: float) -> None:
        """Park the owners of robots.txt requests that were to be made at a host that cannot be contacted."""
        for request in host.robots_requests:
            owner = self._table.hosts.get(host_of(request.origin + "/"))
            if owner is not None and owner is not host:
                ban = self._learn(owner, request.origin, None, Result(0, outcome), now)
                _park(owner, ban, now)
                self._table.reschedule(owner, now)

    def restore_rules(self, host: HostSlot, origin: str, body: bytes | None, now: float) -> None:
        """Read rules that were shed; a long text in slices, one in each turn of the host.

        Without a text robots.txt is requested again.
        """
        state = host.origins.get(origin)
        if state is None or body is None:
            host.origins.pop(origin, None)
        elif state.rules is not None and state.rules.is_shed:
            if len(body) > AT_ONCE_BYTES and not self._reader.read_on(body):
                self._table.reschedule(host, now)
                return
            state.rules = self.cache.read(body)
            host.no_rules_before = now + len(body) * REREAD_S_PER_BYTE
            self.apply_rules(host)
        self.cache.end_restoring((host.name, origin))
        self._table.reschedule(host, now)

    def apply_rules(self, host: HostSlot) -> None:
        """Apply the parts of a host's robots.txt files that concern the whole host: delay, and use of its content."""
        rules = [origin.rules for origin in host.origins.values() if origin.rules is not None]
        host.crawl_delay_s = max((each.crawl_delay_s or 0.0 for each in rules), default=0.0)
        host.floor_s = self._pace.floor_s(host.name, host.crawl_delay_s)
        host.record.delay_s = host.delay_s()  # what reads the ledger knows the pace of the next request, too
        host.states_usage = any(each.usage for each in rules)

    def apply_pace(self, now: float) -> None:
        """Apply a changed pace to all hosts in memory, counted from when each was asked last."""
        for host in list(self._table.hosts.values()):
            before_s = host.delay_s()
            self.apply_rules(host)
            host.connections = self._pace.connections(host.name)
            changed_s = host.delay_s() - before_s
            if changed_s and host.record.next_at:
                host.record.next_at += changed_s
            self._table.reschedule(host, now)

    def _learn(
        self, owner: HostSlot, origin: str, rules: RobotsRules | None, result: Result, now: float
    ) -> OriginRules:
        if rules is not None:
            owner.record.robots_tries = 0
            state = answers.known(rules, result, now)
        elif self._limits.is_unreachable_robots_allowed or owner.name in self._limits.own_hosts:
            state = OriginRules(rules=ALLOW_ALL, expires_at=now + answers.UNREACHABLE_TTL_S)
        else:
            owner.record.robots_tries += 1
            tries = owner.record.robots_tries
            wait_s = first_wait_s(owner, self._limits)
            if result.outcome is Outcome.TLS_ERROR:  # a certificate does not change within minutes
                tries = max(tries, answers.QUICK_TRIES + 1)
            ban = answers.unreachable(tries, wait_s, now, result.retry_after_s)
            state = answers.last_good_copy(owner.origins.get(origin), ban, now) or ban
            if owner.record.parked_until <= now:  # else the host itself asked for it, or fails: for all its origins
                owner.record.park_reason = f"{UNREACHABLE}: {result.outcome}: {result.error}".rstrip(": ")
        owner.origins[origin] = state
        if not state.is_unreachable:
            owner.reread_skipped()
        self.apply_rules(owner)
        return state

    def accept(self, request: RobotsRequest, now: float) -> None:
        """Make a request for another node; not if its host is not to be contacted here: then it is asked for again."""
        if answers.leads_to_robots(request.origin + "/", request.url) and not self._is_drained(request.url):
            self.send(request, now)

    def send(self, request: RobotsRequest, now: float) -> None:
        """Make a request at its host when it is its turn."""
        host_name = host_of(request.url)
        host = self._table.hosts.get(host_name)
        if host is None:
            self._ahead.setdefault(host_name, []).append(request)
            self._table.commands.append(LoadHost(host_name))
            return
        host.push_robots(request)
        self._table.reschedule(host, now)


def _park(owner: HostSlot, ban: OriginRules, now: float) -> None:
    """Park a host if all that is queued there is banned; if other origins may follow, URLs are deferred one by one."""
    if owner.horizon is not None:
        return
    entries = [*owner.head, *owner.deferred]
    if all(is_banned(owner, entry[3].url, now) for entry in entries):
        owner.record.parked_until = max(owner.record.parked_until, ban.expires_at)


def is_banned(host: HostSlot, url: str, now: float) -> bool:
    """Return whether robots.txt of a URL's origin could not be reached and is not to be requested yet."""
    robots = host.origins.get(origin_of(url))
    return robots is not None and robots.is_unreachable and robots.expires_at > now


def lacks_https_for(owner: HostSlot, request: RobotsRequest, result: Result) -> bool:
    """Return whether a request shows that a bare domain that is queued has no https."""
    return bool(_https_guesses(owner, request, result))


def _https_guesses(owner: HostSlot, request: RobotsRequest, result: Result) -> list[HeadEntry]:
    is_first_answer = not request.hops and request.origin.startswith("https:")
    if result.outcome not in _HTTPS_MISSING or not is_first_answer:
        return []
    prefix = request.origin + "/"
    return [entry for entry in owner.head if entry[3].https_first and entry[3].url.startswith(prefix)]


def _https_fallbacks(owner: HostSlot, request: RobotsRequest, result: Result) -> list[QueuedUrl]:
    """Remove bare domains without https from the queue."""
    bare = _https_guesses(owner, request, result)
    for entry in bare:
        owner.head.remove(entry)
    if bare:
        owner.head.sort()
    return [entry[3] for entry in bare]


def unpark_for(host: HostSlot, url: QueuedUrl, now: float) -> bool:
    """End the wait of a host for robots.txt of another origin than this URL's: a ban is by origin."""
    if not host.record.park_reason.startswith(UNREACHABLE) or is_banned(host, url.url, now):
        return False
    if not any(rules.is_unreachable and rules.expires_at > now for rules in host.origins.values()):
        return False  # of which origin is not known: the ban is of a robots.txt that is at another host
    host.record.parked_until = now
    return True
