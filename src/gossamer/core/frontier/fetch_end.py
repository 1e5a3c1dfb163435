"""What the end of a request changes in the record of its host: counts, latency, and when the next may follow."""

from __future__ import annotations

from gossamer.core.frontier.outstanding import OutstandingOrder
from gossamer.core.politeness import pace
from gossamer.model.figures import is_error
from gossamer.model.records import HostRecord, Outcome, Result

_WORKER_LOST = Outcome.WORKER_LOST  # a constant: up to Python 3.11, reading a member from its class takes 80 ns


def count_fetch(record: HostRecord, result: Result, now: float, *, is_robots: bool) -> None:
    """Count a fetch that has ended in the record of its host."""
    if result.outcome is not _WORKER_LOST:  # an order that was returned to the queue has not ended
        record.fetches += 1
        record.errors += is_error(result.outcome, is_robots=is_robots)
    record.last_fetch_at = now
    if result.status >= 500:
        pace.count_server_error(record, now)
    record.bytes += result.wire_bytes
    if result.first_byte_at > result.sent_at > 0:
        pace.record_latency(record, result.first_byte_at - result.sent_at)
    pace.record_result(record, result, now)


def set_pace(out: OutstandingOrder, asked_at: float) -> None:
    """Start a host's delay after a request whose arrival is known now."""
    record = out.host.record
    delay_s = record.delay_s = out.host.delay_s()
    if out.next_at_held and out.next_at_held == record.next_at:
        # Nothing was sent since: the assumed maximum transit no longer counts.
        record.next_at = out.next_at_before
    if delay_s:
        record.next_at = max(record.next_at, asked_at + delay_s)
