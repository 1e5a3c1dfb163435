"""A number that is shown twice is the same number: in the summary, the status, the report's JSON, page and text."""

from __future__ import annotations

import html
import json
import re
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.model.figures import RequisiteCounts
from gossamer.sim.web.web import preset
from gossamer.telemetry.summary import Summary, requisites_text
from gossamer.telemetry.text import agreeing, count, duration, percent, plural, size
from tests.e2e.program import crawl_options, run, start, summary_of
from tests.e2e.test_cluster import Nodes
from tests.servers.redis import RedisServer
from tests.servers.web import RunningWeb

SHOWN = {  # names in the summary, and in the status if they are there
    *("pages", "fetches", "errors", "error_rate", "bytes", "seconds", "pages_per_second", "unique_domains"),
    *("urls_seen", "urls_queued", "urls_parked", "finished", "held", "held_dropped", "evicted", "requisites"),
}


# Hosts that refuse or do not answer are not waited for.
QUICK = ("--retry-wait", "0.05", "--timeout", "1", "--max-wait", "1")


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    """Errors, redirects, disallowed URLs, copies, a host without robots.txt, hosts that are down."""
    with RunningWeb(preset("rough", domains=14, hosts=20, pages=260, slow=0.0, strict=0.1)) as web:
        yield web


def crawled(web: RunningWeb, out: Path, *more: str) -> dict[str, Any]:
    command = ["crawl", *web.seeds(), *crawl_options(web, out, 10), *QUICK, *more]
    done = run(*command)
    assert done.returncode == 0, done.stderr
    return summary_of(done.stdout)


def total(counts: Sequence[dict[str, Any]]) -> int:
    return sum(one["count"] for one in counts)


class Page:
    """What the page of a report shows: its tiles, and the tables and first lines of its cards."""

    def __init__(self, text: str) -> None:
        self._text = text
        tile = r'class="name">([^<]*)</span><b>([^<]*)</b><span>([^<]*)<'
        self.tiles = {name: f"{value}; {note}" for name, value, note in re.findall(tile, text)}

    def card(self, title: str) -> str:
        start = self._text.index(f"<h3>{html.escape(title, quote=False)}</h3>")
        return self._text[start:].partition('<div class="card">')[0]

    def sum_of(self, title: str) -> int:
        """Return the sum of a card's first column of numbers."""
        rows = re.findall(r"<tr>(<td.*?)</tr>", self.card(title))
        return sum(int(re.findall(r'<td class="n">([\d,]+)<', row)[0].replace(",", "")) for row in rows)


def check_json(summary: dict[str, Any], report: dict[str, Any]) -> None:
    last, fetches, corpus, left = report["timeline"][-1], report["fetches"], report["corpus"], report["left"]
    urls = {one["name"]: one["count"] for one in report["urls"]}
    assert report["summary"] == summary
    pages = {
        "depths": sum(corpus["depths"]),
        "types": total(corpus["content_types"]),
        "languages": total(corpus["languages"]),
        "sources": total(corpus["sources"]),
        "sizes": total(corpus["sizes"]),
        "timeline": last["pages"],
        "urls": urls.get("page", 0),
        "domains": total(corpus["domains"]),
    }
    assert set(pages.values()) == {summary["pages"]}, pages
    assert total(fetches["outcomes"]) == summary["fetches"]
    assert total(fetches["errors"]) == last["errors"] == summary["errors"]
    assert total(corpus["pages_per_domain"]) == last["domains"] == summary["unique_domains"]
    assert report["hosts"]["with_pages"] == summary["unique_hosts"]
    assert total(left["dead"]) == urls.get("dead letter", 0) == summary["dead"]
    disallowed = (
        report["robots"]["disallowed"],
        total(report["robots"]["rules"]),
        urls.get("forbidden by robots.txt", 0),
    )
    assert set(disallowed) == {summary["robots_disallowed"]}
    assert (corpus["duplicates"], corpus["near_duplicates"]) == (summary["duplicates"], summary["near_duplicates"])
    queued = left["queued"], sum(left["queued_by_depth"]), last["queued"], urls.get("queued", 0)
    assert set(queued) == {summary["urls_queued"]}
    assert sum(urls.values()) == summary["urls_seen"]
    assert urls.get("redirect", 0) <= fetches["redirects"]
    assert total(report["robots"]["answers"]) == report["robots"]["fetched"] + report["robots"]["unreachable"]
    assert {one["name"]: one["count"] for one in left["held"]} == summary["held"]
    assert (left["held_dropped"], left["evicted"]) == (summary["held_dropped"], summary["evicted"])
    check_requisites(summary["requisites"], report["requisites"])
    assert last["t_s"] == summary["seconds"] >= report["hosts"]["longest"][0]["min_s"]


def check_requisites(summary: dict[str, int] | None, found: dict[str, Any] | None) -> None:
    """Compare the totals of requisites with the rows of the catalog."""
    if summary is None or found is None:
        assert summary is found is None
        return
    assert {name: found[name] for name in ("stored", "queued", "denied", "refused", "cut")} == {
        name: summary[name] for name in ("stored", "queued", "denied", "refused", "cut")
    }
    assert total(found["failed"]) == summary["failed"]
    assert total(found["content_types"]) == summary["stored"]
    assert total(found["rules"]) == summary["denied"]


def check_page(summary: dict[str, Any], report: dict[str, Any], text: str) -> None:
    page, s = Page(text), summary
    assert page.tiles == {
        "pages": f"{count(s['pages'])}; {s['pages_per_second']:.1f} per second, {percent(s['html_share'])} HTML",
        "domains": f"{count(s['unique_domains'])}; {count(s['unique_hosts'])} hosts with pages",
        "fetches": f"{count(s['fetches'])}; {size(s['bytes'])} received",
        "errors": f"{count(s['errors'])}; {percent(s['error_rate'])} of fetches, {plural(s['dead'], 'URL')} given up",
        "forbidden by robots.txt": f"{count(s['robots_disallowed'])}; {count(report['robots']['fetched'])} files read",
        "duplicates": f"{count(s['duplicates'])}; {plural(s['near_duplicates'], 'near duplicate')}",
        "URLs known": f"{count(s['urls_seen'])}; {count(s['urls_queued'])} queued, {count(s['urls_parked'])} parked",
        "time": f"{duration(s['seconds'])}; {msgspec.convert(s, Summary).cpu_text()}",
    }
    assert page.sum_of("Content types") == page.sum_of("Languages declared") == s["pages"]
    assert page.sum_of("How pages were found") == page.sum_of("Largest domains") == s["pages"]
    assert page.sum_of("Pages per domain") == s["unique_domains"]
    assert page.sum_of("Errors by kind") == s["errors"]
    assert page.sum_of("Rules that forbade URLs") == s["robots_disallowed"]
    assert page.sum_of("What became of the URLs") == s["urls_seen"]
    assert f"{count(s['urls_seen'])} URLs are known" in page.card("What became of the URLs")
    assert f"{plural(s['robots_disallowed'], 'URL')} forbidden" in page.card("robots.txt")
    copies = agreeing(s["duplicates"], "page", "has", "have")
    assert f"{copies} the content of another" in page.card("How pages were found")
    assert f"{count(s['unique_hosts'])} with pages" in page.card("Most errors")
    if s["urls_queued"]:
        assert f"{agreeing(s['urls_queued'], 'URL')} queued" in page.card("The hosts that take the longest")
    if s["requisites"] is not None:
        assert requisites_text(RequisiteCounts(**s["requisites"])) in page.card("What pages need to be shown")
    no_answer = re.findall(r"no HTTP answer: ([\d,]+)", page.card("Status"))
    answered = page.sum_of("Status")
    assert answered + int(no_answer[-1].replace(",", "")) == s["fetches"]


def check_text(summary: dict[str, Any], text: str) -> None:
    s = summary
    for shown in (
        f"pages     {count(s['pages'])} ",
        f"fetches   {count(s['fetches'])}  ({plural(s['errors'], 'error')}, {percent(s['error_rate'])})",
        f"hosts     {count(s['unique_hosts'])}  ({plural(s['unique_domains'], 'registrable domain')})",
        f"URLs      {count(s['urls_seen'])} known, {count(s['urls_queued'])} queued, {count(s['urls_parked'])} parked",
        f"Over time ({duration(s['seconds'])} of crawling)",
        f"{plural(s['robots_disallowed'], 'URL')} forbidden",
        f"duplicates    {count(s['duplicates'])}; near duplicates {count(s['near_duplicates'])}",
        f"{count(s['unique_hosts'])} with pages",
        f"page: {count(s['pages'])}, ",
    ):
        assert shown in text, shown
    if s["requisites"] is not None:
        assert f"needed    {requisites_text(RequisiteCounts(**s['requisites']))}" in text


def check(place: str, summary: dict[str, Any], folder: Path, *, is_cluster: bool = False) -> None:
    """Compare everything that shows a crawl."""
    report = json.loads(run("report", place, "--json").stdout)
    page = folder / "again.html"
    assert run("report", place, "--html", str(page)).returncode == 0
    if is_cluster:  # its report is made from outside, without what only a node knows of itself
        own = {"seconds", "pages_per_second", "urls_parked", "finished"}
        summary = {**report["summary"], **{name: summary[name] for name in SHOWN - own}}
    else:
        check_json(summary, json.loads((folder / "report.json").read_text()))
        check_page(summary, report, (folder / "report.html").read_text())
    check_json(summary, report)
    check_page(summary, report, page.read_text())
    check_text(summary, run("report", place).stdout)
    status = json.loads(run("status", place, "--json").stdout)
    different = {name for name in SHOWN & set(status) & set(summary) if status[name] != summary[name]}
    assert not different, {name: (status[name], summary[name]) for name in different}


def test_numbers_agree_on_a_crawl_with_errors_redirects_rules_and_copies(web: RunningWeb, tmp_path: Path) -> None:
    summary = crawled(web, tmp_path / "c")
    assert min(summary[name] for name in ("errors", "dead", "robots_disallowed", "duplicates", "urls_parked")) > 0
    check(str(tmp_path / "c"), summary, tmp_path / "c")


@pytest.mark.parametrize("limit", [("--max-pages", "90"), ("--max-pages-per-host", "6"), ("--max-queued", "60")])
def test_numbers_agree_on_a_crawl_that_left_something(web: RunningWeb, tmp_path: Path, limit: tuple[str, str]) -> None:
    summary = crawled(web, tmp_path / "c", *limit)
    assert summary["urls_queued"] + summary["evicted"] > 0
    check(str(tmp_path / "c"), summary, tmp_path / "c")


STYLED = preset("styled", domains=6, pages=90, redirects=0.1)


@pytest.mark.parametrize("limit", [(), ("--max-pages", "30"), ("--max-requisites-per-page", "4")])
def test_numbers_agree_on_a_crawl_with_requisites(tmp_path: Path, limit: tuple[str, ...]) -> None:
    with RunningWeb(STYLED) as web:
        excluded = ("--exclude-pattern", "/assets/back", "--block-host", web.web.plan.host_name_at(0))
        summary = crawled(web, tmp_path / "c", "--requisites", *excluded, *limit)
        assert summary["requisites"]["stored"] > 10
        assert summary["requisites"]["refused"] > 0
        assert summary["requisites"]["queued"] == 0
        assert (summary["requisites"]["cut"] > 0) == ("--max-requisites-per-page" in limit)
        check(str(tmp_path / "c"), summary, tmp_path / "c")


def test_numbers_agree_on_a_crawl_that_was_stopped_with_requisites_queued(tmp_path: Path) -> None:
    out = tmp_path / "c"
    with RunningWeb(STYLED) as web:
        crawl = start("crawl", *web.seeds(), *crawl_options(web, out, 400), *QUICK, "--requisites")
        wait_for_pages(out, 30)
        assert run("stop", str(out)).returncode == 0
        summary = summary_of(crawl.communicate(timeout=60)[0])
    assert summary["requisites"]["stored"] > 0
    assert summary["requisites"]["queued"] > 0
    check(str(out), summary, out)


def test_numbers_agree_after_two_kills(web: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "c"
    for pages in (40, 120):
        killed = start(
            "crawl",
            *web.seeds(),
            *crawl_options(web, out, 10),
            *QUICK,
            "--workers",
            "2",
        )
        wait_for_pages(out, pages)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    summary = crawled(web, out, "--workers", "2")
    assert summary["pages"] > 120
    check(str(out), summary, out)


def wait_for_pages(out: Path, pages: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        files = (out / "events").glob("*.jsonl")
        if sum(path.read_bytes().count(b'"event":"fetch_ok"') for path in files) >= pages:
            return
        time.sleep(0.02)
    raise AssertionError(f"no {pages} pages within a minute")


@pytest.mark.parametrize("limit", [(), ("--max-pages", "60", "--max-wait", "300")])
def test_numbers_agree_on_two_nodes(
    web: RunningWeb, server: RedisServer, tmp_path: Path, limit: tuple[str, ...]
) -> None:
    # A host that fails stays parked until after the last verb: whether it is parked is asked again by each.
    nodes = Nodes(web, server, tmp_path, more=[*QUICK, "--retry-wait", "60", *limit])
    web.forget()
    nodes.start("n0", "n1")
    summary, other = nodes.end("n0"), nodes.end("n1")
    check(nodes.url, summary, tmp_path, is_cluster=True)
    assert not other or summary["urls_queued"] == other["urls_queued"]  # one that came after the end says nothing
    assert (int(str(summary["urls_queued"])) > 50) == bool(limit)


def test_the_ledger_of_nodes_says_what_is_over_budget_and_how_long_the_rest_takes(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    nodes = Nodes(web, server, tmp_path, more=[*QUICK, "--max-pages-per-host", "6"])
    nodes.start("n0", "n1")
    summary = nodes.end("n0")
    nodes.end("n1")
    status = json.loads(run("status", nodes.url, "--json").stdout)
    hosts = json.loads(run("hosts", nodes.url, "--json").stdout)["hosts"]
    assert status["urls_queued"] == int(str(summary["urls_queued"])) > 0
    over = sum(host["queued"] for host in hosts if host["pages"] >= 6)
    assert status["urls_over_budget"] >= over > 0
    assert {host["place"] for host in hosts if host["queued"] and host["pages"] >= 6} == {"over_budget"}
    assert all(host["time_left_s"] == 0 for host in hosts if host["place"] == "over_budget")
    assert "over budget and not fetched" in status["forecast"]["text"]
    assert f"{count(status['urls_over_budget'])} over budget" in run("status", nodes.url).stdout
