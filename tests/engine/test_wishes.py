"""What pages, headers and robots.txt ask of those who use the content is recorded; dates of sitemaps too."""

from __future__ import annotations

from gossamer.core.url.forms import link_to, url_id
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import EventName
from gossamer.model.exchanges import Exchange
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.runtime.workers.answers import WorkerRules, read_answer
from gossamer.sim.scenarios import ImaginedHost, ImaginedSites, Scenario

PAGE = "http://h.test/"


def _task(kind: FetchKind = FetchKind.PAGE) -> FetchTask:
    return FetchTask(1, kind, PAGE, b"", "h.test", (), 0, 0, 0, 0.0)


def _read(content: bytes, kind: FetchKind = FetchKind.PAGE, **headers: str) -> Result:
    fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
    exchange = Exchange(PAGE, Outcome.OK, status=200, headers=fields, body=content, content=content)
    return read_answer(_task(kind), exchange, WorkerRules())


def test_directives_and_preferences_of_a_page_are_read() -> None:
    html = b"<!DOCTYPE html><meta name=robots content='noindex, nocache'><a href=/1>1</a>"
    result = _read(html, content_type="text/html", content_signal="ai-train=no", x_robots_tag="noai")
    assert result.directives == "noindex, noarchive"
    assert result.usage == "content-signal: ai-train=no; x-robots-tag: noai"
    assert [link.url for link in result.links] == ["http://h.test/1"], "noindex does not mean nofollow"


def test_dates_of_a_sitemap_are_read() -> None:
    xml = b"<urlset><url><loc>http://h.test/1</loc><lastmod>2026-01-02</lastmod></url><url><loc>/2</loc></url></urlset>"
    result = _read(xml, FetchKind.SITEMAP)
    assert result.lastmods == {url_id("http://h.test/1"): "2026-01-02"}


def test_pages_of_a_sitemap_arrive_newest_first() -> None:
    dates = {"/old": "2020-02-03", "/undated": "", "/new": "2026-05-01T10:00:00Z", "/other": ""}
    entries = "".join(
        f"<url><loc>http://h.test{path}</loc><lastmod>{date}</lastmod></url>" for path, date in dates.items()
    )
    result = _read(f"<urlset>{entries}</urlset>".encode(), FetchKind.SITEMAP)
    assert [link.url[13:] for link in result.links] == ["/new", "/old", "/undated", "/other"]


def _site(task: FetchTask, _now: float) -> Result | None:
    if task.kind is not FetchKind.SITEMAP:
        return None
    links = [link_to("http://h.test/listed")]
    return Result(task.id, Outcome.OK, status=200, links=links, lastmods={links[0].id: "2026-01-02"})


def _crawl(*, reads_sitemaps_first: bool = False) -> tuple[Scenario, list[str]]:
    robots = b"User-agent: *\nContent-Signal: search=yes\nSitemap: http://h.test/s.xml\n"
    web = ImaginedSites({"h.test": ImaginedHost(pages=6, fanout=6, robots=robots, says=_site)})
    scenario = Scenario(web, [PAGE], rules=CrawlRules(reads_sitemaps_first=reads_sitemaps_first))
    web.hosts["h.test"].status = lambda url, _now: 404 if url.endswith("listed") else 200
    _, _, driver = scenario.run()
    return scenario, [request.url.removeprefix("http://h.test") for request in driver.requests]


def test_preferences_of_robots_stand_with_each_page() -> None:
    scenario, _ = _crawl()
    row = scenario.ledger.look_up(url_id(PAGE))
    assert row is not None
    assert row.usage == "content-signal: search=yes"
    told = [event.usage for event in scenario.events if event.event is EventName.FETCH_OK]
    assert set(told) == {"content-signal: search=yes"}


def test_what_a_sitemap_lists_keeps_its_date() -> None:
    scenario, _ = _crawl()
    row = scenario.ledger.look_up(url_id("http://h.test/listed"))
    assert row is not None
    assert row.lastmod == "2026-01-02"


def test_sitemaps_come_first_if_requested() -> None:
    _, mixed = _crawl()
    _, first = _crawl(reads_sitemaps_first=True)
    assert first[:3] == ["/robots.txt", "/s.xml", "/listed"]
    assert mixed[:2] == ["/robots.txt", "/"]
    assert set(mixed) == set(first)
