"""Plain HTTP over loopback: which connections are kept, and requests that end in odd places."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from msgspec.structs import replace

from gossamer.fetch.http import FetchRequest, FetchTicket
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.transfer import DEAD_CONNECTION, KEEP_ALIVE_S
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome

from .servers import LOOPBACK, QUICK, Stage, Visit, answer, keeps, run, stage

OK_HEAD = b"HTTP/1.1 200 OK\r\n"
LARGE = 24_000_000  # bytes of a request that no socket has room for


class Clock:
    """The time, and what a test adds to it."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s


async def echoes(visit: Visit) -> None:
    """Answer every request with its path."""
    while head := await visit.request():
        await visit.send(answer(head.split(b" ", 2)[1]))


async def get(scene: Stage, host: str, path: str = "/") -> Exchange:
    return await scene.fetcher.fetch(FetchRequest(scene.url(path, host), LOOPBACK))


@contextmanager
def deaf_listener(address: str, port: int) -> Iterator[None]:
    """A socket that lets connections wait for ever: what it has room for is taken."""
    fillers = []
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(0)
        for _ in range(4):
            fillers.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
            fillers[-1].connect_ex((address, port))
        try:
            yield
        finally:
            for filler in fillers:
                filler.close()


# -- kept connections ------------------------------------------------------------------------------


def test_no_more_connections_are_kept_than_allowed_and_the_oldest_goes_first() -> None:
    async def main() -> None:
        async with stage(echoes, limits=replace(QUICK, max_idle_connections=2)) as scene:
            for host in ("a.test", "b.test", "c.test", "b.test", "c.test"):
                assert (await get(scene, host)).outcome is Outcome.OK
            assert scene.connections == 3
            await get(scene, "a.test")
            assert scene.connections == 4

    run(main)


def test_none_may_be_kept() -> None:
    async def main() -> None:
        async with stage(echoes, limits=replace(QUICK, max_idle_connections=0)) as scene:
            for _ in range(3):
                assert (await get(scene, "a.test")).outcome is Outcome.OK
            assert scene.connections == 3

    run(main)


def test_a_connection_that_was_idle_for_long_is_closed() -> None:
    async def main() -> None:
        clock = Clock()
        closed = asyncio.Event()

        async def script(visit: Visit) -> None:
            await echoes(visit)
            closed.set()

        async with stage(script, clock=clock) as scene:
            await get(scene, "a.test")
            clock.ahead_s = KEEP_ALIVE_S - 5
            await asyncio.sleep(0.1)  # a sweep or two
            await get(scene, "a.test")
            assert scene.connections == 1
            clock.ahead_s += KEEP_ALIVE_S + 1
            await closed.wait()
            await get(scene, "a.test")
            assert scene.connections == 2

    run(main)


@pytest.mark.parametrize("unasked", [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong", b"\r\n", b""])
def test_a_kept_connection_that_speaks_or_is_closed_is_not_used_again(unasked: bytes) -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.send(answer(b"right"))
        if visit.number == 1:
            await asyncio.sleep(0.02)
            await visit.send(unasked)
            visit.writer.write_eof()
        await visit.request()

    async def main() -> None:
        async with stage(script) as scene:
            for _ in range(2):
                assert (await get(scene, "a.test")).body == b"right"
                await asyncio.sleep(0.05)
            assert scene.connections == 2

    run(main)


def test_what_came_unasked_is_found_before_the_connection_is_used() -> None:
    async def main() -> None:
        visits = []

        async def script(visit: Visit) -> None:
            visits.append(visit)
            await visit.request()
            await visit.send(answer(b"right"))
            await visit.request()

        async with stage(script) as scene:
            await get(scene, "a.test")
            visits[0].writer.write(answer(b"wrong"))  # the loop has no turn before the next request begins
            assert (await get(scene, "a.test")).body == b"right"
            assert scene.connections == 2

    run(main)


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_kept_connection_that_dies_under_a_request_is_reported_as_such(is_reset: bool) -> None:
    seen = []

    async def script(visit: Visit) -> None:
        seen.append(await visit.request())
        await visit.send(answer(b""))
        seen.append(await visit.request())
        if is_reset:
            visit.reset()

    async def main() -> None:
        async with stage(script) as scene:
            await get(scene, "a.test")
            exchange = await get(scene, "a.test")
            assert (exchange.outcome, exchange.error) == (Outcome.DISCONNECTED, DEAD_CONNECTION)
            assert exchange.requests_sent == scene.connections == 1

    run(main)
    assert len(seen) == 2


def test_a_kept_connection_that_breaks_off_within_a_head_was_not_dead() -> None:
    async def script(visit: Visit) -> None:
        for data in (answer(b""), OK_HEAD + b"X: y"):
            await visit.request()
            await visit.send(data)

    async def main() -> None:
        async with stage(script) as scene:
            await get(scene, "a.test")
            exchange = await get(scene, "a.test")
            assert (exchange.outcome, exchange.status) == (Outcome.DISCONNECTED, 200)
            assert "within the head" in exchange.error

    run(main)


@pytest.mark.parametrize(
    "first",
    [
        OK_HEAD + b"Content-Length: 9000\r\n\r\nsome",
        OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhel",
        OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        OK_HEAD + b"no colon\r\nContent-Length: 5\r\n\r\n",
    ],
    ids=["within a body", "within a chunk", "a bad chunk", "a bad head"],
)
def test_a_connection_that_broke_or_is_out_of_step_is_not_kept(first: bytes) -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        if visit.number == 1:
            await visit.send(first)
            await asyncio.sleep(0.03)
            visit.reset()
        else:
            await visit.send(answer(b"next"))

    async def main() -> None:
        async with stage(script) as scene:
            assert (await get(scene, "a.test")).outcome in (Outcome.DISCONNECTED, Outcome.PROTOCOL_ERROR)
            assert (await get(scene, "a.test")).body == b"next"

    run(main)


@pytest.mark.parametrize(("header", "connections"), [("X: 1", 2), ("Connection: keep-alive", 1)])
def test_http_1_0_keeps_a_connection_only_if_it_says_so(header: str, connections: int) -> None:
    async def main() -> None:
        page = f"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n{header}\r\n\r\nhi".encode()
        async with stage(keeps(page, page)) as scene:
            for _ in range(2):
                assert (await get(scene, "a.test")).http_version == "1.0"
            assert scene.connections == connections

    run(main)


# -- requests --------------------------------------------------------------------------------------


def test_a_request_longer_than_any_buffer_is_written_to_its_end() -> None:
    got = []

    async def script(visit: Visit) -> None:
        size = 0
        while size < LARGE:
            size += len(data := await visit.reader.read(1 << 20))
        got.append((size, data[-4:]))
        await visit.send(answer(b"read"))

    async def main() -> None:
        async with stage(script, limits=FetchLimits()) as scene:
            exchange = await get(scene, "a.test", "/" + "a" * LARGE)
            assert exchange.body == b"read"
            assert got == [(len(exchange.request_head), b"\r\n\r\n")]

    run(main)


def test_an_answer_may_come_before_the_request_is_written() -> None:
    async def script(visit: Visit) -> None:
        await visit.send(answer(b"early"))
        await asyncio.sleep(60)

    async def main() -> None:
        async with stage(script, limits=FetchLimits(first_byte_timeout_s=3)) as scene:
            for host, size in (("a.test", 1), ("b.test", LARGE), ("b.test", 1)):
                exchange = await get(scene, host, "/" + "a" * size)
                assert (exchange.outcome, exchange.body) == (Outcome.OK, b"early")
                assert exchange.sent_at <= exchange.first_byte_at
            assert scene.connections == 3

    run(main)


def test_a_request_that_nobody_reads_ends_at_its_time_limit() -> None:
    async def script(_: Visit) -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        async with stage(script) as scene:
            exchange = await get(scene, "a.test", "/" + "a" * LARGE)
            assert (exchange.outcome, exchange.requests_sent) == (Outcome.TIMEOUT, 1)

    run(main)


def test_socket_numbers_that_are_used_again_at_once_mix_nothing_up() -> None:
    asked = []

    async def script(visit: Visit) -> None:
        path = (await visit.request()).split(b" ", 2)[1]
        asked.append(path)
        await visit.send(answer(path, *(["Connection: close"] if int(path[1:]) % 3 else [])))

    async def main() -> None:
        told: dict[str, bytes] = {}
        finished = asyncio.Event()

        def begin(number: int) -> None:
            request = FetchRequest(scene.url(f"/{number}", f"h{number}.test"), LOOPBACK)
            scene.fetcher.start(request, lambda exchange: on_done(number, exchange))

        def on_done(number: int, exchange: Exchange) -> None:
            told[f"/{number}"] = exchange.body
            if number < 400:
                begin(number + 50)
            if len(told) == 450:
                finished.set()

        async with stage(script, limits=FetchLimits(max_idle_connections=5)) as scene:
            for number in range(50):
                begin(number)
            await finished.wait()
        assert told == {path: path.encode() for path in told}

    run(main)
    assert len(asked) == len(set(asked)) == 450


def test_ipv6() -> None:
    async def main() -> None:
        policy = AddressPolicy(["127.0.0.0/8", "::1/128"])
        try:
            async with stage(echoes, policy=policy, more_addresses=("::1",)) as scene:
                request = FetchRequest(scene.url("/six", "[::1]"), ("::1",))
                for _ in range(2):
                    exchange = await scene.fetcher.fetch(request)
                    assert (exchange.outcome, exchange.address, exchange.body) == (Outcome.OK, "::1", b"/six")
                    assert b"\r\nHost: [::1]:%d\r\n" % scene.port in exchange.request_head
                assert scene.connections == 1
        except OSError:
            pytest.skip("no IPv6 here")

    run(main)


def test_a_connect_that_fails_at_once_leaves_the_other_addresses() -> None:
    async def main() -> None:
        async with stage(echoes, policy=AddressPolicy(["127.0.0.0/8", "255.255.255.255/32"])) as scene:
            assert (await scene.get(addresses=("255.255.255.255",))).outcome is Outcome.CONNECT_FAILED
            exchange = await scene.get(addresses=("255.255.255.255", "127.0.0.1"))
            assert (exchange.outcome, exchange.requests_sent) == (Outcome.OK, 1)

    run(main)


def test_a_connect_that_takes_too_long_leaves_the_other_addresses() -> None:
    async def main() -> None:
        async with stage(echoes) as scene:
            with deaf_listener("127.0.0.7", scene.port):
                exchange = await scene.get(addresses=("127.0.0.7",))
                assert (exchange.outcome, exchange.requests_sent) == (Outcome.CONNECT_TIMEOUT, 0)
                assert (await scene.get(addresses=("127.0.0.7", "127.0.0.1"))).outcome is Outcome.OK

    run(main)


@contextmanager
def no_free_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 16, hard))
    try:
        while True:
            try:
                taken.append(os.dup(0))
            except OSError:
                break
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)


def test_without_a_free_descriptor_a_request_fails_and_later_ones_do_not() -> None:
    async def main() -> None:
        async with stage(echoes) as scene:
            with no_free_descriptors():
                exchange = await get(scene, "a.test")
            assert exchange.outcome is Outcome.CONNECT_FAILED
            assert "Too many open files" in exchange.error
            assert (await get(scene, "a.test")).outcome is Outcome.OK

    run(main)


def test_a_kept_connection_makes_room_for_a_new_one() -> None:
    async def main() -> None:
        sent = asyncio.Event()
        async with stage(echoes) as scene:
            await get(scene, "a.test")
            with socket.create_server(("127.0.0.1", 0)) as other, no_free_descriptors():
                request = FetchRequest(f"http://b.test:{other.getsockname()[1]}/", LOOPBACK)
                ticket = scene.fetcher.start(request, lambda _: None, lambda _: sent.set())
                await sent.wait()
                ticket.cancel()

    run(main)


# -- callbacks, cancelling, closing ----------------------------------------------------------------


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("is_begun", [False, True], ids=["before it begins", "by on_sent"])
def test_a_request_that_is_cancelled_before_it_is_written_never_is(is_kept: bool, is_begun: bool) -> None:
    seen: list[bytes] = []
    told: list[Exchange] = []
    sent: list[float] = []

    async def script(visit: Visit) -> None:
        while head := await visit.request():
            seen.append(head.split(b" ", 2)[1])
            await visit.send(answer(b""))

    async def main() -> None:
        def on_sent(at: float) -> None:
            sent.append(at)
            ticket.cancel()

        async with stage(script) as scene:
            if is_kept:
                await scene.get("/first")
            ticket = scene.fetcher.start(FetchRequest(scene.url("/never"), LOOPBACK), told.append, on_sent)
            if not is_begun:
                ticket.cancel()
            await asyncio.sleep(0.05)
            await scene.get("/last")
            assert scene.fetcher.in_flight == 0

    run(main)
    assert seen == [b"/first", b"/last"][not is_kept :]
    assert (len(told), len(sent)) == (0, is_begun)


def test_a_request_may_be_cancelled_while_it_connects() -> None:
    told: list[Exchange] = []

    async def main() -> None:
        async with stage(echoes) as scene:
            with deaf_listener("127.0.0.7", scene.port):
                request = FetchRequest(scene.url(), ("127.0.0.7", "127.0.0.1"))
                ticket = scene.fetcher.start(request, told.append)
                await asyncio.sleep(0.02)
                ticket.cancel()
                ticket.cancel()
                assert (await scene.get()).outcome is Outcome.OK
                await asyncio.sleep(0.2)
                assert (scene.fetcher.in_flight, scene.connections, told) == (0, 1, [])

    run(main)


def test_a_request_cancelled_by_another_whose_answer_came_with_its_own_is_not_told() -> None:
    async def main() -> None:
        visits: list[Visit] = []
        told: list[str] = []

        async def script(visit: Visit) -> None:
            await visit.request()
            visits.append(visit)
            if len(visits) == 2:
                for each in visits:
                    each.writer.write(answer(b"here"))
            await visit.request()

        def on_done(exchange: Exchange) -> None:
            told.append(exchange.url)
            for ticket in tickets:
                ticket.cancel()

        async with stage(script) as scene:
            tickets = [
                scene.fetcher.start(FetchRequest(scene.url(path), LOOPBACK), on_done) for path in ("/first", "/second")
            ]
            while scene.fetcher.in_flight:
                await asyncio.sleep(0.001)
            assert len(told) == 1

    run(main)


def test_a_transfer_is_used_again_after_it_was_dropped() -> None:
    told: list[Exchange] = []

    async def main() -> None:
        async with stage(echoes) as scene:
            for turns in range(5):
                ticket = scene.fetcher.start(FetchRequest(scene.url("/dropped"), LOOPBACK), told.append)
                for _ in range(turns):
                    await asyncio.sleep(0)
                ticket.cancel()
                await asyncio.sleep(0)
                assert (await scene.get(f"/{turns}")).body == f"/{turns}".encode()

    run(main)
    assert not told


@pytest.mark.parametrize("is_kept", [False, True])
def test_an_on_sent_that_fails_harms_no_request(is_kept: bool) -> None:
    async def main() -> None:
        faults: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))

        def fail(_: float) -> None:
            raise ValueError("no")

        async with stage(echoes) as scene:
            if is_kept:
                await asyncio.gather(*(scene.get() for _ in range(3)))
            dones = [asyncio.get_running_loop().create_future() for _ in range(3)]
            for number, done in enumerate(dones):
                scene.fetcher.start(FetchRequest(scene.url(f"/{number}"), LOOPBACK), done.set_result, fail)
            assert [(await done).body for done in dones] == [b"/0", b"/1", b"/2"]
            assert len(faults) == 3

    run(main)


def test_leaving_ends_requests_in_every_state() -> None:
    async def main() -> None:
        faults: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        told: dict[str, Outcome] = {}
        asked = asyncio.Event()

        async def script(visit: Visit) -> None:
            while head := await visit.request():
                if b"/kept" in head:
                    await visit.send(answer(b""))
                elif b"/torn" in head:
                    await visit.send(OK_HEAD + b"Content-Length: 5\r\n\r\nhe")
                    asked.set()

        def begin(path: str, address: str = "127.0.0.1") -> None:
            request = FetchRequest(scene.url(path), (address,))
            tickets.append(scene.fetcher.start(request, lambda exchange: told.update({path: exchange.outcome})))

        tickets: list[FetchTicket] = []
        files = len(os.listdir("/proc/self/fd"))
        with ExitStack() as after:
            async with stage(script, limits=FetchLimits()) as scene:
                after.enter_context(deaf_listener("127.0.0.7", scene.port))
                await scene.get("/kept")
                begin("/connecting", "127.0.0.7")
                begin("/silent")
                begin("/torn")
                await asked.wait()
                await asyncio.sleep(0.02)
                begin("/cancelled")
                tickets[-1].cancel()
                begin("/not-begun")
            begin("/late")
            await asyncio.sleep(0.02)
        paths = ("/connecting", "/silent", "/torn", "/not-begun", "/late")
        assert told == dict.fromkeys(paths, Outcome.WORKER_LOST)
        assert not faults
        assert len(os.listdir("/proc/self/fd")) <= files

    run(main)


def test_a_new_connection_has_a_time_to_connect_and_a_kept_one_has_none() -> None:
    async def main() -> None:
        async with stage(keeps(answer(b"x"))) as scene:
            first, second = await scene.get(), await scene.get()
            assert 0 < first.connect_s < 1
            assert (first.tls_s, second.connect_s) == (-1.0, -1.0)

    run(main)
