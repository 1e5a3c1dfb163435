"""What does an answer to a robots.txt request mean? RFC 9309 2.3.1, as values.

2xx: the rules in the body. 3xx: followed up to five times, for the first authority; then
as if there were no file. A redirect to another host is followed to its `/robots.txt` only, which
every host offers: else anybody could have us request what that host forbids. 4xx: no rules,
everything is allowed; but 429, 5xx and no answer mean that nothing may be fetched until the next
request for it. If an earlier copy exists and only its renewal fails, that copy stays in force for
another day. 304: the rules are renewed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from gossamer.core.frontier.workbench import OriginRules
from gossamer.core.politeness.retry import MAX_RETRY_AFTER_S
from gossamer.core.robots.rules import ALLOW_ALL, RobotsRules
from gossamer.core.url.forms import host_of, path_of
from gossamer.model.records import Outcome, Result, RobotsRecord

ReadRules: TypeAlias = Callable[[bytes], RobotsRules]  # of a text
ROBOTS_TTL_S = 24 * 3600.0
UNREACHABLE_TTL_S = 3600.0
LAST_GOOD_S = 2 * ROBOTS_TTL_S  # a day in force, and one more day while it cannot be renewed
MAX_ROBOTS_HOPS = 5
ROBOTS_PATH = "/robots.txt"
QUICK_TRIES = 3
MAX_READ_AHEAD_BYTES = 2_048  # 0.5 ms

_ABSENT = frozenset(
    {Outcome.CLIENT_ERROR, Outcome.BAD_STATUS, Outcome.BAD_REDIRECT, Outcome.TYPE_REFUSED, Outcome.TOO_MANY_REDIRECTS}
)


def is_absent(outcome: str) -> bool:
    """Return whether an answer means that there is no robots.txt."""
    return outcome in _ABSENT or outcome == Outcome.REDIRECT


def leads_to_robots(url: str, redirect_to: str) -> bool:
    """Return whether a redirect of a robots.txt leads to what may be requested: a host may name any path of its own."""
    return path_of(redirect_to) == ROBOTS_PATH or host_of(redirect_to) == host_of(url)


def is_followed(url: str, redirect_to: str, hops: int) -> bool:
    """Return whether a redirect of a robots.txt, the one after `hops` others, is followed."""
    return hops < MAX_ROBOTS_HOPS and leads_to_robots(url, redirect_to)


def is_ban(record: RobotsRecord) -> bool:
    """Return whether a stored answer means that robots.txt could not be reached."""
    return record.outcome != Outcome.OK and not is_absent(record.outcome)


def stored_state(record: RobotsRecord, read: ReadRules, delay_s: float, *, is_unreachable_allowed: bool) -> OriginRules:
    """Return the state of an origin as it was stored; rules that have expired are renewed before the next fetch.

    A long text is not read before its rules are needed: until then the delay that was last in force is the Crawl-delay.
    """
    if is_ban(record) and not is_unreachable_allowed:
        return OriginRules(expires_at=record.expires_at, is_unreachable=True)
    is_file = record.outcome == Outcome.OK
    is_long = len(record.body) > MAX_READ_AHEAD_BYTES
    rules = RobotsRules(None, crawl_delay_s=delay_s, text_bytes=len(record.body)) if is_long else read(record.body)
    return OriginRules(
        rules=rules,
        expires_at=record.expires_at,
        good_until=record.fetched_at + LAST_GOOD_S if is_file else 0.0,
        etag=record.etag,
        last_modified=record.last_modified,
    )


def rules_from(result: Result, read: ReadRules) -> RobotsRules | None:
    """Return the rules that follow from an answer, or None if robots.txt could not be reached."""
    if result.outcome in (Outcome.OK, Outcome.OTHER_SUCCESS):
        return read(result.robots)
    return ALLOW_ALL if is_absent(result.outcome) else None


def known(rules: RobotsRules, result: Result, now: float) -> OriginRules:
    """Return rules that are valid for a day; those of a file stay in force longer if it cannot be renewed."""
    is_file = result.outcome is Outcome.OK
    return OriginRules(
        rules=rules,
        expires_at=now + ROBOTS_TTL_S,
        good_until=now + LAST_GOOD_S if is_file else 0.0,
        etag=result.etag if is_file else "",
        last_modified=result.last_modified if is_file else "",
    )


def renewed(last: OriginRules, now: float) -> OriginRules:
    """Return rules that are valid for another day: the file is unchanged."""
    until = now + ROBOTS_TTL_S
    good_until = now + LAST_GOOD_S
    return replace(last, is_pending=False, is_last_good_copy=False, expires_at=until, good_until=good_until)


def asked_again(last: OriginRules | None) -> OriginRules:
    """Return the state of an origin whose robots.txt is being requested; earlier rules are retained for the answer."""
    if last is None or last.rules is None:
        return OriginRules(is_pending=True, expires_at=float("inf"))
    return replace(last, is_pending=True, expires_at=float("inf"))


def unreachable(tries: int, first_wait_s: float, now: float, retry_after_s: float = 0.0) -> OriginRules:
    """Return a ban until the next request for robots.txt: soon at first, then every hour, or after Retry-After."""
    wait_s = first_wait_s * 4 ** (tries - 1) if tries <= QUICK_TRIES else UNREACHABLE_TTL_S
    return OriginRules(expires_at=now + max(wait_s, min(retry_after_s, MAX_RETRY_AFTER_S)), is_unreachable=True)


def last_good_copy(last: OriginRules | None, ban: OriginRules, now: float) -> OriginRules | None:
    """Return the last good copy instead of a ban, until the next request for robots.txt; None if there is none."""
    if last is None or last.rules is None or last.good_until <= now:
        return None
    until = min(ban.expires_at, last.good_until)
    return replace(last, is_pending=False, expires_at=until, is_last_good_copy=True)
