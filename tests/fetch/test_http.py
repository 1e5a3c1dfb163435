"""The everyday life of a Fetcher: requests, kept connections, callbacks, closing."""

from __future__ import annotations

import asyncio
import gzip
import random
import threading
import time
from typing import Any

import brotli
import pytest
import uvloop
import zstandard

from gossamer.fetch.http import BIG_BODY_BYTES, Fetcher, FetchRequest
from gossamer.fetch.limits import FetchLimits, raise_file_limit
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.route import USUAL
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome, Truncation

from .servers import LOOPBACK, Visit, answer, fetched, keeps, run, says, stage

PAGE = b"<html>a page</html>"


def test_an_answer_is_stored_byte_for_byte() -> None:
    exchange = fetched(says(b"HTTP/1.1 200 Fine\r\nX-Odd:  a  \r\nContent-Length: 4\r\nx-odd: b\r\n\r\nbody"))
    assert exchange.outcome is Outcome.OK
    assert exchange.status == 200
    assert exchange.http_version == "1.1"
    assert exchange.response_head == b"HTTP/1.1 200 Fine\r\nX-Odd:  a  \r\nContent-Length: 4\r\nx-odd: b\r\n\r\n"
    assert exchange.headers == [("x-odd", "a"), ("content-length", "4"), ("x-odd", "b")]
    assert exchange.body == exchange.content == b"body"
    assert exchange.wire_bytes == 4
    assert exchange.address == "127.0.0.1"
    assert exchange.requests_sent == 1
    assert exchange.truncated is Truncation.NONE
    assert exchange.error == ""


def test_times_are_in_order_and_on_the_given_clock() -> None:
    before = time.time()
    exchange = fetched(says(answer(PAGE)))
    assert before <= exchange.sent_at <= exchange.first_byte_at <= exchange.finished_at <= time.time()


@pytest.mark.parametrize(
    "path", ["/", "/a/../b?x=%20y&z=[1]", "/?", "/a//b;c=d?e?f", "/%C3%A9", "/'(x)|y"], ids=lambda path: path
)
@pytest.mark.parametrize("headers", [(), (("If-None-Match", '"v1"'), ("If-Modified-Since", "Sat, 01 Jan 2026"))])
def test_the_request_head_is_what_the_server_read(path: str, headers: tuple[tuple[str, str], ...]) -> None:
    seen: list[bytes] = []

    async def script(visit: Visit) -> None:
        seen.append(await visit.request())
        await visit.send(answer(PAGE))

    exchange = fetched(script, path, headers=headers)
    assert exchange.request_head == seen[0]
    assert b"\r\nFrom: mail@example.org\r\n" in seen[0]
    assert b"\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n" in seen[0]


def test_extra_headers_of_one_request_do_not_leak_into_the_next() -> None:
    seen: list[bytes] = []

    async def script(visit: Visit) -> None:
        while head := await visit.request():
            seen.append(head)
            await visit.send(answer(PAGE))

    async def main() -> None:
        async with stage(script) as scene:
            await scene.get(headers=(("If-None-Match", '"v1"'),))
            await scene.get()

    run(main)
    assert b"If-None-Match" in seen[0]
    assert b"If-None-Match" not in seen[1]


def test_a_connection_is_kept_and_used_again() -> None:
    async def main() -> None:
        async with stage(keeps(*[answer(PAGE)] * 5)) as scene:
            for _ in range(5):
                assert (await scene.get()).outcome is Outcome.OK
            assert scene.connections == 1

    run(main)


def test_another_address_is_another_connection() -> None:
    async def main() -> None:
        async with stage(keeps(*[answer(PAGE)] * 4), more_addresses=("127.0.0.2",)) as scene:
            for address in ("127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.2"):
                assert (await scene.get(addresses=(address,))).address == address
            assert scene.connections == 2

    run(main)


def test_a_kept_connection_that_the_server_closed_does_no_harm() -> None:
    async def main() -> None:
        closed = asyncio.Event()

        async def script(visit: Visit) -> None:
            await visit.request()
            await visit.send(answer(PAGE))
            visit.writer.close()
            closed.set()

        async with stage(script) as scene:
            for _ in range(3):
                exchange = await scene.get()
                assert exchange.outcome is Outcome.OK
                assert exchange.requests_sent == 1
                await closed.wait()
                closed.clear()
                await asyncio.sleep(0.01)

    run(main)


def test_the_host_line_is_what_the_url_says() -> None:
    seen: list[bytes] = []

    async def script(visit: Visit) -> None:
        seen.append(await visit.request())
        await visit.send(answer(PAGE))

    async def main() -> None:
        async with stage(script) as scene:
            for host in ("site.test.", "127.0.0.1", "xn--mnchen-3ya.test", "under_score.test"):
                exchange = await scene.fetcher.fetch(FetchRequest(scene.url(host=host), LOOPBACK))
                assert exchange.request_head == seen[-1]
                assert b"\r\nHost: %b:%d\r\n" % (host.encode(), scene.port) in seen[-1]

    run(main)


@pytest.mark.parametrize("is_by_libcurl", [False, True], ids=["plain", "libcurl"])
def test_a_request_that_libcurl_would_repeat_by_itself_is_given_back(is_by_libcurl: bool) -> None:
    sent: list[float] = []

    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.send(answer(PAGE))
        if visit.number == 1:
            await visit.request()  # and hangs up without an answer

    async def main() -> None:
        async with stage(script) as scene:
            if is_by_libcurl:
                scene.fetcher._clients["http:"] = scene.fetcher._curl_client(USUAL)
            await scene.get()
            done: asyncio.Future[Exchange] = asyncio.get_running_loop().create_future()
            scene.fetcher.start(FetchRequest(scene.url(), LOOPBACK), done.set_result, sent.append)
            exchange = await done
            assert exchange.outcome is Outcome.DISCONNECTED
            assert "not repeated" in exchange.error
            assert exchange.requests_sent == 1
            assert exchange.sent_at == sent[-1]
            assert (await scene.get()).outcome is Outcome.OK

    run(main)
    assert len(sent) == 1


def test_a_fresh_connection_that_is_closed_without_an_answer_is_not_repeated() -> None:
    async def main() -> None:
        async with stage(says(b"")) as scene:
            exchange = await scene.get()
            assert exchange.outcome is Outcome.DISCONNECTED
            assert exchange.requests_sent == 1
            assert scene.connections == 1

    run(main)


def test_on_sent_is_reported_before_the_answer() -> None:
    order: list[str] = []

    async def script(visit: Visit) -> None:
        await visit.request()
        order.append("read")
        await visit.send(answer(PAGE))

    async def main() -> None:
        async with stage(script) as scene:
            done: asyncio.Future[Exchange] = asyncio.get_running_loop().create_future()
            scene.fetcher.start(
                FetchRequest(scene.url(), LOOPBACK), done.set_result, on_sent=lambda _: order.append("sent")
            )
            await done

    run(main)
    assert order == ["sent", "read"]


def test_a_cancelled_request_is_never_heard_of_again() -> None:
    told: list[Exchange] = []

    async def main() -> None:
        closed = asyncio.Event()

        async def script(visit: Visit) -> None:
            await visit.request()
            tickets[0].cancel()
            assert await visit.request() == b""
            closed.set()

        async with stage(script) as scene:
            tickets = [scene.fetcher.start(FetchRequest(scene.url(), LOOPBACK), told.append)]
            await closed.wait()
            assert scene.fetcher.in_flight == 0
            tickets[0].cancel()

    run(main)
    assert told == []


def test_a_request_may_be_cancelled_while_it_is_sent() -> None:
    async def main() -> None:
        cancelled = asyncio.Event()

        def cancel(_: float) -> None:
            ticket.cancel()
            cancelled.set()

        async with stage(says(answer(PAGE))) as scene:
            ticket = scene.fetcher.start(FetchRequest(scene.url(), LOOPBACK), lambda _: pytest.fail("told"), cancel)
            await cancelled.wait()
            assert (await scene.get()).outcome is Outcome.OK

    run(main)


def test_cancelling_fetch_closes_the_connection() -> None:
    async def main() -> None:
        closed = asyncio.Event()
        asked = asyncio.Event()

        async def script(visit: Visit) -> None:
            await visit.request()
            asked.set()
            await visit.request()
            closed.set()

        async with stage(script, limits=FetchLimits()) as scene, asyncio.TaskGroup() as group:
            task = group.create_task(scene.get())
            await asked.wait()
            task.cancel()
            await closed.wait()

    run(main)


def test_leaving_ends_what_is_under_way() -> None:
    told: list[Exchange] = []

    async def main() -> None:
        asked = asyncio.Event()

        async def script(visit: Visit) -> None:
            await visit.request()
            asked.set()
            await visit.request()

        async with stage(script, limits=FetchLimits()) as scene:
            request = FetchRequest(scene.url(), LOOPBACK)

            def tell_and_go_on(exchange: Exchange) -> None:
                told.append(exchange)
                scene.fetcher.start(request, told.append)

            scene.fetcher.start(request, tell_and_go_on)
            await asked.wait()
        await asyncio.sleep(0)

    run(main)
    assert [exchange.outcome for exchange in told] == [Outcome.WORKER_LOST] * 2
    assert told[0].requests_sent == 1


def test_a_callback_that_fails_does_not_stop_the_others() -> None:
    async def main() -> None:
        faults: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))

        def fail(_: Exchange) -> None:
            raise ValueError("no")

        async with stage(keeps(*[answer(PAGE)] * 3)) as scene:
            scene.fetcher.start(FetchRequest(scene.url(), LOOPBACK), fail)
            while not faults:
                await asyncio.sleep(0.001)
            assert (await scene.get()).outcome is Outcome.OK

    run(main)


def test_many_at_once_under_uvloop() -> None:
    async def main() -> None:
        async with stage(keeps(*[answer(PAGE)] * 200), limits=FetchLimits()) as scene:
            exchanges = await asyncio.gather(*(scene.get(f"/{number}") for number in range(200)))
            assert {exchange.outcome for exchange in exchanges} == {Outcome.OK}
            assert [exchange.url for exchange in exchanges] == [scene.url(f"/{number}") for number in range(200)]

    uvloop.run(main())


@pytest.mark.parametrize(
    ("coding", "coded"),
    [
        ("gzip", gzip.compress(PAGE, mtime=0)),
        ("br", brotli.compress(PAGE)),
        ("zstd", zstandard.compress(PAGE)),
    ],
)
def test_the_body_stays_coded_and_the_content_is_decoded(coding: str, coded: bytes) -> None:
    exchange = fetched(says(answer(coded, f"Content-Encoding: {coding}")))
    assert exchange.body == coded
    assert exchange.content == PAGE
    assert exchange.is_decoded


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_a_very_large_body_is_joined_and_decoded_in_a_thread(coding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    joined_in: list[str] = []
    decode_marked = Fetcher._decode_marked

    def decode(*arguments: Any) -> None:
        joined_in.append(threading.current_thread().name)
        decode_marked(*arguments)

    monkeypatch.setattr(Fetcher, "_decode_marked", decode)
    content = random.Random(1).randbytes(BIG_BODY_BYTES + 1)
    body = gzip.compress(content, 1) if coding else content
    headers = [f"Content-Encoding: {coding}"] if coding else []
    exchange = fetched(says(answer(body, *headers)), max_bytes=2 * BIG_BODY_BYTES)
    assert exchange.body == body
    assert exchange.content == content
    assert len(joined_in) == 1
    assert joined_in != ["MainThread"]


def test_chunks_are_joined_and_trailers_dropped() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    exchange = fetched(says(head + b"3\r\nabc\r\n2\r\nde\r\n0\r\nX-Late: 1\r\nContent-Type: a/b\r\n\r\n"))
    assert exchange.body == b"abcde"
    assert exchange.response_head == head
    assert exchange.headers == [("transfer-encoding", "chunked")]


def test_interim_answers_are_passed_over() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
    exchange = fetched(says(early + early + answer(PAGE)))
    assert exchange.outcome is Outcome.OK
    assert exchange.response_head == answer(PAGE)[: -len(PAGE)]
    assert exchange.header("link") == ""


@pytest.mark.parametrize(
    ("content_type", "outcome"),
    [
        ("Content-Type: text/HTML; charset=utf-8", Outcome.OK),
        ("Content-Type: text/plain", Outcome.OK),
        ("Content-Type: nonsense", Outcome.OK),
        ("X-Other: 1", Outcome.OK),
        ("Content-Type: application/xhtml+xml", Outcome.OK),
        ("Content-Type: application/zip", Outcome.TYPE_REFUSED),
        ("Content-Type: image/png", Outcome.TYPE_REFUSED),
    ],
)
def test_unwanted_types_are_cut_off_after_the_head(content_type: str, outcome: Outcome) -> None:
    wanted = frozenset(("text/", "application/xhtml+xml"))
    exchange = fetched(says(answer(PAGE, content_type)), wanted_types=wanted)
    assert exchange.outcome is outcome
    assert exchange.body == (PAGE if outcome is Outcome.OK else b"")
    assert exchange.truncated is Truncation.NONE


@pytest.mark.parametrize(
    ("body", "wanted", "outcome"),
    [
        (b"%PDF-1.7 ...", "application/pdf", Outcome.OK),
        (b"\r\n%PDF-1.7 ...", "application/pdf", Outcome.OK),
        (b"\x7fELF", "application/pdf", Outcome.TYPE_REFUSED),
        (b"%PDF-1.7 ...", "text/html", Outcome.TYPE_REFUSED),
    ],
)
def test_a_pdf_without_a_type_is_read_if_one_is_wanted(body: bytes, wanted: str, outcome: Outcome) -> None:
    page = answer(body, "Content-Type: application/octet-stream")
    assert fetched(says(page), wanted_types=frozenset((wanted,))).outcome is outcome


def test_the_type_of_an_error_page_does_not_matter() -> None:
    page = answer(b"{}", "Content-Type: application/json", status="404 Not Found")
    exchange = fetched(says(page), wanted_types=frozenset(("text/html",)))
    assert exchange.outcome is Outcome.CLIENT_ERROR
    assert exchange.body == b"{}"


@pytest.mark.parametrize(
    ("status", "headers", "outcome"),
    [
        ("200 OK", [], Outcome.OK),
        ("204 No Content", [], Outcome.OTHER_SUCCESS),
        ("206 Partial Content", [], Outcome.OTHER_SUCCESS),
        ("301 Moved", ["Location: /b"], Outcome.REDIRECT),
        ("308 Moved", ["Location: /b"], Outcome.REDIRECT),
        ("302 Found", [], Outcome.BAD_REDIRECT),
        ("302 Found", ["Location:"], Outcome.BAD_REDIRECT),
        ("300 Choices", ["Location: /b"], Outcome.BAD_STATUS),
        ("404 Not Found", [], Outcome.CLIENT_ERROR),
        ("429 Slow Down", ["Retry-After: 5"], Outcome.RATE_LIMITED),
        ("503 Busy", [], Outcome.SERVER_ERROR),
        ("999 Denied", [], Outcome.BAD_STATUS),
    ],
)
def test_a_status_has_its_outcome(status: str, headers: list[str], outcome: Outcome) -> None:
    exchange = fetched(says(answer(b"", *headers, status=status)))
    assert exchange.outcome is outcome
    assert exchange.status == int(status[:3])


def test_a_304_counts_only_if_it_was_asked_for() -> None:
    page = b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n'
    assert fetched(says(page), headers=(("If-None-Match", '"v1"'),)).outcome is Outcome.NOT_MODIFIED
    assert fetched(says(page)).outcome is Outcome.BAD_STATUS


def test_redirects_are_not_followed() -> None:
    async def main() -> None:
        async with stage(says(answer(b"", "Location: /b", status="302 Found"))) as scene:
            exchange = await scene.get("/a")
            assert exchange.header("location") == "/b"
            assert scene.connections == 1

    run(main)


def test_a_proxy_in_the_environment_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert fetched(says(answer(PAGE))).outcome is Outcome.OK


def test_credentials_in_a_url_are_never_sent() -> None:
    async def main() -> None:
        async with stage(says(answer(PAGE))) as scene:
            request = FetchRequest(scene.url(host="user:secret@site.test"), LOOPBACK)
            assert (await scene.fetcher.fetch(request)).outcome is Outcome.PROTOCOL_ERROR
            assert scene.connections == 0

    run(main)


def test_a_blocked_address_is_not_connected_to() -> None:
    async def main() -> None:
        async with stage(says(answer(PAGE)), policy=AddressPolicy()) as scene:
            exchange = await scene.get()
            assert exchange.outcome is Outcome.BLOCKED_ADDRESS
            assert "loopback" in exchange.error
            assert exchange.requests_sent == 0
            assert scene.connections == 0

    run(main)


def test_the_policy_also_holds_at_the_socket() -> None:
    class Turncoat(AddressPolicy):
        """Allows an address when asked first, and refuses it when the socket is opened."""

        calls = 0

        def refusal(self, address: str) -> str | None:
            self.calls += 1
            return None if self.calls == 1 else f"{address} is loopback"

    async def main() -> None:
        async with stage(says(answer(PAGE)), policy=Turncoat()) as scene:
            assert (await scene.get()).outcome is Outcome.BLOCKED_ADDRESS
            assert scene.connections == 0

    run(main)


@pytest.mark.parametrize("address", ["localhost", "127.1", "0x7f.1", "2130706433", "127.0.0.1:80", "::ffff:127.0.0.1"])
def test_only_a_plain_address_is_connected_to(address: str) -> None:
    async def main() -> None:
        async with stage(says(answer(PAGE))) as scene:
            exchange = await scene.get(addresses=(address,))
            assert exchange.outcome is Outcome.BLOCKED_ADDRESS
            assert scene.connections == 0

    run(main)


def test_without_an_address_nothing_is_resolved() -> None:
    assert fetched(says(answer(PAGE)), addresses=()).outcome is Outcome.DNS_FAILED


def test_the_next_address_is_tried_if_the_first_cannot_be_reached() -> None:
    async def main() -> None:
        async with stage(says(answer(PAGE)), policy=AddressPolicy(["127.0.0.0/8", "::1/128"])) as scene:
            exchange = await scene.get(addresses=("127.0.0.9", "10.0.0.1", "127.0.0.1"))
            assert exchange.outcome is Outcome.OK
            assert exchange.address == "127.0.0.1"
            assert exchange.requests_sent == 1

    run(main)


def test_a_closed_port_is_connect_failed() -> None:
    async def main() -> None:
        async with stage(says(b"")) as scene:
            request = FetchRequest("http://site.test:1/", LOOPBACK)
            exchange = await scene.fetcher.fetch(request)
            assert exchange.outcome is Outcome.CONNECT_FAILED
            assert exchange.error

    run(main)


def test_all_time_limits_come_from_one_number() -> None:
    limits = FetchLimits.from_timeout(4.0)
    assert (limits.connect_timeout_s, limits.first_byte_timeout_s, limits.silence_s) == (4.0, 4.0, 4.0)
    assert limits.total_timeout_s == 12.0


def test_the_file_limit_is_never_lowered() -> None:
    assert raise_file_limit(8) >= 8
    assert raise_file_limit() >= 1024


def test_a_request_with_a_limit_of_its_own_ends_then_however_much_has_arrived() -> None:
    limits = FetchLimits.from_timeout(5.0)
    started = time.monotonic()
    script = says(b"HTTP/1.1 200 Fine\r\nContent-Length: 9\r\n\r\nx", stays_open=True)
    exchange = fetched(script, limits=limits, limit_s=0.3)
    assert exchange.outcome is Outcome.TIMEOUT
    assert exchange.error == "no whole answer within 0.3 s, for which the connection was lent"
    assert 0.3 <= time.monotonic() - started < 4.0
