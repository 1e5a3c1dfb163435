"""The web over real sockets, in a process of its own: a small crawler, good and bad, and what was seen of it."""

from __future__ import annotations

import re
import socket
from collections import defaultdict, deque
from collections.abc import Iterator
from html import unescape
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path

import msgspec
import pytest
from tests.servers.web import RunningWeb

from gossamer.sim.web.dns import FaultKind, NameFault
from gossamer.sim.web.log import read_log
from gossamer.sim.web.server import encode_answer, parse_request
from gossamer.sim.web.server_judge import JudgeRules
from gossamer.sim.web.truth import resolve
from gossamer.sim.web.web import Health, Site, WebPlan, preset

NO_PACE = JudgeRules(politeness_s=0.0)


@pytest.fixture(scope="module")
def running() -> Iterator[RunningWeb]:
    plan = WebPlan(
        domains=12, hosts=16, pages=150, slow=0.07, slow_s=0.05, strict=0.07, closed=0.07, erring=0.07, chunked=0.3
    )
    with RunningWeb(plan) as web:
        yield web


@pytest.fixture
def fresh(running: RunningWeb) -> RunningWeb:
    running.forget()
    return running


def sites_of(web: RunningWeb) -> list[Site]:
    return [site for index in range(web.plan.host_count) if (site := web.web.site(web.plan.host_name(index)))]


class Client:
    """One kept-alive connection; says who it wants in the Host header."""

    def __init__(self, web: RunningWeb, address: str = "127.0.0.1") -> None:
        self._port = web.port
        self._connection = HTTPConnection(address, web.port, timeout=5)

    def get(self, host: str, target: str, **headers: str) -> tuple[HTTPResponse, bytes]:
        named = {"Host": f"{host}:{self._port}", "User-Agent": "test/1", **headers}
        self._connection.request("GET", target, headers=named)
        answer = self._connection.getresponse()
        return answer, answer.read()

    def close(self) -> None:
        self._connection.close()


def crawl(web: RunningWeb) -> None:
    """Everything, politely but for the pace: robots first, one request at a time, no page twice."""
    client = Client(web)
    queue = deque((seed.split("/")[2].partition(":")[0], "/") for seed in web.seeds())
    seen = set(queue)
    for site in sites_of(web):
        try:
            client.get(site.name, "/robots.txt")
        except (HTTPException, ConnectionError):
            client.close()
        queue.extend((site.name, web.web.card(site, n).path) for n in web.web.sitemap_pages(site) if site.is_available)
    fetched = set()
    while queue:
        host, target = queue.popleft()
        asked = web.web.site(host)
        if asked is None or asked.is_disallowed(target) or asked.strict_pace_s:
            continue
        if (host, resource := web.web.route(asked, target)) in fetched:
            continue
        fetched.add((host, resource))
        answer, body = client.get(host, target)
        links = [unescape(href) for href in re.findall(r'<a href="(.*?)"', body.decode("utf-8", "replace"))]
        for href in [*links, answer.getheader("Location", "mailto:")]:
            place = resolve(host, web.port, target, href)
            if place is not None and place not in seen:
                seen.add(place)
                queue.append(place)
    client.close()


def test_a_good_crawler_is_found_clean_and_complete_by_what_the_server_saw(fresh: RunningWeb) -> None:
    crawl(fresh)
    report = fresh.judge(NO_PACE)
    strict_pages = sum(site.pages for site in sites_of(fresh) if site.strict_pace_s)
    assert report.is_clean, report.render()
    assert report.missing == strict_pages
    assert report.max_at_once == 1


def test_the_operator_can_ask_the_running_server_for_its_audit_log_and_plan(fresh: RunningWeb) -> None:
    client = Client(fresh)
    client.get("site-00001.test", "/")
    _, body = client.get("control.test", "/_audit?politeness_s=0&scope=any&first_seeds=2")
    verdict = msgspec.json.decode(body)
    assert (verdict["requests"], verdict["robots_late"]["count"]) == (1, 1)
    assert client.get("control.test", "/_audit?politness=0")[0].status == 400
    assert msgspec.json.decode(client.get("control.test", "/_plan")[1], type=WebPlan) == fresh.plan
    assert client.get("control.test", "/_other")[0].status == 404
    (seen,) = fresh.log()
    assert (seen.host, seen.target, seen.status, seen.agent) == ("site-00001.test", "/", 200, "test/1")
    assert 0 < seen.finished_at - seen.arrived_at < 1
    client.close()


def test_a_host_is_served_at_its_own_address_and_by_its_name_only(fresh: RunningWeb) -> None:
    site = next(site for site in sites_of(fresh) if site.is_available)
    client = Client(fresh, site.address)
    assert client.get(site.name, "/")[1] == fresh.web.answer(site.name, "/").body
    assert client.get(site.name.upper(), "/")[0].status == 200
    assert client.get("stranger.test", "/")[0].status == 404
    client.close()


def test_validators_compression_and_chunks_survive_the_wire(fresh: RunningWeb) -> None:
    client = Client(fresh)
    chunked = next(site for site in sites_of(fresh) if site.is_chunked and not site.strict_pace_s)
    answer, body = client.get(chunked.name, "/")
    assert answer.getheader("Transfer-Encoding") == "chunked"
    assert body == fresh.web.answer(chunked.name, "/").body
    again, nothing = client.get(chunked.name, "/", **{"If-None-Match": str(answer.getheader("ETag"))})
    assert (again.status, nothing) == (304, b"")
    packed = next(site for site in sites_of(fresh) if site.is_compressed and not site.strict_pace_s)
    assert client.get(packed.name, "/", **{"Accept-Encoding": "gzip"})[0].getheader("Content-Encoding") == "gzip"
    client.close()


def test_a_closed_host_hangs_up_and_the_log_says_so(fresh: RunningWeb) -> None:
    closed = next(site for site in sites_of(fresh) if site.health is Health.CLOSED)
    with pytest.raises((HTTPException, ConnectionError)):
        Client(fresh).get(closed.name, "/robots.txt")
    (seen,) = fresh.log()
    assert (seen.host, seen.status) == (closed.name, 0)
    assert seen.finished_at > 0


def test_a_strict_host_sends_who_comes_too_soon_away(fresh: RunningWeb) -> None:
    strict = next(site for site in sites_of(fresh) if site.strict_pace_s)
    client = Client(fresh)
    statuses = [client.get(strict.name, "/robots.txt")[0] for _ in range(3)]
    assert statuses[-1].status == 429
    assert statuses[-1].getheader("Retry-After") == "1"
    client.close()


def test_a_slow_host_answers_late_and_two_requests_to_it_overlap(fresh: RunningWeb) -> None:
    slow = next(site for site in sites_of(fresh) if site.answer_delay_s)
    request = f"GET /robots.txt HTTP/1.1\r\nHost: {slow.name}\r\nConnection: close\r\n\r\n".encode()
    sockets = [socket.create_connection(("127.0.0.1", fresh.port), timeout=5) for _ in range(2)]
    for each in sockets:
        each.sendall(request)
    for each in sockets:
        assert each.makefile("rb").read().startswith(b"HTTP/1.1 ")
        each.close()
    first, second = fresh.log()
    # A loop's timer counts from the start of its turn, so it may fire a little early.
    assert first.finished_at - first.arrived_at >= slow.answer_delay_s - 0.005
    assert (first.in_flight, second.in_flight) == (1, 2)
    assert fresh.judge(NO_PACE).too_many_at_once.count == 1


def test_two_requests_in_one_packet_are_answered_in_order(fresh: RunningWeb) -> None:
    site = next(site for site in sites_of(fresh) if site.is_available and not site.strict_pace_s)
    head = "GET {} HTTP/1.1\r\nHost: " + site.name + "\r\n{}\r\n"
    with socket.create_connection(("127.0.0.1", fresh.port), timeout=5) as sock:
        sock.sendall((head.format("/gone/0", "") + head.format("/img/0.png", "Connection: close\r\n")).encode())
        received = sock.makefile("rb").read()
    assert re.findall(rb"HTTP/1\.1 (\d+)", received) == [b"410", b"200"]


@pytest.mark.parametrize("junk", [b"\x16\x03\x01\x02\r\n\r\n", b"x" * 70_000])
def test_what_is_not_http_is_cut_off(fresh: RunningWeb, junk: bytes) -> None:
    with socket.create_connection(("127.0.0.1", fresh.port), timeout=5) as sock:
        try:
            sock.sendall(junk)
            assert sock.recv(100) == b""
        except ConnectionError:
            pass
    assert fresh.log() == []


def test_changing_pages_change_when_time_passes() -> None:
    with RunningWeb(preset("plain", domains=2, pages=4, changing=1.0)) as web:
        client = Client(web)
        before = client.get("site-00001.test", "/")[1]
        web.pass_time(1)
        assert client.get("site-00001.test", "/")[1] != before
        client.close()


def test_the_log_is_whole_in_its_file_when_the_server_has_stopped(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    web = RunningWeb(preset("small"), log_path=path, faults={"site-00000.test": NameFault(FaultKind.SERVFAIL)})
    with web:
        client = Client(web)
        for number in range(20):
            client.get("site-00003.test", f"/missing/{number}")
        client.close()
    web.stop()
    assert [request.target for request in read_log(path)] == [f"/missing/{number}" for number in range(20)]


def test_a_server_whose_parent_has_gone_ends_by_itself() -> None:
    web = RunningWeb(preset("small"))
    web.start()
    process = web._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(10) == 0
    web.stop()


def test_a_port_that_is_taken_is_an_error_not_a_hang(fresh: RunningWeb) -> None:
    with pytest.raises(RuntimeError, match="ended with status 1"):
        RunningWeb(preset("small"), port=fresh.port).start()


def test_a_head_is_read_whatever_the_case_of_its_names() -> None:
    request = parse_request(b"GET /a?b HTTP/1.1\r\nhOST: A.Test:80\r\nUSER-AGENT: x\r\nconnection: Close\r\n\r\n")
    assert request is not None
    assert (request.host, request.target, request.agent, request.keeps_alive) == ("a.test", "/a?b", "x", False)
    assert parse_request(b"GET / HTTP/1.0\r\n\r\n") is not None
    assert parse_request(b"hello\r\n\r\n") is None


def test_a_not_modified_answer_has_no_body_and_no_length(fresh: RunningWeb) -> None:
    answer = fresh.web.answer("site-00003.test", "/")
    etag = fresh.web.answer("site-00003.test", "/", if_none_match=answer.etag)
    data = encode_answer(etag, keeps_alive=True)
    assert data.endswith(b"\r\n\r\n")
    assert b"Content-Length" not in data


def test_requests_by_host_are_counted(fresh: RunningWeb) -> None:
    client = Client(fresh)
    wanted: defaultdict[str, int] = defaultdict(int)
    for number in range(6):
        host = f"site-0000{number % 3}.test"
        site = fresh.web.site(host)
        if site is not None and site.health is not Health.CLOSED:
            client.get(host, f"/missing/{number}")
            wanted[host] += 1
    client.close()
    assert fresh.judge(NO_PACE).requests_by_host == wanted
