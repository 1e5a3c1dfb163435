"""The result of a transfer that has ended.

`judged` turns an answer, or our verdict, into an outcome; `exchange_of` makes the record, and `decode_content` decodes
its body under the same limit. For an incomplete body the record has the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gossamer.fetch.body import decode
from gossamer.fetch.outcome import status_outcome
from gossamer.fetch.transfer import Transfer
from gossamer.foundation import failpoints
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome, Truncation

_OK: Final = Outcome.OK  # constants: up to Python 3.11, reading a member from its class takes 80 ns
_NOT_CUT: Final = Truncation.NONE
# A protocol error in the middle of a body ends it like a disconnect.
_CUT_BY: Final[Mapping[Outcome, Truncation]] = {
    Outcome.TIMEOUT: Truncation.TIME,
    Outcome.DISCONNECTED: Truncation.DISCONNECT,
    Outcome.PROTOCOL_ERROR: Truncation.DISCONNECT,
    Outcome.WORKER_LOST: Truncation.DISCONNECT,
}


def judged(transfer: Transfer) -> tuple[Outcome, str]:
    """Return the outcome and one line about it, for a transfer that has its answer, or was stopped by us."""
    if transfer.verdict is None:
        transfer.judge_caps()
    if transfer.verdict is not None:
        return transfer.verdict, transfer.error
    if not transfer.chunks and transfer.refuses_type():
        return Outcome.TYPE_REFUSED, ""
    head = transfer.final_head()
    if not head.is_whole:
        return Outcome.DISCONNECTED, "the connection ended within the head of the answer"
    if head.status == 200:  # nearly always; the rest of the table takes 1.5 µs
        return _OK, ""
    outcome = status_outcome(
        head.status, has_location=bool(head.value("location")), is_conditional=transfer.request.is_conditional
    )
    return outcome, ""


def exchange_of(transfer: Transfer, outcome: Outcome, error: str) -> Exchange:
    """Make the record of a transfer, its body as received."""
    head = transfer.final_head()
    exchange = Exchange(
        url=transfer.request.url,
        outcome=outcome,
        error=error,
        status=head.status,
        address=transfer.address,
        http_version=head.http_version,
        tls_version=transfer.tls_version,
        response_head=head.raw,
        headers=head.headers,
        first_values=head.named,
        request_head=transfer.request_head,
        sent_at=transfer.sent_at,
        requests_sent=transfer.requests_sent,
        finished_at=transfer.now(),
        wire_bytes=transfer.size,
    )
    if head.status:
        exchange.first_byte_at = transfer.first_byte_at(exchange.finished_at)
        exchange.connect_s = transfer.connect_s
        exchange.tls_s = transfer.tls_s
    exchange.truncated = transfer.cut
    if head.is_whole and head.status >= 200 and not transfer.cut:
        exchange.truncated = _CUT_BY.get(outcome, _NOT_CUT)
    chunks = transfer.chunks
    if chunks:
        exchange.body = exchange.content = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    return exchange


def decode_content(exchange: Exchange, codings: str, limit: int) -> None:
    """Decode the body of a record that has content codings. May be called from a thread."""
    failpoints.reach("in_decode", exchange.url)
    decoded = decode(exchange.body, codings, limit)
    exchange.content = decoded.content
    exchange.is_decoded = decoded.is_decoded
    if exchange.truncated is _NOT_CUT:
        if decoded.is_truncated:
            exchange.truncated = Truncation.LENGTH
        elif decoded.is_cut:
            exchange.truncated = Truncation.DISCONNECT
