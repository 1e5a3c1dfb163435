"""The state of one request in progress.

A `Transfer` is the state of a request in progress, run by libcurl (`curl/transfer`) or by the plain client
(`plain/transfer`). They only record facts (bytes, times, the peer) and stop what exceeds a cap; nothing is decided
about the crawl here. Transfers are reused.

Invariants
- a transfer writes one request, never a second one by itself: a repeat is a separate task, at the host's pace.
- no socket is connected to an address that the policy refuses: it is checked when the request starts and
  again at the socket.
- the stored body never exceeds `limit`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from gossamer.core.content.mime import combined_mime_type
from gossamer.core.content.pdf_type import PDF, is_pdf
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.plain.head import NO_HEAD, Head, excess, read_head
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome, Truncation

if TYPE_CHECKING:
    from gossamer.fetch.access import Access

OnDone: TypeAlias = Callable[[Exchange], None]
OnSent: TypeAlias = Callable[[float], None]
Clock: TypeAlias = Callable[[], float]

KEEP_ALIVE_S: Final = 30
DEAD_CONNECTION: Final = "the keep-alive connection was dead; not repeated at once"
_CONDITIONS: Final = frozenset(("if-none-match", "if-modified-since"))
_NONE: Final = Truncation.NONE
AnyTransfer = TypeVar("AnyTransfer", bound="Transfer")


class Ticket(Protocol):
    """Informed when a transfer has finished a request."""

    transfer: Transfer | None


class Marks(Protocol):
    """Numbers of the requests whose answers are being handled: the first is set by the fetcher."""

    def __setitem__(self, place: int, number: int, /) -> None: ...


class FetchRequest(Struct, frozen=True):
    """One request to make. `url` is canonical; `addresses` are tried in order."""

    url: str
    addresses: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = ()  # If-None-Match, If-Modified-Since
    wanted_types: frozenset[str] | None = None  # "text/html", or "text/" for all of them; None: everything
    max_bytes: int = 0  # 0: as in FetchLimits
    number: int = 0  # the caller's, for its marks
    is_head: bool = False  # ask for the head of the answer only
    is_anonymous: bool = False  # without credentials, whatever its host needs
    limit_s: float = 0.0  # of all of it, from its start; 0: none besides those of each step

    @property
    def is_conditional(self) -> bool:
        """Whether a 304 is a valid answer."""
        return any(name.lower() in _CONDITIONS for name, _ in self.headers)


class HttpClient(Protocol[AnyTransfer]):
    """Runs transfers. Each ends in one call of the function that was passed to the client, from the loop."""

    def transfer(self) -> AnyTransfer:
        """Return a transfer to prepare for a request."""
        ...

    def begin(self, transfer: AnyTransfer) -> None:
        """Start a prepared transfer."""
        ...

    def drop(self, transfer: AnyTransfer) -> None:
        """Abandon a request and close its connection, without a callback. Not from within a callback of a transfer."""
        ...

    def put_back(self, transfer: AnyTransfer) -> None:
        """Return a finished transfer for reuse."""
        ...


class Transfer(ABC):
    __slots__ = (
        "_clock",
        "_judged_lines",
        "_limits",
        "_policy",
        "_seen_bytes",
        "_silent_since",
        "access",
        "address",
        "attempt_at",
        "attempts_left",
        "chunks",
        "connect_s",
        "cut",
        "error",
        "fault",
        "head",
        "limit",
        "lines",
        "on_done",
        "on_sent",
        "request",
        "request_head",
        "requests_sent",
        "sent_at",
        "size",
        "ticket",
        "tls_s",
        "tls_version",
        "verdict",
    )

    def __init__(self, limits: FetchLimits, policy: AddressPolicy, clock: Clock) -> None:
        self._limits = limits
        self._policy = policy
        self._clock = clock
        self.ticket: Ticket | None = None
        self.access: Access | None = None  # what its host needs; set for every request
        self.tls_version = ""  # of the connection, as "TLSv1.3"
        self.lines: list[bytes] = []
        self.chunks: list[bytes] = []

    def prepare(self, request: FetchRequest, addresses: list[str], on_done: OnDone, on_sent: OnSent | None) -> None:
        """Set up for a request. `addresses` are those that the policy allows."""
        self.request = request
        self.on_done: OnDone | None = on_done
        self.on_sent = on_sent
        self.limit = request.max_bytes or self._limits.max_bytes
        self.attempts_left = addresses[::-1]
        self.next_attempt()

    def next_attempt(self) -> None:
        """Reset the previous attempt and select the next address."""
        self.lines.clear()
        self.chunks.clear()
        self.head: Head | None = None
        self.size = self._seen_bytes = self._judged_lines = 0
        self.requests_sent = 0
        self.request_head = b""  # as written
        self.sent_at = 0.0
        self.connect_s = self.tls_s = -1.0  # of a new connection
        self.verdict: Outcome | None = None
        self.cut = _NONE
        self.error = ""
        self.fault: Exception | None = None  # raised by our own code in a callback of libcurl
        self.attempt_at = self._silent_since = self._clock()
        self.address = self.attempts_left.pop()

    def release(self) -> None:
        """Drop everything that belongs to the request, so that the transfer can be reused."""
        if self.ticket is not None:
            self.ticket.transfer = None
        self.ticket = self.on_done = self.on_sent = self.head = self.access = None
        self.lines.clear()
        self.chunks.clear()

    def now(self) -> float:
        """Return the time by the crawl's clock."""
        return self._clock()

    @abstractmethod
    def first_byte_at(self, latest: float) -> float:
        """Return when the answer began."""

    def record_sent(self, request_head: bytes) -> None:
        """The request is about to be written."""
        self.requests_sent = 1
        self.request_head = request_head
        self.sent_at = self._clock()
        if self.on_sent is not None:
            self.on_sent(self.sent_at)

    def overdue(self, now: float) -> str:
        """Return which time limit this transfer exceeds, or the empty string."""
        limits = self._limits
        if 0 < self.request.limit_s < now - self.attempt_at:
            return f"no whole answer within {self.request.limit_s:g} s, for which the connection was lent"
        if not self.requests_sent:
            return self._overdue_connect(now)
        if now - self.sent_at > limits.total_timeout_s:
            return f"no whole answer within {limits.total_timeout_s:g} s"
        if not self.size and not self._has_whole_head():
            is_late = now - self.sent_at > limits.first_byte_timeout_s
            self._silent_since = now
            return f"no response head within {limits.first_byte_timeout_s:g} s" if is_late else ""
        if self.size != self._seen_bytes:
            self._seen_bytes = self.size
            self._silent_since = now
        return f"silent for {limits.silence_s:g} s" if now - self._silent_since > limits.silence_s else ""

    def final_head(self) -> Head:
        """Return the head of the final answer, as far as it was received."""
        if self.head is None:
            self.head = read_head(self.lines) if self.lines else NO_HEAD
        return self.head

    def judge_caps(self) -> None:
        """Set a verdict if the head exceeds a cap."""
        lines = self.lines
        limits = self._limits
        if len(lines) == self._judged_lines:
            return
        self._judged_lines = len(lines)
        head = self.final_head()
        # Nearly always one head, smaller than the cap of a line: nothing in it can exceed a cap.
        if len(head.headers) + 2 == len(lines) <= limits.max_headers and len(head.raw) <= limits.max_header_line_bytes:
            return
        self.stop_at_excess(lines)

    def stop_at_excess(self, lines: list[bytes]) -> None:
        """Set a verdict if these header lines exceed a cap."""
        over = excess(lines, self._limits)
        if over is not None:
            self.stop(Outcome.PROTOCOL_ERROR if over.is_interim else Outcome.HEADER_TOO_LARGE, over.reason)

    def refuses_type(self, first: bytes = b"") -> bool:
        """Whether this answer has a type that was not requested, given the first piece of its body."""
        wanted = self.request.wanted_types
        head = self.final_head()
        if wanted is None or head.status // 100 != 2:
            return False
        named = head.named
        values: tuple[str, ...] = (named.get("content-type", ""),)
        if len(named) != len(head.headers):  # some header is repeated
            values = tuple([value for name, value in head.headers if name == "content-type"])
        media_type = combined_mime_type(values).essence
        # Without a usable type the body itself must be examined.
        slash = media_type.find("/")
        if slash < 0 or media_type[: slash + 1] in wanted or media_type in wanted:
            return False
        return not (PDF in wanted and is_pdf(media_type, first, self.request.url))

    def add_chunk(self, chunk: bytes) -> bool:
        """Add a piece of the body; return whether more of it is wanted."""
        if not self.chunks:
            self.judge_caps()
            if self.verdict is None and self.refuses_type(chunk):
                self.verdict = Outcome.TYPE_REFUSED
            if self.verdict is not None:
                return False
        elif len(self.chunks) > 64 + (self.size >> 6):  # a piece of 2 bytes takes 43: joined now and then
            self.chunks[:] = [b"".join(self.chunks)]
        size = self.size + len(chunk)
        if size > self.limit:
            self.chunks.append(chunk[: self.limit - self.size])
            self.size = self.limit
            self.cut = Truncation.LENGTH
            return False
        self.chunks.append(chunk)
        self.size = size
        return True

    def stop(self, verdict: Outcome, error: str) -> None:
        """Set a verdict: nothing more of this answer is wanted."""
        self.verdict = verdict
        self.error = error

    @abstractmethod
    def _is_connected(self) -> bool:
        """Return whether TCP is connected."""

    def _overdue_connect(self, now: float) -> str:
        limit = self._limits.connect_timeout_s
        if self.attempts_left:
            # Other addresses remain: a dead one does not get the whole time. The last one does.
            limit = max(limit / 4, min(limit, 1.0))
        if now - self.attempt_at <= limit:
            return ""
        if not self._is_connected():
            return f"no connection within {limit:g} s"
        return f"no TLS handshake within {limit:g} s" if now - self.attempt_at > 2 * limit else ""

    def _has_whole_head(self) -> bool:
        return bool(self.lines) and self.lines[-1] in (b"\r\n", b"\n") and read_head(self.lines).status // 100 != 1
