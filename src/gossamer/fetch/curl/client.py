"""Requests by libcurl: all concurrently on one CurlMulti, from one event loop.

libcurl is used for TLS and HTTP/2; `plain/client` for plain HTTP/1.

CPU per request, including all of this package, under uvloop: 36-40 µs on a keep-alive TLS connection, 670-720 on
a new one with a full handshake.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gossamer.fetch.curl.libcurl import Curl, pycurl
from gossamer.fetch.curl.transfer import CurlTransfer
from gossamer.fetch.exchange import judged
from gossamer.fetch.names.poller import Poller
from gossamer.fetch.transfer import Transfer
from gossamer.model.records import Outcome

# Maps an error of libcurl to an outcome: a table, as in `outcome`.

# Codes that pycurl has no name for (curl/curl.h).
_E_PROXY: Final = 97
_E_UNRECOVERABLE_POLL: Final = 99
_E_TOO_LARGE: Final = 100
_E_HTTP2_STREAM: Final = 92
_E_HTTP3: Final = 95
_E_SSL_CLIENTCERT: Final = 98
_E_PINNED_KEY: Final = 90
_E_ECH_REQUIRED: Final = 101

_NO_CERTIFICATE: Final = "alert certificate required"  # part of OpenSSL's message

# E_OPERATION_TIMEDOUT is not here: it depends on whether the request was sent.
CURL_OUTCOMES: Final[Mapping[int, Outcome]] = {
    pycurl.E_COULDNT_RESOLVE_HOST: Outcome.DNS_FAILED,
    pycurl.E_COULDNT_CONNECT: Outcome.CONNECT_FAILED,
    pycurl.E_INTERFACE_FAILED: Outcome.CONNECT_FAILED,
    pycurl.E_NO_CONNECTION_AVAILABLE: Outcome.CONNECT_FAILED,
    _E_PROXY: Outcome.CONNECT_FAILED,
    pycurl.E_SSL_CONNECT_ERROR: Outcome.TLS_ERROR,
    pycurl.E_PEER_FAILED_VERIFICATION: Outcome.TLS_ERROR,
    pycurl.E_SSL_CERTPROBLEM: Outcome.TLS_ERROR,
    pycurl.E_SSL_CIPHER: Outcome.TLS_ERROR,
    pycurl.E_SSL_CACERT: Outcome.TLS_ERROR,
    pycurl.E_SSL_CACERT_BADFILE: Outcome.TLS_ERROR,
    pycurl.E_SSL_ISSUER_ERROR: Outcome.TLS_ERROR,
    pycurl.E_SSL_INVALIDCERTSTATUS: Outcome.TLS_ERROR,
    pycurl.E_SSL_ENGINE_INITFAILED: Outcome.TLS_ERROR,
    _E_SSL_CLIENTCERT: Outcome.TLS_ERROR,
    _E_PINNED_KEY: Outcome.TLS_ERROR,
    _E_ECH_REQUIRED: Outcome.TLS_ERROR,
    pycurl.E_GOT_NOTHING: Outcome.DISCONNECTED,
    pycurl.E_RECV_ERROR: Outcome.DISCONNECTED,
    pycurl.E_SEND_ERROR: Outcome.DISCONNECTED,
    pycurl.E_PARTIAL_FILE: Outcome.DISCONNECTED,
    pycurl.E_SSL_SHUTDOWN_FAILED: Outcome.DISCONNECTED,
    _E_UNRECOVERABLE_POLL: Outcome.DISCONNECTED,
    _E_TOO_LARGE: Outcome.HEADER_TOO_LARGE,
    pycurl.E_UNSUPPORTED_PROTOCOL: Outcome.PROTOCOL_ERROR,  # also for HTTP/0.9
    pycurl.E_FTP_WEIRD_SERVER_REPLY: Outcome.PROTOCOL_ERROR,  # 8, CURLE_WEIRD_SERVER_REPLY in HTTP
    pycurl.E_URL_MALFORMAT: Outcome.PROTOCOL_ERROR,
    pycurl.E_HTTP2: Outcome.PROTOCOL_ERROR,
    _E_HTTP2_STREAM: Outcome.PROTOCOL_ERROR,
    _E_HTTP3: Outcome.PROTOCOL_ERROR,
    pycurl.E_BAD_CONTENT_ENCODING: Outcome.PROTOCOL_ERROR,
}


def curl_outcome(code: int, *, is_sent: bool, message: str = "") -> Outcome:
    """Return the outcome for an error of libcurl; an unknown one counts as a protocol error."""
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return Outcome.TIMEOUT if is_sent else Outcome.CONNECT_TIMEOUT
    # libcurl reports a bad chunk with the code of a broken connection; only the message differs.
    if code == pycurl.E_RECV_ERROR and message.startswith("chunk "):
        return Outcome.PROTOCOL_ERROR
    # With TLS 1.3 a client learns only after its request that the server wants a certificate.
    if code in (pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR) and _NO_CERTIFICATE in message:
        return Outcome.TLS_ERROR
    outcome = CURL_OUTCOMES.get(code, Outcome.PROTOCOL_ERROR)
    # A peer that hangs up during the TLS handshake never saw a request.
    if outcome is Outcome.DISCONNECTED and not is_sent:
        return Outcome.CONNECT_FAILED
    return outcome


OnEnd = Callable[[Transfer, Outcome, str], None]
OnFault = Callable[[Transfer, Exception], None]

_LENGTH_REFUSED: Final = "Content-Length"
_MAX_LENGTHLESS: Final = 10_000
_MORE_PER_ANSWER_BYTES: Final = 16_384  # head, frames and TLS records
_BYTES_RECEIVED: Final = 128  # tcpi_bytes_received in linux/tcp.h: 8 bytes


class _SocketCount(Struct, frozen=True):
    """What one socket received, as of the last look."""

    received: int = 0
    first_more: int = 0  # bytes of no transfer that were there at the first look
    ended_bytes: int = 0  # of transfers that have ended since


_NO_COUNT: Final = _SocketCount()


def bytes_received(fd: int) -> int:
    """Return how many bytes a TCP socket has received; 0 if the system does not say."""
    try:
        with socket.socket(fileno=os.dup(fd)) as probe:
            info = probe.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED + 8)
    except OSError:
        return 0
    return int.from_bytes(info[_BYTES_RECEIVED:], sys.byteorder)


class CurlClient:
    """Runs transfers with libcurl; each ends in one call of `on_end`, or of `on_fault` if our code raised."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        new_transfer: Callable[[Callable[[int], None]], CurlTransfer],
        on_end: OnEnd,
        *,
        on_fault: OnFault,
        max_idle_connections: int,
    ) -> None:
        self._new_transfer = new_transfer
        self._on_end = on_end
        self._on_fault = on_fault
        self._active: dict[Curl, CurlTransfer] = {}
        self._idle: list[CurlTransfer] = []
        self._lengthless: set[str] = set()  # origins whose Content-Length libcurl refuses
        self._counts: dict[int, _SocketCount] = {}
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, max_idle_connections)
        self._poller = Poller(self._multi, loop, self._on_progress)

    def overfed(self) -> list[CurlTransfer]:
        """Return the transfers on connections that got far more bytes than their answers have.

        libcurl reads frames of HTTP/2 that belong to no body (padding, pings, settings) without a limit. So the bytes
        that the kernel received on a socket are compared with those of all transfers on it, while one of them is in
        progress. Called a few times per second: 6 µs per socket on which a request waits for its answer.
        """
        by_socket: dict[int, list[CurlTransfer]] = {}
        for transfer in self._active.values():
            if transfer.requests_sent and (fd := transfer.active_socket()) >= 0:
                by_socket.setdefault(fd, []).append(transfer)
        counts: dict[int, _SocketCount] = {}
        found: list[CurlTransfer] = []
        for fd, transfers in by_socket.items():
            received = bytes_received(fd)
            count = self._counts.get(fd, _NO_COUNT)
            more = received - count.ended_bytes - sum(transfer.size for transfer in transfers)
            if fd not in self._counts or received < count.received:  # new here, or another socket with this number
                count = _SocketCount(first_more=more)
            count = replace(count, received=received)
            counts[fd] = count
            if more - count.first_more > max(transfer.limit for transfer in transfers):
                found += transfers
        self._counts = counts
        return found

    def _count_end(self, transfer: CurlTransfer) -> None:
        fd = transfer.active_socket()
        if fd in self._counts:
            count = self._counts[fd]
            self._counts[fd] = replace(count, ended_bytes=count.ended_bytes + transfer.size + _MORE_PER_ANSWER_BYTES)

    def transfer(self) -> CurlTransfer:
        return self._idle.pop() if self._idle else self._new_transfer(self._poller.forget)

    def begin(self, transfer: CurlTransfer) -> None:
        if self._lengthless or transfer.is_length_ignored:
            transfer.ignore_length(transfer.origin in self._lengthless)
        self._active[transfer.curl] = transfer
        self._multi.add_handle(transfer.curl)
        self._poller.kick()

    def drop(self, transfer: CurlTransfer) -> None:
        """Abandon a request and close its connection; `on_end` is not called. Not from within libcurl."""
        if self._active.pop(transfer.curl, None) is not None:
            self._multi.remove_handle(transfer.curl)

    def put_back(self, transfer: CurlTransfer) -> None:
        self._idle.append(transfer)

    def close(self) -> None:
        """Close all connections; transfers in progress must have been dropped."""
        self._poller.close()
        self._multi.close()
        for transfer in self._idle:
            transfer.curl.close()
        self._idle.clear()

    def _on_progress(self) -> None:
        while self._poller.running < len(self._active):
            queued, whole, failed = self._multi.info_read()
            for curl in whole:
                self._finish(self._active[curl], 0, "")
            for curl, code, message in failed:
                self._finish(self._active[curl], code, message)
            if not queued:
                return

    def _finish(self, transfer: CurlTransfer, code: int, message: str) -> None:
        """Libcurl has finished a transfer."""
        if self._counts:
            self._count_end(transfer)
        self.drop(transfer)
        try:
            outcome, error = outcome_of(transfer, code, message)
        except Exception as fault:  # the other transfers of this batch must still be delivered
            transfer.fault = fault
        if transfer.fault is not None:
            self._on_fault(transfer, transfer.fault)
            return
        if code == pycurl.E_FTP_WEIRD_SERVER_REPLY and _LENGTH_REFUSED in message:
            # Browsers read to the end of the connection. So do we, at the next request.
            if len(self._lengthless) >= _MAX_LENGTHLESS:
                self._lengthless.clear()
            outcome = Outcome.PROTOCOL_ERROR if transfer.origin in self._lengthless else Outcome.DISCONNECTED
            self._lengthless.add(transfer.origin)
        self._on_end(transfer, outcome, error)


def outcome_of(transfer: CurlTransfer, code: int, message: str) -> tuple[Outcome, str]:
    """Return the outcome and one line about it, for a transfer that libcurl ended with this code."""
    if transfer.verdict is None:
        transfer.judge_caps()
    if transfer.verdict is None:
        if code and not transfer.cut and not transfer.is_closed_by_us:
            outcome = curl_outcome(code, is_sent=transfer.requests_sent > 0, message=message)
            return outcome, message or f"libcurl error {code}"
        # RFC 9112 6.3: one value, however often repeated and however odd, is no contradiction; two are.
        if transfer.is_length_ignored and len(transfer.final_head().distinct("content-length")) > 1:
            return Outcome.PROTOCOL_ERROR, "Content-Length contradicts itself"
        transfer.judge_coding()
    return judged(transfer)
