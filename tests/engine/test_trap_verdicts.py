"""Which sections are held, how many pages does each take, and is an honest one ever incomplete? In virtual time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gossamer.core.dedup.minhash import minhash
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.tables import HELD, QUARANTINES
from gossamer.core.traps.quarantine import BUDGET
from gossamer.core.traps.watch import TURNS
from gossamer.core.url.forms import link_to, path_of
from gossamer.model.events import EventName
from gossamer.model.records import FetchKind, Outcome, Result
from gossamer.parse.text.fingerprint import number_fingerprint, short_fingerprint, text_fingerprint
from tests.engine.test_crawl import Bench
from tests.support.sites.trap_sites import HONEST, TRAPS, Site, prose, turning

HOST = "http://a.test"
LIMITS = FrontierLimits(max_depth=100_000)
Drawn = tuple[str, list[str]]  # a page's text, and the paths that it leads to
Draw = Callable[[str], Drawn]


class Walk:
    """A crawl of one host whose pages are drawn when they are asked for."""

    def __init__(self, draw: Draw, *seeds: str, is_prose: bool = True) -> None:
        self._draw = draw
        self._is_prose = is_prose
        self.bench = Bench(*(HOST + seed for seed in seeds or ("/",)), limits=LIMITS, delay_s=0.0)
        self.fetched: list[str] = []

    def run(self, max_pages: int = 5000) -> list[str]:
        """Crawl until nothing is left; return the paths in order."""
        while len(self.fetched) < max_pages:
            tasks = self.bench.tasks(after_s=0.001)
            if not tasks and self.bench.crawl.why_over(self.bench.now, 0.0) is not None:
                return self.fetched
            for task in tasks:
                if task.kind is FetchKind.ROBOTS:
                    self.bench.end(task)
                else:
                    self._answer(task.id, task.url)
        raise AssertionError(f"it goes on after {max_pages} pages")

    def _answer(self, task_id: int, url: str) -> None:
        path = path_of(url)
        if path.endswith("-no-such-page"):
            self.bench.crawl.complete(Result(task_id, Outcome.CLIENT_ERROR, status=404), self.bench.now)
            return
        self.fetched.append(path)
        text, paths = self._draw(path)
        data, links = text.encode(), [link_to(HOST + each) for each in dict.fromkeys(paths)]
        result = Result(task_id, Outcome.OK, status=200, sent_at=self.bench.now, links=links)
        result.content_type, result.content_hash, result.links_found = "text/html", url.encode()[-16:], len(links)
        result.text_hash, result.numbers = text_fingerprint(data, url), number_fingerprint(data, url)
        if not result.text_hash:
            result.short_text = short_fingerprint(data, url)
        result.signature, result.words, result.is_prose = minhash(data), len(text.split()), self._is_prose
        self.bench.crawl.complete(result, self.bench.now)

    def continued(self) -> Walk:
        """Return the same crawl after a restart."""
        self.bench.crawl.save_state(0.0, 0.0, self.bench.now)
        again = Walk.__new__(Walk)
        again._draw, again._is_prose, again.fetched = self._draw, self._is_prose, self.fetched
        again.bench = Bench(ledger=self.bench.ledger, limits=LIMITS, delay_s=0.0, now=self.bench.now)
        return again


def drawn_from(site: Site, pages: int | None, fanout: int = 5) -> Draw:
    """Return a site whose page n links to the next ones; endless if `pages` is None."""
    numbers = {"/": 0}

    def draw(path: str) -> Drawn:
        number = numbers[path]
        last = number + fanout if pages is None else min(pages, number + fanout)
        paths = []
        for following in range(number + 1, last + 1):
            paths.append(site.path(following))
            numbers.setdefault(paths[-1], following)
        return (site.text(number) if number else "The front page of a site."), paths

    return draw


@pytest.mark.parametrize("name", sorted(HONEST))
def test_an_honest_site_is_complete(name: str) -> None:
    site = HONEST[name]
    walk = Walk(drawn_from(site, 1500))
    assert set(walk.run()) == {"/", *(site.path(number) for number in range(1, 1501))}


@pytest.mark.parametrize("name", sorted(TRAPS))
def test_a_trap_is_held_and_ends_at_its_budget(name: str) -> None:
    walk = Walk(drawn_from(TRAPS[name], None))
    assert len(walk.run()) <= BUDGET
    if "calendar" in walk.bench.crawl.totals.held:
        assert len(walk.fetched) < 50, "the calendar's own budget"
        return
    (held,) = (event for event in walk.bench.told(EventName.TRAP_QUARANTINED))
    assert held.host == "a.test"
    assert walk.bench.crawl.totals.held["quarantine"] > 0


@pytest.mark.parametrize("pages", [300, 900])
def test_what_looks_like_a_trap_and_is_small_is_complete(pages: int) -> None:
    walk = Walk(drawn_from(TRAPS["a counter"], pages))
    assert len(set(walk.run())) == pages + 1
    assert not list(walk.bench.ledger.records(HELD))


@pytest.mark.parametrize("name", ["facets", "session ids", "the time of day"])
def test_a_site_that_turns_into_a_trap_is_held(name: str) -> None:
    walk = Walk(drawn_from(turning(HONEST["an archive by date"], TRAPS[name], 1500), None))
    assert 1500 < len(walk.run()) <= 1500 + BUDGET + 400


def shop(products: int, related: int) -> Draw:
    """Return products that say nothing but what their address says, each with links to some others."""

    def draw(path: str) -> Drawn:
        if path == "/":
            return "Shop", ["/p/item-0"]
        number = int(path.rpartition("-")[2])
        return f"Item {number}", [f"/p/item-{(number * 7 + 1 + step * 131) % products}" for step in range(related)]

    return draw


def test_a_dull_section_that_grows_no_more_is_complete_beyond_the_budget() -> None:
    walk = Walk(shop(2000, 6))
    assert len(walk.run()) >= 2000, "its growth falls long before the budget is used up"


def test_what_another_page_names_is_not_held() -> None:
    counter = drawn_from(TRAPS["a counter"], None)

    def draw(path: str) -> Drawn:
        if path.startswith("/list"):
            number = int(path[5:])
            named = [TRAPS["a counter"].path(5_000 + number * 20 + each) for each in range(20)]
            return prose(50, path), [*named, *([f"/list{number + 1}"] if number < 99 else [])]
        if path == "/":
            return "start", ["/list0", *counter("/")[1]]
        try:
            return counter(path)
        except KeyError:
            return "Page This is page number of our numbered pages next previous", []

    fetched = set(Walk(draw).run(8000))
    assert {TRAPS["a counter"].path(5_000 + number) for number in range(2000)} <= fetched


def test_a_verdict_is_no_wider_than_its_evidence() -> None:
    trap = drawn_from(Site(lambda n: f"/docs/trap/{n}x", TRAPS["a counter"].text), None)

    def draw(path: str) -> Drawn:
        if path == "/":
            return "start", ["/docs/", "/docs/trap/"]
        if path.startswith("/docs/trap/"):
            return trap("/" if path == "/docs/trap/" else path)
        number = int(path.rpartition("/")[2] or 0)
        return prose(50, path), [f"/docs/{each}" for each in (number + 1, number + 2) if each <= 900]

    walk = Walk(draw)
    fetched = set(walk.run())
    assert {f"/docs/{number}" for number in range(1, 901)} <= fetched
    assert {each.pattern for each in walk.bench.ledger.records(QUARANTINES) if each.is_held} == {"/docs/trap/#x"}


def test_an_endless_path_is_held_as_the_folder_that_contains_it() -> None:
    def draw(path: str) -> Drawn:
        if path == "/":
            return "start", ["/a/loop/"]
        return "The same folder with the same text again.", [f"{path}{name}/" for name in ("red", "green", "blue")]

    walk = Walk(draw)
    assert len(walk.run()) <= BUDGET
    assert [each.name for each in walk.bench.ledger.records(QUARANTINES) if each.is_held] == ["a.test/a/loop/**"]


def random_names(path: str) -> Drawn:
    return prose(50, path), [f"/{prose(1, (path, step))}{prose(1, (step, path))}" for step in range(4)]


def test_random_words_under_random_names_are_held() -> None:
    walk = Walk(random_names, is_prose=False)
    assert len(walk.run()) <= BUDGET
    assert walk.bench.told(EventName.TRAP_QUARANTINED)


def test_pages_with_sentences_are_never_noise() -> None:
    walk = Walk(random_names)
    with pytest.raises(AssertionError, match="it goes on"):
        walk.run(1500)


def test_a_suspected_section_goes_behind_everything_else_but_for_a_share() -> None:
    trap = drawn_from(TRAPS["a counter"], None, fanout=10)

    def draw(path: str) -> Drawn:
        if path == "/":
            return "start", ["/news/0", *trap("/")[1]]
        if path.startswith("/news/"):
            number = int(path[6:])
            return prose(50, path), [f"/news/{2 * number + 1}", f"/news/{2 * number + 2}"] if number < 1000 else []
        return trap(path)

    walk = Walk(draw)
    walk.bench.crawl.frontier.limits.connections = 1
    walk.run()
    last = max(at for at, path in enumerate(walk.fetched) if path.startswith("/news/"))
    assert walk.bench.told(EventName.TRAP_SUSPECTED)
    before = walk.fetched[:last]
    assert sum(path.startswith("/page/") for path in before) < 160 + len(before) / TURNS


@pytest.mark.parametrize("name", ["a counter", "facets in any order"])
@pytest.mark.parametrize("after", [120, 230, 500])
def test_a_restart_gives_a_trap_nothing(name: str, after: int) -> None:
    walk = Walk(drawn_from(TRAPS[name], None))
    with pytest.raises(AssertionError, match="it goes on"):
        walk.run(after)
    walk.bench.crawl.give_back(walk.bench.crawl.tasks_out(), walk.bench.now)
    again = walk.continued()
    assert len(again.run()) <= BUDGET + 60, "the window at hand is not stored"
    assert again.bench.told(EventName.TRAP_QUARANTINED) or walk.bench.told(EventName.TRAP_QUARANTINED)


def test_a_restart_changes_nothing_for_an_honest_site() -> None:
    walk = Walk(shop(1500, 6))
    for after in (100, 200, 300, 700):
        with pytest.raises(AssertionError, match="it goes on"):
            walk.run(after)
        walk.bench.crawl.give_back(walk.bench.crawl.tasks_out(), walk.bench.now)
        walk = walk.continued()
    assert len(set(walk.run())) >= 1500


def test_nothing_is_both_held_and_queued() -> None:
    walk = Walk(drawn_from(TRAPS["facets"], None, fanout=40))
    walk.run()
    held = list(walk.bench.ledger.records(HELD))
    assert held
    assert walk.bench.crawl.totals.held["quarantine"] == len(held)
    assert not any(walk.bench.ledger.is_seen(each.id) for each in held)
    assert sum(each.held for each in walk.bench.ledger.records(QUARANTINES)) == len(held)
