"""When did a request reach its server, and how long must a host be left alone after a restart?

**Pace from arrival.** The delay between two requests is a promise to the server, which measures it from
one arrival to the next. We know only when a request was written (`sent_at`) and when its answer was
complete. If the first request takes 90 ms to reach its server and the second 10 ms, a delay measured from
write to write is 80 ms short at the server. So the delay starts at the *latest* moment at which the
server can have received the previous request:

1. It arrived before its answer was complete: `finished_at` is a bound. But a server can take long to
   answer, so at most `MAX_TRANSIT_S` after the write is counted.
2. A request may lie unread in the socket of a server under load. If the first byte took longer than the
   host's best latency, the excess may be such waiting, so arrival is at the latest the first byte minus that
   best latency. (libcurl reads the clock once for many transfers, so its time of the first byte can
   be some milliseconds early: `CLOCK_SLACK_S`.)

Until the answer arrives, `MAX_TRANSIT_S` is assumed; then the assumption is replaced by the bound above,
if nothing else was sent in the meantime.

**Restoring delays.** The times stored for a host (next allowed time, parked until) are readings of the clock
of the run that wrote them. A clock that was set between two runs must neither shorten a delay nor block a
host, so on loading a wait is clamped to the longest that can have been meant. After an unclean stop it is
unknown which hosts the dead process contacted last, so every host counts as contacted at the restart: it
waits for its delay, plus the transit of a request that may still be on its way. If no robots.txt of the host
is stored, the dead process may have received a Crawl-delay and not stored it: `UNKNOWN_DELAY_S` at least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.core.politeness.retry import MAX_RETRY_AFTER_S
from gossamer.model.records import Result

if TYPE_CHECKING:
    from gossamer.core.frontier.workbench import HostSlot

CLOCK_SLACK_S = 0.005
MAX_TRANSIT_S = 0.1  # how long a request may take to reach its server, for the purpose of pace
UNKNOWN_DELAY_S = 1.0  # if a process died that may have received a Crawl-delay


def arrived_at(result: Result, best_latency_s: float) -> float:
    """Return the latest time at which the server can have received the request."""
    arrived = max(result.sent_at, min(result.finished_at, result.sent_at + MAX_TRANSIT_S))
    if result.first_byte_at and best_latency_s:
        arrived = max(arrived, min(result.finished_at, result.first_byte_at + CLOCK_SLACK_S) - best_latency_s)
    return arrived


def renew_promises(host: HostSlot, all_asked_at: float, now: float) -> None:
    """Adjust a host's stored times to this run's clock; `all_asked_at` is the restart after an unclean stop."""
    delay_s = host.delay_s()
    record = host.record
    min_wait_s = delay_s + MAX_TRANSIT_S if delay_s else 0.0
    if not host.origins:
        min_wait_s = max(min_wait_s, UNKNOWN_DELAY_S)
    record.next_at = max(min(record.next_at, now + delay_s), all_asked_at + min_wait_s)
    record.parked_until = min(record.parked_until, now + MAX_RETRY_AFTER_S)
    record.slowed_at = min(record.slowed_at, now)
