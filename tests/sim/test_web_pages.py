"""What sites answer: real HTML, redirects, robots.txt, sitemaps, validators."""

from __future__ import annotations

import gzip
import re
from collections import Counter, defaultdict
from time import perf_counter

import pytest
from selectolax.lexbor import LexborHTMLParser

from gossamer.core.dedup.minhash import minhash
from gossamer.core.traps.novelty import LANES, WINDOW, PageMark, PageWindow
from gossamer.parse.html.html import parse_html
from gossamer.parse.text.fingerprint import text_fingerprint
from gossamer.sim.web.assets import head_of_pages, pictures_of
from gossamer.sim.web.pages import SyntheticWeb
from gossamer.sim.web.paths import PathKind, SitePath
from gossamer.sim.web.web import RobotsKind, Site, SitemapKind, WebPlan, preset

PORT = 8080


@pytest.fixture(scope="module")
def web() -> SyntheticWeb:
    return SyntheticWeb(preset("polite50", changing=0.5, compressed=0.5), PORT)


def sites_of(web: SyntheticWeb) -> list[Site]:
    return [site for index in range(web.plan.host_count) if (site := web.site(web.plan.host_name(index)))]


def pages_of(web: SyntheticWeb) -> list[tuple[Site, int]]:
    return [(site, number) for site in sites_of(web) for number in range(site.pages)]


def body_of(web: SyntheticWeb, site: Site, number: int) -> bytes:
    return web.answer(site.name, web.card(site, number).path).body


def test_the_html_carries_exactly_the_links_that_the_truth_follows(web: SyntheticWeb) -> None:
    for site, number in pages_of(web)[::50]:
        tree = LexborHTMLParser(body_of(web, site, number).decode())
        anchors = tree.css("a")
        followed = [a.attributes["href"] for a in anchors if a.attributes.get("rel") != "nofollow"]
        assert followed == web.hrefs(site, number)
        marked = [a.attributes["href"] for a in anchors if a.attributes.get("rel") == "nofollow"]
        assert all(site.is_disallowed(str(href)) for href in marked)


def test_a_page_has_title_language_description_headings_and_paragraphs(web: SyntheticWeb) -> None:
    site, number = pages_of(web)[5]
    tree = LexborHTMLParser(body_of(web, site, number).decode())
    assert all(tree.css(tag)[0].text() for tag in ("title", "h1"))
    assert str(tree.css("html")[0].attributes["lang"]) in ("en", "de", "fr")
    assert tree.css("meta[name=description]")[0].attributes["content"]
    assert len(tree.css("p")) >= 2


def test_the_pages_of_a_large_host_are_no_combinations_of_a_closed_set() -> None:
    web, window = SyntheticWeb(preset("plain", domains=500, pages=100_000), PORT), PageWindow()
    site = max(sites_of(web), key=lambda site: site.pages)
    assert site.pages > 2_000
    for number in range(site.pages):
        url, text = web.url(site, number), parse_html(body_of(web, site, number)).text.encode()
        mark = PageMark(text_fingerprint(text, url), minhash(text)[: 4 * LANES], len(text.split()))
        window.add(mark)
        if window.fetched >= WINDOW:
            assert window.is_new(), f"nothing new after {number} pages"
            window.restart(is_watched=True)


def test_pages_have_the_planned_size_and_number_of_links_in_the_mean(web: SyntheticWeb) -> None:
    sample = pages_of(web)[::10]
    mean_bytes = sum(len(body_of(web, *page)) for page in sample) / len(sample)
    mean_links = sum(len(web.hrefs(*page)) for page in sample) / len(sample)
    assert 8_000 < mean_bytes < 12_000
    assert 24 < mean_links < 36


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first, again = (SyntheticWeb(preset("small"), PORT) for _ in range(2))
    other = SyntheticWeb(preset("small", seed=2), PORT)
    home = ("site-00003.test", "/")
    assert first.answer(*home) == again.answer(*home)
    assert first.answer(*home).body != other.answer(*home).body


def test_copies_are_byte_for_byte_the_same_and_about_as_many_as_planned(web: SyntheticWeb) -> None:
    groups: defaultdict[bytes, list[tuple[Site, int]]] = defaultdict(list)
    for page in pages_of(web):
        groups[body_of(web, *page)].append(page)
    doubles = [pages for pages in groups.values() if len(pages) > 1]
    assert 0.01 * web.plan.pages < len(doubles) < 0.05 * web.plan.pages
    assert all(len(pages) == 2 and pages[0][0] is pages[1][0] for pages in doubles)
    for (site, one), (_, two) in doubles:
        assert (
            web.answer(site.name, web.card(site, one).path).etag == web.answer(site.name, web.card(site, two).path).etag
        )


def test_a_page_is_not_sent_again_to_who_has_it(web: SyntheticWeb) -> None:
    first = web.answer("site-00003.test", "/")
    assert web.answer("site-00003.test", "/", if_none_match=first.etag).status == 304
    assert web.answer("site-00003.test", "/", if_modified_since=first.last_modified).status == 304
    assert web.answer("site-00003.test", "/", if_none_match='"x"', if_modified_since=first.last_modified).status == 200


def test_changing_pages_change_with_the_epoch_and_their_links_do_not(web: SyntheticWeb) -> None:
    pages = pages_of(web)[:200]
    before = [web.answer(site.name, web.card(site, number).path) for site, number in pages]
    later = SyntheticWeb(web.plan, PORT)
    later.epoch = 1
    after = [later.answer(site.name, later.card(site, number).path) for site, number in pages]
    changed = [one.etag != two.etag for one, two in zip(before, after, strict=True)]
    assert changed == [one.body != two.body for one, two in zip(before, after, strict=True)]
    assert 50 < sum(changed) < 150
    assert all(web.hrefs(*page) == later.hrefs(*page) for page in pages)


def test_redirects_of_all_four_kinds_end_at_a_page_within_two_hops(web: SyntheticWeb) -> None:
    statuses: Counter[int] = Counter()
    hops: Counter[int] = Counter()
    for site, number in pages_of(web):
        card = web.card(site, number)
        if card.href == card.path:
            continue
        target, count = card.href, 0
        while (answer := web.answer(site.name, target)).status != 200:
            statuses[answer.status] += 1
            target, count = answer.location, count + 1
        assert target == card.path
        hops[count] += 1
    assert set(statuses) == {301, 302, 307, 308}
    assert set(hops) == {1, 2}


def test_some_redirects_lead_to_other_hosts(web: SyntheticWeb) -> None:
    site = sites_of(web)[0]
    answer = web.answer(site.name, "/away/3")
    assert answer.status in (301, 302, 307, 308)
    assert re.fullmatch(r"http://site-\d{5}\.test:8080/", answer.location)
    assert web.redirect_target(site, SitePath(PathKind.PAGE, 3)) == ""


def test_robots_txt_says_what_the_plan_knows() -> None:
    web = SyntheticWeb(WebPlan(domains=40, pages=200, crawl_delays=0.5, sitemaps=0.5), PORT)
    for site in sites_of(web):
        answer = web.answer(site.name, "/robots.txt")
        text = answer.body.decode()
        assert (answer.status == 404) == (site.robots is RobotsKind.MISSING)
        assert ("Disallow: /private/" in text) == site.is_disallowed("/private/1") == site.is_disallowed("/search?q=1")
        assert ("Crawl-delay: 0.2" in text) == (site.crawl_delay_s == 0.2)
        assert ("Sitemap: http" in text) == (site.sitemap is not SitemapKind.NONE)
        assert not site.is_disallowed("/private/open/1.html")


def test_sitemaps_list_every_page_plain_or_packed_behind_an_index() -> None:
    web = SyntheticWeb(WebPlan(domains=10, pages=200, sitemaps=1.0, robots_missing=0.0), PORT)
    for site in sites_of(web):
        if site.sitemap is SitemapKind.PLAIN:
            text = web.answer(site.name, "/sitemap.xml").body.decode()
        else:
            index = web.answer(site.name, "/sitemap-index.xml").body.decode()
            assert f"<loc>http://{site.name}:{PORT}/sitemap-pages.xml.gz</loc>" in index
            text = gzip.decompress(web.answer(site.name, "/sitemap-pages.xml.gz").body).decode()
        found = {url.replace("&amp;", "&") for url in re.findall("<loc>(.*?)</loc>", text)}
        assert found == {web.url(site, number) for number in range(site.pages)}


@pytest.mark.parametrize(
    ("target", "status", "kind"),
    [
        ("/missing/1", 404, "text/html"),
        ("/gone/1", 410, "text/html"),
        ("/nothing", 404, "text/html"),
        ("/p/999999.html", 404, "text/html"),
        ("/img/1.png", 200, "image/png"),
        ("/files/1.pdf", 200, "application/pdf"),
        ("/private/1", 200, "text/html"),
    ],
)
def test_other_paths_answer_as_they_should(web: SyntheticWeb, target: str, status: int, kind: str) -> None:
    answer = web.answer("site-00003.test", target)
    assert (answer.status, answer.content_type.partition(";")[0]) == (status, kind)


def test_hosts_out_of_order_answer_so() -> None:
    web = SyntheticWeb(WebPlan(domains=4, pages=10, erring=0.25, robots_down=0.25), PORT)
    pairs = Counter(
        (web.answer(site.name, "/robots.txt").status >= 500, web.answer(site.name, "/").status)
        for site in sites_of(web)
    )
    assert pairs == {(False, 200): 2, (True, 500): 1, (True, 200): 1}
    assert web.answer("elsewhere.test", "/").status == 404


def test_compressed_hosts_pack_for_who_can_unpack(web: SyntheticWeb) -> None:
    site = next(site for site in sites_of(web) if site.is_compressed)
    packed = web.answer(site.name, "/", accepts_gzip=True)
    assert packed.encoding == "gzip"
    assert gzip.decompress(packed.body) == web.answer(site.name, "/").body


def test_a_page_is_rendered_in_well_under_a_millisecond(web: SyntheticWeb) -> None:
    targets = [(site.name, web.card(site, number).path) for site, number in pages_of(web)]
    started = perf_counter()
    for host, path in targets:
        web.answer(host, path)
    # 32 µs on an idle core of 2020; ten times that allows for a busy one.
    assert (perf_counter() - started) / len(targets) < 0.000_5


def test_pages_of_a_styled_web_need_what_it_says_and_others_are_as_before() -> None:
    plan = preset("styled")
    web, plain = SyntheticWeb(plan, PORT), SyntheticWeb(preset("styled", styled=False), PORT)
    host = plan.host_name(0)
    page, before = web.answer(host, "/").body.decode(), plain.answer(host, "/").body.decode()
    assert page.replace(head_of_pages(), "").replace(pictures_of(plan, 0, PORT), "") == before
    for url in web.requisites([f"http://{host}:{PORT}/"]):
        name, _, path = url.removeprefix("http://").partition("/")
        answer = web.answer(name.partition(":")[0], f"/{path}")
        assert (answer.status, bool(answer.body)) == (200, True)
        assert url in page or f"/{path}" in page or path in {"assets/type.css", "assets/back.png", "assets/head.png"}
    assert plain.answer(host, "/assets/site.css").status == 404
