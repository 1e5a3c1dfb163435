"""What does an answer to a robots.txt request mean? RFC 9309 2.3.1, as values.

2xx: the rules in the body. 3xx: followed up to five times, for the first authority; then
as if there were none. 4xx: no rules, everything is allowed; but 429, 5xx and no answer at
all mean that nothing may be fetched until it is asked again.
"""

from __future__ import annotations

from gossamer.core.robots import ALLOW_ALL, RobotsRules, parse_robots
from gossamer.core.workbench import OriginRules
from gossamer.records import Outcome, Result

ROBOTS_TTL_S = 24 * 3600.0
UNREACHABLE_TTL_S = 3600.0
MAX_ROBOTS_HOPS = 5
QUICK_TRIES = 3

_ABSENT = frozenset(
    {Outcome.CLIENT_ERROR, Outcome.BAD_STATUS, Outcome.BAD_REDIRECT, Outcome.TYPE_REFUSED, Outcome.TOO_MANY_REDIRECTS}
)


def rules_from(result: Result, token: str) -> RobotsRules | None:
    """Return the rules that an answer lays down, or None where robots.txt could not be reached."""
    if result.outcome is Outcome.OK:
        return parse_robots(result.robots, token)
    if result.outcome in _ABSENT or result.outcome is Outcome.REDIRECT:
        return ALLOW_ALL
    return None


def known(rules: RobotsRules, now: float) -> OriginRules:
    """Return rules that hold for a day."""
    return OriginRules(rules=rules, expires_at=now + ROBOTS_TTL_S)


def unreachable(tries: int, first_wait_s: float, now: float) -> OriginRules:
    """Return a ban until robots.txt is asked for again: soon at first, then every hour."""
    wait_s = first_wait_s * 4 ** (tries - 1) if tries <= QUICK_TRIES else UNREACHABLE_TTL_S
    return OriginRules(expires_at=now + wait_s, is_unreachable=True)
