"""Requests for robots.txt: whose they are, and what follows from the answer.

robots.txt belongs to an origin. The request may be made at another host, where a redirect leads:
then its owner waits until that host has had its turn. An answer gives the owner its rules; none
parks it, or lets what was known stand in.
"""

from __future__ import annotations

from gossamer.core import robots_book
from gossamer.core.commands import Consequence, LoadHost
from gossamer.core.limits import FrontierLimits
from gossamer.core.politeness import Pace
from gossamer.core.residents import Residents
from gossamer.core.robots import ALLOW_ALL, RobotsRules
from gossamer.core.url import host_of
from gossamer.core.workbench import HostSlot, OriginRules, RobotsErrand
from gossamer.records import Outcome, QueuedUrl, Result

# Answers that make a bare domain fall back from https to http at once.
_HTTPS_MISSING = frozenset({Outcome.CONNECT_FAILED, Outcome.CONNECT_TIMEOUT, Outcome.TLS_ERROR, Outcome.DISCONNECTED})


def first_wait_s(host: HostSlot, limits: FrontierLimits) -> float:
    """Return how long the first retry at a host waits."""
    return max(limits.retry_wait_s, 2 * host.delay_s())


class RobotsErrands:
    """The requests for robots.txt that are to be made, and those that were answered."""

    def __init__(self, residents: Residents, limits: FrontierLimits, pace: Pace, token: str) -> None:
        self._residents = residents
        self._limits = limits
        self._pace = pace
        self._token = token
        self._ahead: dict[str, list[RobotsErrand]] = {}  # for hosts that are being loaded

    def hand_over(self, host: HostSlot) -> None:
        """Give a host that has come into memory the errands that waited for it."""
        host.errands.extend(self._ahead.pop(host.name, ()))

    def end(self, host: HostSlot, errand: RobotsErrand, result: Result, what: Consequence, now: float) -> None:
        """Take the answer to a request for robots.txt, asked at a host for itself or for another."""
        what.robots_origin = errand.origin
        if result.outcome is Outcome.WORKER_LOST:
            host.errands.append(errand)
            return
        if result.outcome is Outcome.REDIRECT and errand.hops < robots_book.MAX_ROBOTS_HOPS:
            self._send(RobotsErrand(errand.origin, result.redirect_to, errand.hops + 1), now)
            return
        owner = self._residents.hosts.get(host_of(errand.origin + "/"))
        if owner is None:
            return
        last = owner.origins.get(errand.origin)
        rules = robots_book.rules_from(result, self._token)
        what.fallbacks = _https_fallbacks(owner, errand, result)
        if result.outcome is Outcome.NOT_MODIFIED and last is not None and last.rules is not None:
            what.robots = owner.origins[errand.origin] = robots_book.renewed(last, now)
        else:
            what.robots = self._learn(owner, errand.origin, rules, result, now)
        if what.robots.is_unreachable and not what.fallbacks:
            _park(owner, what.robots)
        what.sitemaps = list(rules.sitemaps) if rules else []
        if owner is not host:
            if owner.crawl_delay_s:  # it may have been asked just before, when nobody knew how slow it wants us to be
                owner.hold_pace(owner.record.last_fetch_at)
            what.hosts.append(owner.record)
            self._residents.settle(owner, now)

    def give_up(self, host: HostSlot, outcome: Outcome, now: float) -> None:
        """Tell the owners of robots.txt requests that were to be made at a host without address."""
        for errand in host.errands:
            owner = self._residents.hosts.get(host_of(errand.origin + "/"))
            if owner is not None and owner is not host:
                ban = self._learn(owner, errand.origin, None, Result(0, outcome), now)
                _park(owner, ban)
                self._residents.settle(owner, now)

    def note_rules(self, host: HostSlot) -> None:
        """Keep at hand what the robots.txt files of a host say of the whole of it."""
        rules = [origin.rules for origin in host.origins.values() if origin.rules is not None]
        host.crawl_delay_s = max((each.crawl_delay_s or 0.0 for each in rules), default=0.0)
        host.floor_s = self._pace.floor_s(host.name, host.crawl_delay_s)
        host.states_usage = any(each.usage for each in rules)

    def _learn(
        self, owner: HostSlot, origin: str, rules: RobotsRules | None, result: Result, now: float
    ) -> OriginRules:
        if rules is not None:
            owner.record.robots_tries = 0
            state = robots_book.known(rules, result, now)
        elif self._limits.is_unreachable_robots_allowed:
            state = OriginRules(rules=ALLOW_ALL, expires_at=now + robots_book.UNREACHABLE_TTL_S)
        else:
            owner.record.robots_tries += 1
            tries, wait_s = owner.record.robots_tries, first_wait_s(owner, self._limits)
            ban = robots_book.unreachable(tries, wait_s, now, result.retry_after_s)
            state = robots_book.stand_in(owner.origins.get(origin), ban, now) or ban
            owner.record.park_reason = f"robots.txt unreachable: {result.outcome}"
        owner.origins[origin] = state
        self.note_rules(owner)
        return state

    def _send(self, errand: RobotsErrand, now: float) -> None:
        host_name = host_of(errand.url)
        host = self._residents.hosts.get(host_name)
        if host is None:
            self._ahead.setdefault(host_name, []).append(errand)
            self._residents.commands.append(LoadHost(host_name))
            return
        host.errands.append(errand)
        self._residents.settle(host, now)


def _park(owner: HostSlot, ban: OriginRules) -> None:
    """Leave a host alone whose only origin may not be asked; with others, URLs are set aside one by one."""
    if len(owner.origins) == 1:
        owner.record.parked_until = max(owner.record.parked_until, ban.expires_at)


def _https_fallbacks(owner: HostSlot, errand: RobotsErrand, result: Result) -> list[QueuedUrl]:
    """Take bare domains out of the queue whose https cannot be had."""
    is_first_answer = not errand.hops and errand.origin.startswith("https:")
    if result.outcome not in _HTTPS_MISSING or not is_first_answer:
        return []
    place = errand.origin + "/"
    bare = [entry for entry in owner.head if entry[2].https_first and entry[2].url.startswith(place)]
    for entry in bare:
        owner.head.remove(entry)
        owner.record.queued -= 1
    if bare:
        owner.head.sort()
    return [entry[2] for entry in bare]
