"""The plan: exact totals, stable names, and a truth that a browser's rules would find too."""

from __future__ import annotations

from collections import Counter
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.sim.web.pages import SyntheticWeb
from gossamer.sim.web.paths import PathKind
from gossamer.sim.web.spread import owner_of, permute, share, unpermute
from gossamer.sim.web.truth import find_truth, resolve
from gossamer.sim.web.web import PRESETS, Health, RobotsKind, SitemapKind, WebPlan, preset

PORT = 8080


@given(st.integers(1, 300), st.integers(0, 2**64), st.text(max_size=5))
def test_a_permutation_visits_every_index_once_and_can_be_undone(count: int, seed: int, salt: str) -> None:
    places = [permute(index, count, seed, salt) for index in range(count)]
    assert sorted(places) == list(range(count))
    assert [unpermute(place, count, seed, salt) for place in places] == list(range(count))


@given(st.integers(0, 5000), st.integers(1, 100), st.floats(0.1, 1.0))
def test_shares_add_up_to_the_total_and_every_item_has_its_owner(total: int, count: int, tail: float) -> None:
    shares = [share(total, count, tail, rank) for rank in range(count)]
    assert sum(shares) == total
    owners = Counter(owner_of(item, total, count, tail) for item in range(total))
    assert [owners[rank] for rank in range(count)] == shares


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "broad"])
def test_the_pages_that_can_be_found_from_all_homes_are_exactly_as_many_as_planned(name: str) -> None:
    plan = preset(name)
    truth = find_truth(SyntheticWeb(plan, PORT), plan.seeds(PORT))
    assert len(truth.pages) == plan.pages


def test_any_one_working_host_leads_to_the_whole_web() -> None:
    plan = preset("small")
    truth = find_truth(SyntheticWeb(plan, PORT), plan.seeds(PORT, 1), "any")
    assert len(truth.pages) == plan.pages


def test_without_sitemaps_and_beyond_the_depth_less_is_found() -> None:
    web = SyntheticWeb(preset("small"), PORT)
    seeds = web.plan.seeds(PORT)
    assert len(find_truth(web, seeds, sitemaps=False).pages) < web.plan.pages
    assert len(find_truth(web, seeds, sitemaps=False, max_depth=0).pages) == web.plan.host_count


def test_five_hundred_seeds_of_the_broad_web_reach_ten_thousand_domains_in_two_steps() -> None:
    web = SyntheticWeb(preset("broad", page_bytes=1000), PORT)
    truth = find_truth(web, web.plan.seeds(PORT, 500), "any", max_depth=2, sitemaps=False)
    assert len({url.split("/")[2] for url in truth.pages}) >= 10_000


def test_names_lead_back_to_their_hosts_and_no_host_is_named_twice() -> None:
    plan = WebPlan(domains=30, hosts=80, pages=200, suffixes=("test", "example"))
    names = [plan.host_name(index) for index in range(80)]
    assert len(set(names)) == 80
    assert [plan.index_of(name) for name in names] == list(range(80))
    sites = [plan.site(name) for name in names]
    assert len({site.domain for site in sites if site}) == 30
    assert sum(name.startswith("www.") for name in names) > 3


@pytest.mark.parametrize("name", ["", "test", "site-00030.test", "www.site-1.test", "h99.site-00001.test", "1.2.3.4"])
def test_other_names_are_not_part_of_the_web(name: str) -> None:
    assert WebPlan(domains=30, pages=100).site(name) is None


def test_every_domain_has_an_address_of_its_own_on_loopback() -> None:
    plan = WebPlan(domains=20_000, pages=20_000)
    addresses = {plan.address(domain) for domain in range(plan.domains)}
    assert len(addresses) == 20_000
    assert all(address.startswith("127.") for address in addresses)
    assert WebPlan(domains=10, pages=10, domains_per_address=5).address(7) != plan.address(7)


def test_shares_of_hosts_are_exact() -> None:
    plan = WebPlan(
        domains=200, pages=2000, closed=0.05, erring=0.1, robots_down=0.05, robots_missing=0.1, robots_rules=0.5
    )
    sites = [site for index in range(200) if (site := plan.site(plan.host_name(index)))]
    health = Counter(site.health for site in sites)
    assert health == {Health.WELL: 160, Health.CLOSED: 10, Health.ERRING: 20, Health.ROBOTS_DOWN: 10}
    robots = Counter(site.robots for site in sites if site.is_available)
    assert (robots[RobotsKind.MISSING], robots[RobotsKind.RULES]) == (16, 80)
    assert sum(site.pages for site in sites if site.is_available) == 2000


def test_a_web_of_a_million_domains_starts_at_once() -> None:
    started = perf_counter()
    web = SyntheticWeb(WebPlan(domains=1_000_000, hosts=1_200_000, pages=5_000_000), PORT)
    assert web.answer("site-777777.test", "/robots.txt").status in (200, 404)
    assert perf_counter() - started < 0.5


def test_a_plan_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="hosts must be >= domains"):
        WebPlan(domains=10, hosts=5)
    with pytest.raises(ValueError, match="pages=5"):
        WebPlan(domains=10, pages=5)
    with pytest.raises(ValueError, match="no preset 'huge'"):
        preset("huge")


def test_every_page_is_found_at_its_path_and_its_path_only() -> None:
    web = SyntheticWeb(preset("polite50"), PORT)
    for index in range(0, 50, 7):
        site = web.site(web.plan.host_name(index))
        assert site is not None
        paths = [web.card(site, number).path for number in range(site.pages)]
        assert len(set(paths)) == site.pages
        for number, path in enumerate(paths):
            mark = "&" if "?" in path else "?"
            for target in (path, f"{path}{mark}utm_source=x&utm_medium=y"):
                resource = web.route(site, target)
                assert (resource.kind, resource.number) == (PathKind.PAGE, number)
            assert number == 0 or web.route(site, path + "x").kind is PathKind.MISSING
            assert not site.is_disallowed(path)


@pytest.mark.parametrize(
    ("href", "place"),
    [
        ("/p/1.html", ("a.test", "/p/1.html")),
        ("//B.test:8080/x", ("b.test", "/x")),
        ("http://B.TEST:8080/", ("b.test", "/")),
        ("http://b.test:8080", ("b.test", "/")),
        ("../../../p/2.html#s", ("a.test", "/p/2.html")),
        ("/nowhere/../p/3.html", ("a.test", "/p/3.html")),
        ("/s?id=1&b=2#x", ("a.test", "/s?id=1&b=2")),
        ("http://b.test/", None),
        ("mailto:a@b.test", None),
        ("javascript:void(0)", None),
    ],
)
def test_links_are_resolved_as_a_browser_does(href: str, place: tuple[str, str] | None) -> None:
    assert resolve("a.test", PORT, "/docs/x/5/", href) == place


def test_only_leaves_are_hidden_and_hidden_pages_are_linked_from_nowhere() -> None:
    web = SyntheticWeb(preset("polite50", sitemap_only=0.5), PORT)
    sites = [site for index in range(50) if (site := web.site(web.plan.host_name(index)))]
    listed = next(site for site in sites if site.sitemap is SitemapKind.INDEX)
    cards = [web.card(listed, number) for number in range(listed.pages)]
    hidden = {card.path for card in cards if card.is_hidden}
    assert len(hidden) > 5
    assert all(card.is_leaf for card in cards if card.is_hidden)
    assert not hidden & {href for number in range(listed.pages) for href in web.hrefs(listed, number)}
