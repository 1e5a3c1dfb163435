"""Makes HTTP requests under strict limits.

`Fetcher` runs any number of requests concurrently, from one event loop, with callbacks (no
task per request): plain HTTP by `plain/client`, TLS and proxies by libcurl (`curl/client`). Each ends in
exactly one `Exchange`, whatever the server does; server behaviour never raises. The addresses
of a request are tried in order until one connects; once written, it is not sent to another
address. Redirects are not followed.

A body is decoded when its transfer has ended, in the event loop; one that may take long (`body.is_slow`) in a
thread, one at a time, and its exchange is delivered after that. There the pieces of a very large one are joined, too.

Time limits are enforced by one sweep over all transfers a few times per second (0.15 µs
per transfer), not by a timer for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec import Struct

from gossamer.fetch.access import UNRESOLVED, AccessTable
from gossamer.fetch.body import is_slow
from gossamer.fetch.exchange import decode_content, exchange_of
from gossamer.fetch.identity import Identity, head_tail
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.plain.client import PlainClient
from gossamer.fetch.route import USUAL, Route
from gossamer.fetch.transfer import Clock, FetchRequest, HttpClient, Marks, OnDone, OnSent, Transfer
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome

if TYPE_CHECKING:
    from gossamer.fetch.curl.client import CurlClient
    from gossamer.fetch.curl.transfer import CurlTransfer

__all__ = ["FetchRequest", "FetchTicket", "Fetcher"]

_SWEEP_S: Final = 0.25
OVERFED: Final = "the connection got more bytes that belong to no answer than an answer may have"
_STOPPED: Final = "stopped by the crawler"
BIG_BODY_BYTES: Final = 8 << 20  # to join the pieces of so much takes 6 ms
OnCrash = Callable[[str, Exception], None]  # the URL of a request on which our own code raised, and the error
_TRIES_NEXT_ADDRESS: Final = frozenset((Outcome.CONNECT_FAILED, Outcome.CONNECT_TIMEOUT))


class CodedBody(Struct, frozen=True):
    """What is left to be done with a body in a thread."""

    pieces: list[bytes]  # to be joined; empty if they are
    codings: str
    limit: int


class FetchTicket:
    """A request in progress; can cancel it."""

    __slots__ = ("fetcher", "later", "transfer")

    def __init__(self, fetcher: Fetcher) -> None:
        self.fetcher = fetcher
        self.transfer: Transfer | None = None
        # The call of on_done, if nothing was sent, or if the body is being decoded.
        self.later: asyncio.Handle | asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """Stop the request and close its connection; its `on_done` is not called. No effect once it is done."""
        if self.later is not None:
            self.later.cancel()
        if self.transfer is not None:
            self.fetcher.cancel(self)


class Fetcher:
    """Makes HTTP requests; use as `async with Fetcher(...) as fetcher`.

    `ca_file` adds authorities (`trust`); `access` says what some hosts need, if any does.

    On exit, every request in progress ends at once: its `on_done` gets an
    Exchange with the outcome WORKER_LOST, and its connection is closed. So does one
    that is started after that.
    """

    def __init__(
        self,
        limits: FetchLimits,
        identity: Identity,
        policy: AddressPolicy,
        clock: Clock,
        *,
        ca_file: str = "",
        access: AccessTable | None = None,
        on_crash: OnCrash | None = None,
        marks: Marks | None = None,
    ) -> None:
        self._limits = limits
        self._identity = identity
        self._policy = policy
        self._clock = clock
        self._ca_file = ca_file
        self._access = access
        self._on_crash = on_crash
        self._marks: Marks = [0, 0, 0] if marks is None else marks
        self._sweep_s = min(_SWEEP_S, limits.first_byte_timeout_s / 8, limits.silence_s / 8)
        self._active: dict[Transfer, HttpClient[Any]] = {}  # and the client that runs each
        self._cancelled: list[FetchTicket] = []
        self._decoding: dict[asyncio.Task[None], tuple[Exchange, OnDone]] = {}
        self._decoder = ThreadPoolExecutor(1, "decode")
        self._sweeping: asyncio.TimerHandle | None = None
        self._is_open = False

    def open_address(self, address: str) -> None:
        """Allow one more address from now on: see `AddressPolicy`."""
        self._policy.open_address(address)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._plain = PlainClient(
            self._loop,
            self._limits,
            self._policy,
            self._clock,
            on_end=self._end,
            on_fault=self._crash,
            head_tail=head_tail(self._identity),
        )
        self._tls_versions: dict[str, str] = {}
        self._curls: dict[Route, CurlClient] = {}
        self._clients: dict[str, HttpClient[Any]] = {"http:": self._plain}  # by the start of a URL
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        active = self._active
        self._active = {}
        for transfer, client in active.items():
            client.drop(transfer)
        if self._sweeping is not None:
            self._sweeping.cancel()
        for transfer, client in active.items():
            self._deliver(transfer, client, Outcome.WORKER_LOST, _STOPPED)
        self._plain.close()
        for curl in self._curls.values():
            curl.close()
        for task, (exchange, on_done) in list(self._decoding.items()):
            task.cancel()
            self._pass_on(_without_answer(exchange, Outcome.WORKER_LOST, _STOPPED), on_done)
        self._decoder.shutdown(wait=False)

    @property
    def in_flight(self) -> int:
        return len(self._active) + len(self._decoding)

    def start(self, request: FetchRequest, on_done: OnDone, on_sent: OnSent | None = None) -> FetchTicket:
        """Start a request. `on_done` is called once, later, from the loop.

        `on_sent` is called with the time when the request is about to be written: it may cancel, but not start one.
        """
        ticket = FetchTicket(self)
        refusal = self._policy.refusal
        access = None if self._access is None else self._access.of(request.url, request.addresses)
        if access is not None and request.is_anonymous:
            access = access.anonymous
        addresses = [address for address in request.addresses if refusal(address) is None]
        if access is not None and access.proxy is not None and access.proxy.gets_names:
            addresses = (addresses or [each for each in request.addresses if each == UNRESOLVED])[:1]
        if not addresses or not self._is_open:
            ticket.later = self._loop.call_soon(on_done, self._refused(request))
            return ticket
        if access is not None and access.is_routed:
            client: HttpClient[Any] = self._curl_client(access.route)
        else:
            client = self._clients.get(request.url[:5]) or self._tls_client()
        if access is not None:
            request = access.complete(request, self._clock())
        transfer: Transfer = client.transfer()
        transfer.access = access
        transfer.ticket = ticket
        ticket.transfer = transfer
        transfer.prepare(request, addresses, on_done, on_sent)
        self._active[transfer] = client
        client.begin(transfer)
        if self._sweeping is None:
            self._plan_sweep()
        return ticket

    async def fetch(self, request: FetchRequest) -> Exchange:
        done: asyncio.Future[Exchange] = self._loop.create_future()
        ticket = self.start(request, lambda exchange: None if done.done() else done.set_result(exchange))
        try:
            return await done
        finally:
            ticket.cancel()

    def cancel(self, ticket: FetchTicket) -> None:
        """Stop a request: see FetchTicket.cancel."""
        # libcurl forbids removing a handle from within its callbacks, where on_sent runs.
        if ticket.transfer is not None:
            ticket.transfer.on_done = None
            if not self._cancelled:
                self._loop.call_soon(self._remove_cancelled)
            self._cancelled.append(ticket)

    def _remove_cancelled(self) -> None:
        tickets = self._cancelled
        self._cancelled = []
        for ticket in tickets:
            transfer = ticket.transfer
            client = self._active.pop(transfer, None) if transfer is not None else None
            if transfer is not None and client is not None:
                client.drop(transfer)
                self._deliver(transfer, client, Outcome.WORKER_LOST, "cancelled")

    def _refused(self, request: FetchRequest) -> Exchange:
        """Make the record of a request that is refused without an attempt."""
        exchange = Exchange(url=request.url, outcome=Outcome.DNS_FAILED, finished_at=self._clock())
        exchange.error = "no address to connect to"
        if not self._is_open:
            exchange.outcome = Outcome.WORKER_LOST
            exchange.error = _STOPPED
            return exchange
        if request.addresses == (UNRESOLVED,):
            exchange.outcome = Outcome.DNS_NOT_FOUND
            exchange.error = "unknown here, and no proxy is set for requests with this scheme"
            return exchange
        for address in request.addresses:
            exchange.outcome = Outcome.BLOCKED_ADDRESS
            exchange.address = address
            exchange.error = self._policy.refusal(address) or ""
        return exchange

    def _tls_client(self) -> CurlClient:
        client = self._clients["https"] = self._curl_client(USUAL)
        return client

    def _curl_client(self, route: Route) -> CurlClient:
        """Return the client of a route: no connection of it serves requests with another one."""
        client = self._curls.get(route)
        if client is None:
            client = self._curls[route] = self._new_curl_client(route)
        return client

    def _new_curl_client(self, route: Route) -> CurlClient:
        from gossamer.fetch.curl.client import CurlClient  # 7 ms, for a crawl of plain HTTP in vain
        from gossamer.fetch.curl.transfer import CurlTransfer

        def new_transfer(on_socket_made: Callable[[int], None]) -> CurlTransfer:
            return CurlTransfer(
                self._limits,
                self._identity,
                self._policy,
                self._clock,
                on_socket_made=on_socket_made,
                tls_versions=self._tls_versions,
                ca_file=self._ca_file,
                route=route,
            )

        return CurlClient(
            self._loop,
            new_transfer,
            self._end,
            on_fault=self._crash,
            max_idle_connections=self._limits.max_idle_connections,
        )

    def _end(self, transfer: Transfer, outcome: Outcome, error: str) -> None:
        if outcome in _TRIES_NEXT_ADDRESS and transfer.attempts_left and transfer.on_done is not None:
            transfer.next_attempt()
            self._active[transfer].begin(transfer)
        else:
            self._deliver(transfer, self._active.pop(transfer), outcome, error)

    def _deliver(self, transfer: Transfer, client: HttpClient[Any], outcome: Outcome, error: str) -> None:
        on_done = transfer.on_done
        ticket = transfer.ticket
        number = transfer.request.number
        limit = transfer.limit
        exchange = None
        codings = ""
        access = transfer.access
        pieces: list[bytes] = []
        if on_done is not None:
            self._marks[0] = number
            try:
                if transfer.size > BIG_BODY_BYTES:
                    pieces, transfer.chunks = transfer.chunks, pieces
                exchange = exchange_of(transfer, outcome, error)
                if access is not None:
                    exchange = access.masked(exchange)
                if (pieces or exchange.body) and "content-encoding" in exchange.named:
                    codings = ",".join(exchange.all_values("content-encoding"))
                    if not pieces and not is_slow(exchange.body, codings):
                        decode_content(exchange, codings, limit)
                        codings = ""
            except Exception as fault:  # whatever happens, the request has one end
                exchange = self._crashed(transfer, fault)
                codings = ""
                pieces = []
            self._marks[0] = 0
        transfer.release()
        client.put_back(transfer)
        if on_done is None or exchange is None:
            return
        if codings or (pieces and exchange.status):
            body = CodedBody(pieces, codings, limit)
            task = self._loop.create_task(self._decode(exchange, body, number, on_done))
            self._decoding[task] = exchange, on_done
            task.add_done_callback(lambda task: self._decoding.pop(task, None))
            if isinstance(ticket, FetchTicket):
                ticket.later = task
        else:
            self._pass_on(exchange, on_done)

    async def _decode(self, exchange: Exchange, body: CodedBody, number: int, on_done: OnDone) -> None:
        """Join and decode a body in a thread, then deliver its exchange."""
        try:
            await self._loop.run_in_executor(self._decoder, self._decode_marked, exchange, body, number)
        except Exception as fault:  # whatever happens, the request has one end
            self._report_crash(exchange.url, fault)
            exchange = _without_answer(exchange, Outcome.INTERNAL_ERROR, f"{type(fault).__name__}: {fault}")
        task = asyncio.current_task()
        assert task is not None
        del self._decoding[task]  # before `on_done`, which may end the fetcher
        self._pass_on(exchange, on_done)

    def _decode_marked(self, exchange: Exchange, body: CodedBody, number: int) -> None:
        self._marks[2] = number
        try:
            if body.pieces:
                exchange.body = exchange.content = b"".join(body.pieces)
                body.pieces.clear()
            if body.codings:
                decode_content(exchange, body.codings, body.limit)
        finally:
            self._marks[2] = 0

    def _pass_on(self, exchange: Exchange, on_done: OnDone) -> None:
        try:
            on_done(exchange)
        except Exception as fault:  # the other transfers of this batch must still be delivered
            self._loop.call_exception_handler({"message": f"on_done of {exchange.url}", "exception": fault})

    def _crash(self, transfer: Transfer, fault: Exception) -> None:
        """Our code raised while it handled a transfer: end that transfer, and no other."""
        client = self._active.pop(transfer, None)
        if client is None:
            self._report_crash(transfer.request.url, fault)  # it had been delivered
            return
        client.drop(transfer)
        on_done = transfer.on_done
        exchange = self._crashed(transfer, fault)
        transfer.release()
        client.put_back(transfer)
        if on_done is not None:
            on_done(exchange)

    def _crashed(self, transfer: Transfer, fault: Exception) -> Exchange:
        """Make the record of a transfer on which our code raised, of what is certain about it."""
        self._report_crash(transfer.request.url, fault)
        return Exchange(
            url=transfer.request.url,
            outcome=Outcome.INTERNAL_ERROR,
            error=f"{type(fault).__name__}: {fault}",
            address=transfer.address,
            sent_at=transfer.sent_at,
            requests_sent=transfer.requests_sent,
            finished_at=transfer.now(),
            wire_bytes=transfer.size,
        )

    def _report_crash(self, url: str, fault: Exception) -> None:
        if self._on_crash is not None:
            self._on_crash(url, fault)
        else:
            self._loop.call_exception_handler({"message": f"request for {url}", "exception": fault})

    def _sweep(self) -> None:
        """End the transfers that exceed a time limit."""
        if self._loop.time() - self._sweep_at > self._sweep_s:
            # The loop was blocked: what has arrived since is read first.
            self._plan_sweep()
            return
        now = self._clock()
        for transfer, client in list(self._active.items()):
            try:
                reason = transfer.overdue(now)
            except Exception as fault:  # the limits of the other transfers are enforced nevertheless
                self._crash(transfer, fault)
                continue
            if reason and transfer in self._active:
                client.drop(transfer)
                self._end(transfer, Outcome.TIMEOUT if transfer.requests_sent else Outcome.CONNECT_TIMEOUT, reason)
        for client in self._curls.values():
            for transfer in client.overfed():
                client.drop(transfer)
                self._end(transfer, Outcome.PROTOCOL_ERROR, OVERFED)
        self._sweeping = None
        if self._plain.close_stale(now) or self._active:
            self._plan_sweep()

    def _plan_sweep(self) -> None:
        self._sweep_at = self._loop.time() + self._sweep_s
        self._sweeping = self._loop.call_at(self._sweep_at, self._sweep)


def _without_answer(exchange: Exchange, outcome: Outcome, error: str) -> Exchange:
    """Return the record of a request whose answer could not be decoded by us."""
    return Exchange(
        url=exchange.url,
        outcome=outcome,
        error=error,
        address=exchange.address,
        sent_at=exchange.sent_at,
        requests_sent=exchange.requests_sent,
        finished_at=exchange.finished_at,
        wire_bytes=exchange.wire_bytes,
    )
