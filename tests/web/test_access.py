"""Who may use the dashboard: whoever has the token, and no other site's page. Over real connections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.settings.listening import Address
from gossamer.web.access import AccessRules
from gossamer.web.http import MAX_BODY_BYTES, MAX_HEAD_BYTES, HttpRequest
from tests.reading.folders import Crawled, finished, small_web
from tests.web.serving import Served, parsed, served

__all__ = ["finished", "small_web"]

OPEN = ("/", "/static/app.js")
CLOSED = ("/api/status", "/api/openapi.json", "/metrics", "/healthz", "/readyz", "/nowhere")


@pytest.fixture(scope="module")
def server(finished: Crawled) -> Iterator[Served]:
    with served(finished.path, has_metrics=True) as server:
        yield server


PUBLIC = "https://Ops.example.org/crawls/books"


@pytest.fixture(scope="module")
def proxied(finished: Crawled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(finished.copied(tmp_path_factory.mktemp("proxied") / "copy"), public=PUBLIC) as server:
        yield server


@pytest.mark.parametrize("prefix", ["", "/crawls/books"])
@pytest.mark.parametrize("host", ["ops.example.org", ""])
def test_a_reverse_proxy_may_pass_its_name_and_path_or_not(proxied: Served, prefix: str, host: str) -> None:
    for origin in ({}, {"Origin": "https://ops.example.org"}):
        headers = {"Host": host or proxied.host, **origin}
        for path in (*OPEN, "/api/status"):
            assert proxied.ask(prefix + path, headers=headers).status == 200, path
        assert proxied.ask(f"{prefix}/api/status", headers=headers, with_token=False).status == 401
    assert proxied.url.startswith("https://ops.example.org/crawls/books/#token=")


def test_the_path_of_a_proxy_without_its_slash_leads_to_the_page(proxied: Served) -> None:
    reply = proxied.ask("/crawls/books", with_token=False)
    assert (reply.status, reply.headers["location"]) == (308, "/crawls/books/")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://ops.example.org"},
        {"Origin": "https://ops.example.org.evil.test"},
        {"Origin": "https://evil.test", "Host": "ops.example.org"},
        {"Origin": "http://ops.example.org", "Host": "ops.example.org"},
        {"Host": "evil.test"},
        {"Host": "ops.example.org:8443"},
    ],
)
def test_behind_a_proxy_other_sites_are_refused_as_before(proxied: Served, headers: dict[str, str]) -> None:
    assert proxied.ask("/api/status", headers=headers).status == 403
    assert proxied.ask("/crawls/books/api/status", headers=headers).status == 403


def test_a_prefix_that_only_begins_like_the_path_is_none(proxied: Served) -> None:
    assert proxied.ask("/crawls/bookshelf/api/status").status == 404


def test_the_token_of_a_file_outlasts_the_process_and_is_not_printed(finished: Crawled, tmp_path: Path) -> None:
    path = tmp_path / "token"
    folder = finished.copied(tmp_path / "copy")
    for _ in range(2):
        with served(folder, token_file=path) as server:
            token = path.read_text().strip()
            assert token not in server.url
            assert len(token) >= 43
            assert server.ask("/api/status", with_token=False).status == 401
            headers = {"Authorization": f"Bearer {token}"}
            assert server.ask("/api/status", with_token=False, headers=headers).status == 200
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("path", CLOSED)
def test_nothing_of_the_crawl_is_served_without_the_token(server: Served, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}, {"Cookie": "gossamer=x"}):
        reply = server.ask(path, with_token=False, headers=headers)
        assert reply.status == 401
        assert "token" in reply.json["error"]
    assert server.ask(f"{path}?token={server.token[:-1]}", with_token=False).status == 401
    assert server.ask(path, with_token=False, headers={"Authorization": "Bearer Ω"}).status == 401


def test_the_files_of_the_dashboard_have_no_secret_and_need_none(server: Served) -> None:
    for path in OPEN:
        reply = server.ask(path, with_token=False)
        assert reply.status == 200
        assert server.token.encode() not in reply.body
        assert "set-cookie" not in reply.headers, "a cookie reaches servers on other ports, too"


def test_a_cookie_does_not_open_anything(server: Served) -> None:
    port = server.host.rpartition(":")[2]
    cookie = {"Cookie": f"gossamer_{port}={server.token}"}
    assert server.ask("/api/status", with_token=False, headers=cookie).status == 401


def test_a_ticket_opens_one_copy_and_nothing_else(server: Served) -> None:
    pages = server.ask("/api/pages").json["pages"]
    first, second = (server.ask(f"/api/pages/{page['id']}").json["copy"] for page in pages[:2])
    assert server.ask(first, with_token=False).status == 200
    ticket = first.partition("?")[2]
    assert server.ask(f"{second.partition('?')[0]}?{ticket}", with_token=False).status == 401
    assert server.ask(f"/api/status?{ticket}", with_token=False).status == 401
    assert server.ask(first[:-1], with_token=False).status == 401


def test_the_token_in_an_address_of_the_api_is_not_accepted(server: Served) -> None:
    assert server.ask(f"/api/status?token={server.token}", with_token=False).status == 401


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://{host}", "http://{host}.evil.example", "x"])
def test_another_sites_page_is_refused_even_with_the_token(server: Served, origin: str) -> None:
    sent = {"Origin": origin.format(host=server.host), "Content-Type": "application/json"}
    assert server.ask("/api/status", headers=sent).status == 403
    refused = server.ask("/api/control", method="POST", headers=sent, body=b'{"command": "pause"}')
    assert refused.status == 403
    assert server.ask("/api/status", headers={"Origin": f"http://{server.host}"}).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "a b", "[::1"])
def test_a_name_that_was_made_to_point_here_is_refused(server: Served, host: str) -> None:
    port = server.host.rpartition(":")[2]
    for path in ("/api/status", "/"):
        assert server.ask(path, headers={"Host": host.format(port=port)}).status == 403


def test_two_hosts_in_a_request_are_refused(server: Served) -> None:
    lines = ["GET /api/status HTTP/1.1", f"Host: {server.host}", "Host: evil.example", "", ""]
    assert parsed(server.raw("\r\n".join(lines).encode())).status == 400


def test_a_server_on_all_addresses_is_reached_by_addresses_and_not_by_other_names() -> None:
    access = AccessRules("t", Address("0.0.0.0", 80), ["box"])
    sent = {"authorization": "Bearer t"}
    refusals = {
        host: access.refusal(HttpRequest("GET", "/", [], {"host": host, **sent}))
        for host in ("192.0.2.7:80", "[2001:db8::1]:80", "box:80", "localhost:80", "evil.example:80", "192.0.2.7:81")
    }
    assert [host for host, refusal in refusals.items() if refusal] == ["evil.example:80", "192.0.2.7:81"]


@pytest.mark.parametrize(
    ("listening", "host", "is_own"),
    [
        (Address("127.0.0.1", 80), "127.0.0.1", True),  # a browser leaves the port of HTTP out
        (Address("0.0.0.0", 80), "192.0.2.7", True),
        (Address("127.0.0.1", 80), "evil.example", False),
        (Address("127.0.0.1", 8080), "127.0.0.1", False),
        (Address("Box.Example", 8080), "box.example:8080", True),
    ],
)
def test_a_host_is_compared_as_browsers_write_it(listening: Address, host: str, is_own: bool) -> None:
    headers = {"host": host, "origin": f"http://{host}", "authorization": "Bearer t"}
    refusal = AccessRules("t", listening).refusal(HttpRequest("GET", "/", [], headers))
    assert (refusal is None) is is_own


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_form_of_another_site_cannot_give_commands(server: Served, kind: str) -> None:
    body = b'{"command": "pause"}'
    assert server.ask("/api/control", method="POST", body=body, headers={"Content-Type": kind}).status == 415


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/server.py", "//etc/passwd"),
        *("/../../etc/passwd", "/static/", "/static/index.html/", "/%00", "/static/app.js%00", "\\etc\\passwd"),
    ],
)
def test_no_path_leads_out_of_the_files_of_the_page(server: Served, path: str) -> None:
    assert server.ask(path).status in (400, 404)


def test_requests_are_bounded(server: Served) -> None:
    assert server.ask("/api/status", headers={"X-Long": "x" * MAX_HEAD_BYTES}).status == 431
    many = {f"X-{number}": "x" * 100 for number in range(2000)}
    assert server.ask("/api/status", headers=many).status == 431
    assert server.ask("/" + "a" * 2 * MAX_HEAD_BYTES).status == 431
    large = server.ask(
        "/api/control", method="POST", body=b"[" * (MAX_BODY_BYTES + 1), headers={"Content-Type": "application/json"}
    )
    assert large.status == 413
    deep = b'{"command":' + b"[" * 500_000
    assert (
        server.ask("/api/control", method="POST", body=deep, headers={"Content-Type": "application/json"}).status == 400
    )


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"GET / HTTP/3\r\n\r\n", b"\0" * 100 + b"\r\n\r\n"]
)
def test_what_is_not_http_is_refused_in_one_line(server: Served, data: bytes) -> None:
    answer = server.raw(data + b"\r\n\r\n")
    assert parsed(answer).status == 400
    assert "not a valid request" in parsed(answer).json["error"]


def test_every_answer_has_the_headers_that_protect_it(server: Served) -> None:
    for path in OPEN + CLOSED:
        headers = server.ask(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'"), path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
    page = server.ask("/").headers["content-security-policy"]
    assert "unsafe" not in page
    assert "script-src 'self'" in page


def test_monitoring_needs_no_token_and_gets_nothing_else(server: Served) -> None:
    host = server.metrics_host
    assert server.ask("/healthz", host=host, with_token=False).body == b"ok\n"
    assert server.ask("/readyz", host=host, with_token=False).body == b"finished\n"
    metrics = server.ask("/metrics", host=host, with_token=False)
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b"\ngossamer_pages_total " in metrics.body
    assert metrics.body == server.ask("/metrics").body
    for path in ("/", "/api/status", "/static/app.js"):
        assert server.ask(path, host=host).status == 404
    assert server.ask("/healthz", host=host, method="POST").status == 405
