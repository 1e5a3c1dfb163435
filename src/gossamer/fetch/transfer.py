"""What is happening to one request right now?

A `Transfer` is a curl handle with the state of the request it serves; handles are
used again and again, so options that never change are set once. libcurl's
callbacks only note facts (bytes, times, the peer) and stop what is over a cap;
nothing is decided about the crawl here.

Invariants
- a transfer writes one request. libcurl would repeat it by itself where a kept connection turns out to
  be dead; PREREQFUNCTION refuses that, so that the repeat is an order of its own, at the host's pace.
- no socket is connected to an address that the policy refuses: CONNECT_TO names the one address to go to,
  which is judged when the request starts and again at the socket. What a connection leads to is judged
  once more before a byte is written.
- the body kept never exceeds `limit`.
- header lines are kept as they come, without a call of ours each (0.6 µs), and judged when the head is whole or
  the transfer ends. libcurl itself stops at 300 KiB of heads, 100 KiB a line and 5000 headers, trailers included.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from gossamer.core.url import origin_of
from gossamer.fetch.guard import AddressPolicy
from gossamer.fetch.head import NO_HEAD, Head, excess, read_head
from gossamer.fetch.identity import Identity
from gossamer.fetch.libcurl import Curl, pycurl
from gossamer.fetch.limits import FetchLimits
from gossamer.records import Exchange, Outcome, Truncation

OnDone: TypeAlias = Callable[[Exchange], None]
OnSent: TypeAlias = Callable[[float], None]
Clock: TypeAlias = Callable[[], float]

_CONDITIONS: Final = frozenset(("if-none-match", "if-modified-since"))
_ABORT: Final = 0  # bytes taken: fewer than given stops the transfer
_RECEIVE_BYTES: Final = 128 * 1024
_KEPT_IDLE_S: Final = 30
# What browsers offer, less the hybrid with ML-KEM: its key share is made for every connection and takes a fifth
# of its CPU. It keeps from those who record what is sent today what they might read in decades: public pages.
_GROUPS: Final = "X25519:P-256:P-384:P-521"
_IGNORE_CONTENT_LENGTH: Final = 136
_DISALLOW_USERNAME_IN_URL: Final = 278  # curl.h; pycurl has no name for it


class Ticket(Protocol):
    """What the transfer tells when it is done with a request."""

    transfer: Transfer | None


class FetchRequest(Struct, frozen=True):
    """One request to make. `url` is canonical; `addresses` are tried in order."""

    url: str
    addresses: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = ()  # If-None-Match, If-Modified-Since
    wanted_types: frozenset[str] | None = None  # "text/html", or "text/" for all of them; None: everything
    max_bytes: int = 0  # 0: as in FetchLimits

    @property
    def is_conditional(self) -> bool:
        """Whether a 304 would be an answer to this."""
        return any(name.lower() in _CONDITIONS for name, _ in self.headers)


class Transfer:
    """One curl handle and the request it serves."""

    __slots__ = (
        "_base_headers",
        "_clock",
        "_connect_to",
        "_has_extra_headers",
        "_judged_lines",
        "_limits",
        "_on_socket_made",
        "_policy",
        "_seen_bytes",
        "_silent_since",
        "_socket",
        "address",
        "attempt_at",
        "attempts_left",
        "chunks",
        "curl",
        "cut",
        "error",
        "head",
        "is_length_ignored",
        "limit",
        "lines",
        "on_done",
        "on_sent",
        "request",
        "requests_sent",
        "sent_at",
        "size",
        "ticket",
        "verdict",
    )

    def __init__(
        self,
        limits: FetchLimits,
        identity: Identity,
        policy: AddressPolicy,
        clock: Clock,
        *,
        on_socket_made: Callable[[int], None],
        ca_file: str = "",
    ) -> None:
        self._limits = limits
        self._policy = policy
        self._clock = clock
        self._on_socket_made = on_socket_made
        self._base_headers = list(identity.headers())
        self._has_extra_headers = False
        self.is_length_ignored = False
        self._connect_to = ""
        self.ticket: Ticket | None = None
        self.lines: list[bytes] = []
        self.chunks: list[bytes] = []
        self.curl = _new_curl(identity, limits, ca_file)
        self.curl.setopt(pycurl.HTTPHEADER, self._base_headers)
        self.curl.setopt(pycurl.HEADERFUNCTION, self.lines.append)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        self.curl.setopt(pycurl.PREREQFUNCTION, self._on_request)
        self.curl.setopt(pycurl.SOCKOPTFUNCTION, self._on_socket)

    def prepare(self, request: FetchRequest, addresses: list[str], on_done: OnDone, on_sent: OnSent | None) -> None:
        """Set the handle up for a request. `addresses` are those that the policy allows."""
        self.request = request
        self.on_done: OnDone | None = on_done
        self.on_sent = on_sent
        self.limit = request.max_bytes or self._limits.max_bytes
        self.attempts_left = addresses[::-1]
        self.curl.setopt(pycurl.URL, request.url)
        if request.headers or self._has_extra_headers:
            extra = [f"{name}: {value}" for name, value in request.headers]
            self.curl.setopt(pycurl.HTTPHEADER, self._base_headers + extra)
            self._has_extra_headers = bool(extra)
        self.next_attempt()

    @property
    def origin(self) -> str:
        """Scheme, host and port of the request."""
        return origin_of(self.request.url)

    def ignore_length(self, is_ignored: bool) -> None:
        """Read to the end of the connection, whatever Content-Length says."""
        if is_ignored != self.is_length_ignored:
            self.is_length_ignored = is_ignored
            self.curl.setopt(_IGNORE_CONTENT_LENGTH, int(is_ignored))

    def next_attempt(self) -> None:
        """Forget the attempt before and aim at the next address."""
        self.lines.clear()
        self.chunks.clear()
        self.head: Head | None = None
        self.size = self._seen_bytes = self._judged_lines = 0
        self.requests_sent = 0
        self.sent_at = 0.0
        self.verdict: Outcome | None = None
        self.cut = Truncation.NONE
        self.error = ""
        self._socket = -1
        self.attempt_at = self._silent_since = self._clock()
        self.address = address = self.attempts_left.pop()
        # No name to match and no port: "connect to this address whatever the URL says". libcurl then
        # never resolves, keeps the name for Host and SNI, and reuses only connections to this very address.
        connect_to = f"::[{address}]:" if ":" in address else f"::{address}:"
        if connect_to != self._connect_to:
            self._connect_to = connect_to
            self.curl.setopt(pycurl.CONNECT_TO, [connect_to])

    def release(self) -> None:
        """Let go of what the request held; the handle is free for another."""
        if self.ticket is not None:
            self.ticket.transfer = None
        self.ticket = self.on_done = self.on_sent = self.head = None
        self.lines.clear()
        self.chunks.clear()

    def now(self) -> float:
        """Return the time on the crawl's time line."""
        return self._clock()

    def overdue(self, now: float) -> str:
        """Return which time limit this transfer is beyond, or the empty string."""
        limits = self._limits
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
        """Return the head of the final answer, as far as it came."""
        if self.head is None:
            self.head = read_head(self.lines) if self.lines else NO_HEAD
        return self.head

    def judge_caps(self) -> None:
        """Give the verdict where there is more of a head than we take."""
        lines, limits = self.lines, self._limits
        if len(lines) == self._judged_lines:
            return
        self._judged_lines = len(lines)
        head = self.final_head()
        # Nearly always one head, smaller than a line may be: nothing of it can be over a cap.
        if len(head.headers) + 2 == len(lines) <= limits.max_headers and len(head.raw) <= limits.max_header_line_bytes:
            return
        over = excess(lines, limits)
        if over is not None:
            self._stop(Outcome.PROTOCOL_ERROR if over.is_interim else Outcome.HEADER_TOO_LARGE, over.reason)

    def refuses_type(self) -> bool:
        """Whether this is an answer of a type that was not asked for."""
        wanted = self.request.wanted_types
        head = self.final_head()
        if wanted is None or head.status // 100 != 2:
            return False
        media_type = head.value("content-type").partition(";")[0].strip().lower()
        if media_type in wanted:
            return False
        major, slash, _ = media_type.partition("/")
        # Without a usable type the body itself must be looked at.
        return bool(slash) and f"{major}/" not in wanted

    def _overdue_connect(self, now: float) -> str:
        limit = self._limits.connect_timeout_s
        if self.attempts_left:
            # Another address waits: do not give a dead one the whole time. The last gets all of it.
            limit = max(limit / 4, min(limit, 1.0))
        if now - self.attempt_at <= limit:
            return ""
        if not _is_connected(self._socket):
            return f"no connection within {limit:g} s"
        return f"no TLS handshake within {limit:g} s" if now - self.attempt_at > 2 * limit else ""

    def _has_whole_head(self) -> bool:
        return bool(self.lines) and self.lines[-1] in (b"\r\n", b"\n") and read_head(self.lines).status // 100 != 1

    def _stop(self, verdict: Outcome, error: str) -> int:
        self.verdict = verdict
        self.error = error
        return _ABORT

    def _on_request(self, address: str, _local: str, _port: int, _local_port: int) -> int:
        """libcurl is about to write the request: connection and TLS stand."""
        refusal = self._policy.refusal(address)
        if refusal is not None:
            self._stop(Outcome.BLOCKED_ADDRESS, refusal)
            return int(pycurl.PREREQFUNC_ABORT)
        if self.requests_sent:
            self._stop(Outcome.DISCONNECTED, "the kept connection was dead; not repeated at once")
            return int(pycurl.PREREQFUNC_ABORT)
        self.address = address
        self.requests_sent = 1
        self.sent_at = self._clock()
        if self.on_sent is not None:
            self.on_sent(self.sent_at)
        return int(pycurl.PREREQFUNC_OK)

    def _on_body(self, chunk: bytes) -> int | None:
        size = self.size + len(chunk)
        if not self.chunks:
            self.judge_caps()
            if self.verdict is None and self.refuses_type():
                self.verdict = Outcome.TYPE_REFUSED
            if self.verdict is not None:
                return _ABORT
        if size > self.limit:
            self.chunks.append(chunk[: self.limit - self.size])
            self.size = self.limit
            self.cut = Truncation.LENGTH
            return _ABORT
        self.chunks.append(chunk)
        self.size = size
        return None

    def _on_socket(self, fd: int, _purpose: int) -> int:
        """libcurl has a new socket, and is about to connect it to the address it was aimed at."""
        # A socket of our own making (OPENSOCKETFUNCTION) would tell its address too, but pycurl
        # duplicates it: 10 µs and four system calls a connection.
        refusal = self._policy.refusal(self.address)
        if refusal is not None:
            self._stop(Outcome.BLOCKED_ADDRESS, refusal)
            return int(pycurl.SOCKOPT_ERROR)
        self._socket = fd
        self._on_socket_made(fd)
        return int(pycurl.SOCKOPT_OK)


def _is_connected(fd: int) -> bool:
    """Tell whether TCP is through (libcurl's CONNECT_TIME stays 0 until TLS is, too)."""
    try:
        with socket.socket(fileno=os.dup(fd)) as probe:
            probe.getpeername()
    except OSError:
        return False
    return True


def _new_curl(identity: Identity, limits: FetchLimits, ca_file: str) -> Curl:
    """Make a handle with everything that holds for all requests."""
    curl = pycurl.Curl()
    for option, value in (
        (pycurl.NOSIGNAL, 1),
        (pycurl.PROXY, ""),  # else the environment's proxy hides the target from the address policy
        (pycurl.NOPROXY, "*"),
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.FOLLOWLOCATION, 0),  # a redirect is a new order
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        (_DISALLOW_USERNAME_IN_URL, 1),
        (pycurl.PATH_AS_IS, 1),
        (pycurl.HTTP09_ALLOWED, 0),
        (pycurl.HTTP_CONTENT_DECODING, 0),  # the archive keeps what was sent
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS),
        (pycurl.BUFFERSIZE, _RECEIVE_BYTES),
        (pycurl.MAXAGE_CONN, _KEPT_IDLE_S),
        (pycurl.SSL_EC_CURVES, _GROUPS),
        # Backstops, should the event loop be late: the sweep of Fetcher is stricter.
        (pycurl.CONNECTTIMEOUT_MS, int(2000 * limits.connect_timeout_s) + 1000),
        (pycurl.USERAGENT, " ".join(identity.user_agent.split())),
    ):
        curl.setopt(option, value)
    if ca_file:
        curl.setopt(pycurl.CAINFO, ca_file)
    return curl
