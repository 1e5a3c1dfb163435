"""`gossamer plan`: a few polite requests, or none, and an estimate."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

import pytest

from gossamer.cli.start.plan import MAX_ASKED
from tests.reading.folders import said

ROBOTS = "User-agent: *\nCrawl-delay: 0.4\nDisallow: /private/\nSitemap: http://{host}/map.xml\n"
MAP = "<urlset>{}</urlset>".format("".join(f"<url><loc>http://x.test/{n}</loc></url>" for n in range(70)))


class Site(http.server.BaseHTTPRequestHandler):
    """A host with robots.txt and a sitemap, which records what it is asked."""

    asked: ClassVar[list[tuple[str, float]]] = []
    robots: ClassVar[str] = ROBOTS

    def do_GET(self) -> None:
        self.asked.append((self.path, time.monotonic()))
        texts = {"/robots.txt": self.robots.format(host=self.headers["Host"]), "/map.xml": MAP}
        body = texts.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Be silent."""


@pytest.fixture
def site() -> Iterator[str]:
    Site.asked.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_a_request_that_could_not_be_sent_is_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:  # bound, and nobody listens
        unused.bind(("127.0.0.1", 0))
        _, out, _ = said(capsys, "plan", f"http://127.0.0.1:{unused.getsockname()[1]}/", "-n", "50", "--json")
    assert json.loads(out)["requests"] == 0


def test_a_host_is_asked_politely_and_its_pace_counts(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = said(capsys, "plan", site, "--politeness-ms", "100", "-n", "50", "--json")
    assert (status, err) == (0, "")
    plan = json.loads(out)
    (host,) = plan["hosts"]
    assert (host["crawl_delay_s"], host["delay_s"], host["sitemap_urls"]) == (0.4, 0.4, 70)
    assert plan["forecast"]["seconds"] == pytest.approx(20.0, rel=0.2)
    assert plan["requests"] == 2
    assert [path for path, _ in Site.asked] == ["/robots.txt", "/map.xml"]
    assert all(later - before >= 0.39 for (_, before), (_, later) in pairwise(Site.asked))


def test_a_sitemap_is_fetched_only_if_the_rules_of_its_origin_are_known_and_allow_it(
    site: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = site.rpartition(":")[2]
    elsewhere = f"Sitemap: http://localhost:{port}map.xml\nSitemap: http://{{host}}/private/map.xml\n"
    monkeypatch.setattr(Site, "robots", f"User-agent: *\nDisallow: /private/\n{elsewhere}")
    status, out, _ = said(capsys, "plan", site, "--politeness-ms", "0", "--json")
    (host,) = json.loads(out)["hosts"]
    assert (status, host["sitemaps"], host["sitemap_urls"]) == (0, 2, None)
    assert [path for path, _ in Site.asked] == ["/robots.txt"]


def test_all_hosts_are_in_the_plan_and_asked_if_that_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:  # bound, and nobody listens: at no address of loopback
        unused.bind(("127.0.0.1", 0))
        seeds = [f"http://127.0.1.{n}:{unused.getsockname()[1]}/" for n in range(1, MAX_ASKED + 4)]
        for more, asked in (((), MAX_ASKED), (("--all-hosts",), len(seeds)), (("--offline",), len(seeds))):
            status, out, err = said(capsys, "plan", *seeds, "-n", "5", "--json", *more)
            plan = json.loads(out)
            assert (len(plan["hosts"]), plan["totals"]["hosts"]) == (len(seeds), len(seeds)), err
            assert (plan["totals"]["asked"], plan["hosts_not_asked"]) == (asked, len(seeds) - asked)
            assert status == (1 if "--all-hosts" in more else 0)  # none of them can be reached


def test_offline_nothing_is_asked(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "plan", site, "--offline", "--politeness-ms", "2000", "-n", "100")
    assert status == 0
    assert Site.asked == []
    assert "not asked (--offline)" in out
    assert "about 3 min for 100 pages (--max-pages)" in out
    assert "0 were made for this plan" in out


def test_a_seed_that_is_forbidden_is_told(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "plan", f"{site}private/x", "--politeness-ms", "0")
    assert status == 1
    assert "robots.txt forbids the seed, in line 3: Disallow: /private/" in out
    assert "no seed host can be crawled" in out


def test_a_host_that_does_not_answer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "plan", "http://127.0.0.1:9/", "--politeness-ms", "0")
    assert status == 1
    assert "robots.txt cannot be reached (connect_failed" in out
    status, out, _ = said(capsys, "plan", "http://127.0.0.1:9/", "--robots-unreachable", "allow")
    assert status == 0
    assert "as if there were none" in out


def test_the_options_of_a_crawl_are_taken_and_bad_ones_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(
        capsys, "plan", "http://127.0.0.1/", "--offline", "--scope", "host", "-o", "x", "--workers", "2"
    )
    assert (status, err) == (0, "")
    assert said(capsys, "plan")[0] == 2
    status, _, err = said(capsys, "plan", "http://127.0.0.1/", "--offline", "--max-pages", "many")
    assert status == 2
    assert "many" in err
