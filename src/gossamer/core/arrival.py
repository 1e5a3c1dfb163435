"""When did a request reach its server, and what do we owe a host after a restart? Pace is what the server sees.

**Pace from arrival.** The delay between two requests is a promise to the server, and a server counts from
one arrival to the next. We know only when a request was written (`sent_at`) and when its answer was
there. If the first request takes 90 ms to its server and the second 10 ms, a delay counted from
writing to writing is 80 ms short at the server. So the next request waits from the *latest* moment at
which the server can have received the one before:

1. It was there before its answer was whole: `finished_at` is a bound. But that may be long after, for
   reasons of the server's own, so no more than `MAX_TRANSIT_S` after writing counts.
2. A request may lie unread in the socket of a server under load. If the first byte took longer than the
   host's best latency, the excess may be such waiting, so arrival is at the latest the first byte minus that
   best latency. (libcurl reads the clock once for many transfers, so its time of the first byte can
   be some milliseconds early: `CLOCK_SLACK_S`.)

Before the answer is there nobody knows, and `MAX_TRANSIT_S` is assumed; when it comes, the assumption is
replaced by what is known, if nothing else was sent since.

**Promises renewed.** What is stored about a host (next allowed time, parked until) are instants on the time
line of the run that wrote them. A clock that was set between two runs must neither hurry nor freeze a host,
so on loading a wait is clamped to the longest that can have been meant. After an unclean stop nobody
knows whom the dead process asked last, so every host counts as asked at the moment of the restart: its
delay, plus the transit of a request that may still be on its way. If the host has no robots.txt at hand, the
dead process may have been given a Crawl-delay that was not stored: `UNTOLD_DELAY_S` at least.
"""

from __future__ import annotations

from gossamer.core.retry import MAX_RETRY_AFTER_S
from gossamer.core.workbench import HostSlot
from gossamer.records import Result

CLOCK_SLACK_S = 0.005
MAX_TRANSIT_S = 0.1  # what a request may take to its server, as far as pace is concerned
UNTOLD_DELAY_S = 1.0  # if a process died that may have been given another


def arrived_at(result: Result, best_latency_s: float) -> float:
    """Return the latest time at which the server can have received the request."""
    arrived = max(result.sent_at, min(result.finished_at, result.sent_at + MAX_TRANSIT_S))
    if result.first_byte_at and best_latency_s:
        arrived = max(arrived, min(result.finished_at, result.first_byte_at + CLOCK_SLACK_S) - best_latency_s)
    return arrived


def renew_promises(host: HostSlot, all_asked_at: float, now: float) -> None:
    """Bring a host's stored instants onto this time line; `all_asked_at` is the restart after an unclean stop."""
    delay_s = host.delay_s()
    record = host.record
    min_wait_s = delay_s + MAX_TRANSIT_S if delay_s else 0.0
    if not host.origins:
        min_wait_s = max(min_wait_s, UNTOLD_DELAY_S)
    record.next_at = max(min(record.next_at, now + delay_s), all_asked_at + min_wait_s)
    record.parked_until = min(record.parked_until, now + MAX_RETRY_AFTER_S)
    record.slowed_at = min(record.slowed_at, now)
