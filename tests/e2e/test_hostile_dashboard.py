"""What strangers wrote does nothing on the dashboard: titles, URLs, headers, robots.txt, and archived pages."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.dashboard_crawl import shown, wait_for
from tests.e2e.program import run
from tests.servers import engines
from tests.servers.browser import Browser, running_browser

QUIET_S = 2.0
PWN = "document.title='pwned';window.pwned=1;top.pwned=1"
MARKUP = f'"><img src=/leak/%s onerror="{PWN}"><script>{PWN}</script><svg onload="{PWN}">'
ROBOTS = f"User-agent: *\nDisallow: /{MARKUP % 'robots'}\nAllow: /</pre><script>{PWN}</script>\n# <b>x</b>\n"


class HostileSite:
    """Answers every request with a page that tries everything; records who connected."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self.requests: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            data = b""
            while b"\r\n\r\n" not in data:
                part = connection.recv(4096)
                if not part:
                    return
                data += part
            path = data.split()[1].decode()
            self.requests.append(path)
            is_robots = path == "/robots.txt"
            body = (ROBOTS if is_robots else self._page(path)).encode()
            kind = "text/plain" if is_robots else "text/html; charset=utf-8"
            head = (
                f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                f"X-Evil: <script>{PWN}</script>\r\nLink: <{self.base}/leak/header>; rel=preload; as=script\r\n"
                f"Refresh: 0; url={self.base}/leak/refresh-header\r\nConnection: close\r\n\r\n"
            )
            connection.sendall(head.encode() + body)

    def _page(self, path: str) -> str:
        base, on = self.base, f"/%3Cscript%3E{path.strip('/')}?a=<script>{PWN}</script>"
        return f"""<!doctype html><html><head><title>{MARKUP % "title"} \u202e of {path}</title>
            <meta http-equiv=refresh content="0;url={base}/leak/refresh"><base href="{base}/leak/base/">
            <link rel=preconnect href="{base}"><link rel=dns-prefetch href="//leak.test">
            <link rel=prefetch href="{base}/leak/pre"><link rel=icon href="{base}/leak/icon">
            <LINK rel=stylesheet href="{base}/leak/css">
            <style>@import url({base}/leak/import); body {{ background: url({base}/leak/background) }}
            @font-face {{ font-family: x; src: url({base}/leak/font) }} p {{ font-family: x }}</style>
            <script>{PWN};fetch('{base}/leak/fetch')</script><script src="{base}/leak/script"></script></head>
            <body onload="{PWN}"><p>The text of {path}, which nobody else has.</p>
            <img src="{base}/leak/image" onerror="{PWN}"><img src=x onerror="{PWN}"><svg onload="{PWN}"></svg>
            <iframe src="{base}/leak/frame"></iframe><object data="{base}/leak/object"></object>
            <embed src="{base}/leak/embed"><video src="{base}/leak/video" autoplay></video>
            <audio src="{base}/leak/audio"></audio>
            <form id=f action="{base}/leak/form" method=post><input name=a autofocus onfocus="{PWN}"><button>b</button>
            </form><a id=out href="{base}/leak/click" target=_top ping="{base}/leak/ping">leave</a>
            <a href="{on}">on</a></body></html>"""

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def site() -> Iterator[HostileSite]:
    site = HostileSite()
    yield site
    site.close()


@pytest.fixture(params=[engines.param("chromium")])
def browser(tmp_path: Path) -> Iterator[Browser]:
    with running_browser(tmp_path / "browser") as browser:
        yield browser


def is_pwned(browser: Browser) -> bool:
    return bool(browser.run("return window.pwned === 1 || document.title === 'pwned'"))


def test_nothing_that_strangers_wrote_runs_or_leaves(browser: Browser, site: HostileSite, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("crawl", f"{site.base}/", "-n", "4", "--politeness-ms", "10", "-o", str(out), "--json")
    assert done.returncode == 0, done.stderr
    host = "127.0.0.1"
    with shown(out) as address:
        before, connections = len(site.requests), site.connections
        browser.go(address)
        browser.find("#state", "finished")
        for path in ("", "hosts", f"hosts/{host}", "live", "duplicates", "dead", "traps", "settings", "pages"):
            browser.run("location.hash = '#/' + arguments[0]", path)
            browser.find("main h1")
            assert not is_pwned(browser), path
        link = browser.find("main td.url a", "onerror")  # the title, as text
        assert "\\u202e of" in link.text, "nothing turns the text around it"
        assert "\u202e" not in browser.text()
        url = browser.all("main td.url .second")[0].text
        browser.run("location.hash = '#/why/' + encodeURIComponent(arguments[0])", url)
        browser.wait_for_text("The path from the seed")
        browser.run("location.hash = '#/pages'")
        link = browser.find("main td.url a", "onerror")
        link.click()
        browser.find("iframe.copy")
        shown_at = time.monotonic()
        wait_for(lambda: time.monotonic() > shown_at + QUIET_S)
        assert not is_pwned(browser)
        assert (site.requests[before:], site.connections) == ([], connections)
        _look_into_the_frame(browser)
        browser.find("#tab-headers").click()
        browser.find("#panel td", "<script>")
        browser.find("#tab-text").click()
        browser.wait_for_text("which nobody else has")
        assert not is_pwned(browser)
        assert site.requests[before:] == []
        assert site.connections == connections, "not even a connection ahead of use"


def _look_into_the_frame(browser: Browser) -> None:
    """The copy shows its text; it has no origin, and its links lead nowhere."""
    frame = browser.all("iframe.copy")[0]
    browser.call("POST", "/frame", {"id": {"element-6066-11e4-a52e-4f735466cecf": frame.reference}})
    assert "which nobody else has" in browser.text()
    assert browser.run("return window.origin") == "null"
    browser.all("#out")[0].click()
    browser.all("#f button")[0].click()
    clicked_at = time.monotonic()
    wait_for(lambda: time.monotonic() > clicked_at + 0.5)
    browser.call("POST", "/frame", {"id": None})
    assert str(browser.run("return location.hash")).startswith("#/pages/")


def test_a_copy_that_is_opened_alone_is_as_harmless(browser: Browser, site: HostileSite, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("crawl", f"{site.base}/", "-n", "1", "--politeness-ms", "10", "-o", str(out), "--json")
    with shown(out) as address:
        before, connections = len(site.requests), site.connections
        browser.go(address)
        browser.find("#state", "finished")
        browser.run("location.hash = '#/pages'")
        browser.find("main td.url a", "onerror").click()
        browser.find("iframe.copy")
        browser.go(str(browser.run("return document.querySelector('iframe.copy').src")))
        opened_at = time.monotonic()
        wait_for(lambda: time.monotonic() > opened_at + QUIET_S)
        assert not is_pwned(browser)
        assert browser.run("return window.origin") == "null"
        assert (site.requests[before:], site.connections) == ([], connections)
