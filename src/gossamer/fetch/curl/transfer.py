"""One request by libcurl.

A curl handle with the state of the request it serves; handles are reused, so options
that never change are set once.

Invariants
- libcurl would repeat a request by itself if a keep-alive connection is dead; PREREQFUNCTION refuses that.
- a callback that raises sets `fault` and ends the transfer: libcurl would only print the error.
- CONNECT_TO sets the one address to connect to. The peer's address is checked again before a byte is written. Through
  a proxy the peer is the proxy, which the operator named; one that gets names has no such address at all.
- the version of TLS is learned from libcurl's messages, which are only requested until it is known for an origin:
  each costs a call.
- header lines are collected without a Python call for each (0.6 µs), and checked when the head is complete or
  the transfer ends. libcurl itself stops at 300 KiB of heads, 100 KiB per line and 5000 headers, with trailers.
- chunks are passed on as received, so that all bytes count against the limits: 20 µs per page of 20 KB in five chunks.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Final

from gossamer.core.url.forms import origin_of
from gossamer.fetch.curl.libcurl import Curl, pycurl
from gossamer.fetch.identity import Identity, head_tail, request_head
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.plain.chunked_transfer import ChunkedTransfer, ChunkPart
from gossamer.fetch.plain.framing import IN_CHUNKS, framing_of
from gossamer.fetch.route import USUAL, Proxy, Route
from gossamer.fetch.transfer import DEAD_CONNECTION, KEEP_ALIVE_S, Clock, FetchRequest, OnDone, OnSent
from gossamer.fetch.trust import TrustSource, bundle, trust_sources
from gossamer.model.records import Outcome

# Sets a handle of libcurl up for a route.

_SUPPRESS_CONNECT_HEADERS: Final = 265  # curl.h; pycurl has no name for it
_TYPES: Final = {
    "http": pycurl.PROXYTYPE_HTTP,
    "socks5": pycurl.PROXYTYPE_SOCKS5,
    "socks5h": pycurl.PROXYTYPE_SOCKS5_HOSTNAME,
}


def apply(route: Route, curl: Curl, ca_file: str) -> None:
    """Set up a new handle for a route; `ca_file` is what the settings add for all hosts."""
    if route.proxy is not None:
        _use_proxy(route.proxy, curl)
    if not route.checks_certificate:
        curl.setopt(pycurl.SSL_VERIFYPEER, 0)
        curl.setopt(pycurl.SSL_VERIFYHOST, 0)
    sources = trust_sources(ca_file)
    if route.ca_file:
        sources += (TrustSource("[[request]] ca-file", route.ca_file),)
    for option, value in (
        (pycurl.CAINFO, bundle(sources)),
        (pycurl.PINNEDPUBLICKEY, route.pins),
        (pycurl.SSLCERT, route.cert_file),
        (pycurl.SSLKEY, route.key_file or route.cert_file),
        (pycurl.KEYPASSWD, route.key_password),
    ):
        if value:
            curl.setopt(option, value)


def _use_proxy(proxy: Proxy, curl: Curl) -> None:
    curl.setopt(pycurl.NOPROXY, "")
    curl.setopt(pycurl.PROXY, proxy.host)
    curl.setopt(pycurl.PROXYTYPE, _TYPES[proxy.scheme])
    curl.setopt(_SUPPRESS_CONNECT_HEADERS, 1)  # they are the proxy's, not the server's
    if proxy.user:
        curl.setopt(pycurl.PROXYUSERNAME, proxy.user)
        curl.setopt(pycurl.PROXYPASSWORD, proxy.password)


_HEAD = ChunkPart.HEAD
_REST = ChunkPart.REST
_SIZE = ChunkPart.SIZE
_NOTHING = ChunkPart.NOTHING
_ABORT: Final = 0  # bytes accepted: fewer than received stops the transfer
_RECEIVE_BYTES: Final = 128 * 1024
# What browsers offer, without the hybrid with ML-KEM: its key share is made for every connection and takes a fifth
# of its CPU. It protects recorded traffic from being decrypted in decades: here, public pages.
_GROUPS: Final = "X25519:P-256:P-384:P-521"
_HANDSHAKE: Final = b"SSL connection using "  # a message of libcurl; the version follows
_MAX_TLS_VERSIONS: Final = 20_000  # origins
_IGNORE_CONTENT_LENGTH: Final = 136
_DISALLOW_USERNAME_IN_URL: Final = 278  # curl.h; pycurl has no name for it


class CurlTransfer(ChunkedTransfer):
    """One curl handle and the request it serves."""

    __slots__ = (
        "_base_headers",
        "_connect_to",
        "_has_extra_headers",
        "_has_messages",
        "_head_tail",
        "_is_head",
        "_on_socket_made",
        "_route",
        "_socket",
        "_tls_versions",
        "curl",
        "is_length_ignored",
    )

    def __init__(
        self,
        limits: FetchLimits,
        identity: Identity,
        policy: AddressPolicy,
        clock: Clock,
        *,
        on_socket_made: Callable[[int], None],
        tls_versions: dict[str, str],
        ca_file: str = "",
        route: Route = USUAL,
    ) -> None:
        super().__init__(limits, policy, clock)
        self._on_socket_made = on_socket_made
        self._tls_versions = tls_versions  # by origin, shared by all transfers
        self._has_messages = False
        self._base_headers = list(identity.headers())
        self._head_tail = head_tail(identity)
        self._has_extra_headers = False
        self._is_head = False
        self.is_length_ignored = False
        self._connect_to = ""
        self._route = route
        self.curl = _new_curl(identity, limits)
        apply(route, self.curl, ca_file)
        self.curl.setopt(pycurl.HTTPHEADER, self._base_headers)
        self.curl.setopt(pycurl.HEADERFUNCTION, self.lines.append)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        self.curl.setopt(pycurl.PREREQFUNCTION, self._on_request)
        self.curl.setopt(pycurl.DEBUGFUNCTION, self._on_message)
        self.curl.setopt(pycurl.SOCKOPTFUNCTION, self._on_socket)

    def prepare(self, request: FetchRequest, addresses: list[str], on_done: OnDone, on_sent: OnSent | None) -> None:
        super().prepare(request, addresses, on_done, on_sent)
        self.curl.setopt(pycurl.URL, request.url)
        self._request_messages(request.url.startswith("https:") and self.origin not in self._tls_versions)
        if request.headers or self._has_extra_headers:
            extra = [f"{name}: {value}" for name, value in request.headers]
            self.curl.setopt(pycurl.HTTPHEADER, self._base_headers + extra)
            self._has_extra_headers = bool(extra)
        if request.is_head != self._is_head:
            self._is_head = request.is_head
            self.curl.setopt(pycurl.NOBODY if request.is_head else pycurl.HTTPGET, 1)

    def _request_messages(self, is_wanted: bool) -> None:
        if is_wanted != self._has_messages:
            self._has_messages = is_wanted
            self.curl.setopt(pycurl.VERBOSE, int(is_wanted))

    def _on_message(self, kind: int, text: bytes) -> None:
        """Record the version of TLS; other messages are ignored."""
        if kind == pycurl.INFOTYPE_TEXT and text.startswith(_HANDSHAKE):
            if len(self._tls_versions) >= _MAX_TLS_VERSIONS:
                self._tls_versions.clear()
            version = text[len(_HANDSHAKE) :].split(None, 1)[0].decode("latin-1")
            self._tls_versions[self.origin] = version

    @property
    def origin(self) -> str:
        """Scheme, host and port of the request."""
        return origin_of(self.request.url)

    def active_socket(self) -> int:
        """Return the socket of its connection; -1 if it has none."""
        return int(self.curl.getinfo(pycurl.ACTIVESOCKET))

    def ignore_length(self, is_ignored: bool) -> None:
        """Read to the end of the connection and ignore Content-Length."""
        if is_ignored != self.is_length_ignored:
            self.is_length_ignored = is_ignored
            self.curl.setopt(_IGNORE_CONTENT_LENGTH, int(is_ignored))

    def next_attempt(self) -> None:
        """Reset the previous attempt and select the next address."""
        super().next_attempt()
        self._socket = -1
        if self._route.proxy is not None and self._route.proxy.gets_names:
            return  # with CONNECT_TO, libcurl would ask for a tunnel to the address
        address = self.address
        # No name to match and no port: "connect to this address whatever the URL says". libcurl then
        # never resolves, uses the name for Host and SNI, and reuses only connections to this address.
        connect_to = f"::[{address}]:" if ":" in address else f"::{address}:"
        if connect_to != self._connect_to:
            self._connect_to = connect_to
            self.curl.setopt(pycurl.CONNECT_TO, [connect_to])

    def first_byte_at(self, latest: float) -> float:
        """Return when the answer began, by our clock: libcurl counts from its own start."""
        getinfo = self.curl.getinfo
        if getinfo(pycurl.NUM_CONNECTS):
            self.connect_s = getinfo(pycurl.CONNECT_TIME)
            handshake_end_s = getinfo(pycurl.APPCONNECT_TIME)
            self.tls_s = handshake_end_s - self.connect_s if handshake_end_s else -1.0
        waited_s: float = getinfo(pycurl.STARTTRANSFER_TIME) - getinfo(pycurl.PRETRANSFER_TIME)
        return min(latest, self.sent_at + max(0.0, waited_s))

    def _is_connected(self) -> bool:
        """Return whether TCP is connected (libcurl's CONNECT_TIME stays 0 until TLS is done, too)."""
        try:
            with socket.socket(fileno=os.dup(self._socket)) as probe:
                probe.getpeername()
        except OSError:
            return False
        return True

    def _on_request(self, address: str, _local: str, _port: int, _local_port: int) -> int:
        """libcurl is about to write the request: connection and TLS are established."""
        try:
            return self._allow_request(address)
        except Exception as fault:
            self.fault = fault
            return int(pycurl.PREREQFUNC_ABORT)

    def _allow_request(self, address: str) -> int:
        is_direct = self._route.proxy is None
        refusal = self._policy.refusal(address) if is_direct else None
        if refusal is not None:
            self.stop(Outcome.BLOCKED_ADDRESS, refusal)
            return int(pycurl.PREREQFUNC_ABORT)
        if self.requests_sent:
            self.stop(Outcome.DISCONNECTED, DEAD_CONNECTION)
            return int(pycurl.PREREQFUNC_ABORT)
        if is_direct:
            self.address = address
        self.tls_version = self._tls_versions.get(self.origin, "")
        method = "HEAD" if self._is_head else "GET"
        self.record_sent(request_head(self.request.url, self._head_tail, self.request.headers, method))
        return int(pycurl.PREREQFUNC_OK)

    def _on_body(self, chunk: bytes) -> int | None:
        try:
            if self._part is _HEAD:
                self._begin_body()
            if self._part is _REST:
                return None if self.add_chunk(chunk) else _ABORT
            return None if self.verdict is None and self._add_coded(chunk) else _ABORT
        except Exception as fault:
            self.fault = fault
            return _ABORT

    def judge_coding(self) -> None:
        """Set a verdict if an answer without a body has a Transfer-Encoding that was not requested."""
        if self._part is _HEAD:
            self._begin_body()

    def _begin_body(self) -> None:
        """Determine from the head, which is complete, whether the body comes in chunks."""
        head = self.final_head()
        named = head.named
        coding = named.get("transfer-encoding")
        self._part = _REST
        if coding is None or self._is_head or not head.http_version.startswith("1"):
            return
        if coding != "chunked" or len(named) != len(head.headers):  # nearly always it is, and no header is repeated
            framing = framing_of(head)
            if framing.error:
                self._refuse(framing.error)
            if framing.length != IN_CHUNKS:
                return
        self._part = _SIZE
        # RFC 9112 6.3: not after both. All other reasons to close a connection are known to libcurl.
        self.is_reusable = "content-length" not in named

    def _add_coded(self, data: bytes) -> bool:
        """Read chunks as they were received; return whether more is wanted.

        libcurl has no option that closes a connection after a request has begun: it does if the last piece is refused.
        """
        self._received += len(data)
        if self._pending:
            data = self._pending + data
            self._pending = b""
        self._read_chunks(data)
        if self._received > self.limit:
            self._cut_excess()
        return self.verdict is None and (self._part is not _NOTHING or self.is_reusable)

    @property
    def is_closed_by_us(self) -> bool:
        """Whether the last piece was refused, to close the connection after a complete answer."""
        return self._part is _NOTHING and not self.is_reusable

    def _on_socket(self, fd: int, _purpose: int) -> int:
        """libcurl has a new socket, and is about to connect it to the selected address."""
        try:
            return self._allow_socket(fd)
        except Exception as fault:
            self.fault = fault
            return int(pycurl.SOCKOPT_ERROR)

    def _allow_socket(self, fd: int) -> int:
        # A socket made by us (OPENSOCKETFUNCTION) would show its address too, but pycurl
        # duplicates it: 10 µs and four system calls per connection.
        refusal = self._policy.refusal(self.address) if self._route.proxy is None else None
        if refusal is not None:
            self.stop(Outcome.BLOCKED_ADDRESS, refusal)
            return int(pycurl.SOCKOPT_ERROR)
        self._socket = fd
        self._on_socket_made(fd)
        return int(pycurl.SOCKOPT_OK)


def _new_curl(identity: Identity, limits: FetchLimits) -> Curl:
    """Make a handle with the options that are the same for all requests."""
    curl = pycurl.Curl()
    for option, value in (
        (pycurl.NOSIGNAL, 1),
        (pycurl.PROXY, ""),  # else the environment's proxy hides the target from the address policy
        (pycurl.NOPROXY, "*"),
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.FOLLOWLOCATION, 0),  # a redirect is a new task
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        (_DISALLOW_USERNAME_IN_URL, 1),
        (pycurl.PATH_AS_IS, 1),
        (pycurl.HTTP09_ALLOWED, 0),
        (pycurl.HTTP_CONTENT_DECODING, 0),  # the archive stores what was sent
        (pycurl.HTTP_TRANSFER_DECODING, 0),  # what is between chunks counts against the limits
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS),
        (pycurl.BUFFERSIZE, _RECEIVE_BYTES),
        (pycurl.MAXAGE_CONN, KEEP_ALIVE_S),
        (pycurl.SSL_EC_CURVES, _GROUPS),
        # Only in case the event loop is late: the sweep of Fetcher is stricter.
        (pycurl.CONNECTTIMEOUT_MS, int(2000 * limits.connect_timeout_s) + 1000),
        (pycurl.USERAGENT, " ".join(identity.user_agent.split())),
    ):
        curl.setopt(option, value)
    return curl
