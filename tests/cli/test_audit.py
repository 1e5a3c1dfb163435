"""A good crawl passes; each kind of rudeness, planted into a copy of its records, is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from gossamer.core.robots.answers import MAX_ROBOTS_HOPS
from gossamer.core.url.forms import host_of
from gossamer.core.url.identity import host_id
from gossamer.model.events import Event, EventName, Promises
from gossamer.reading.folder import CrawlReader
from gossamer.reading.requests.audit import Auditor
from gossamer.reading.requests.requests_made import SentRequest, facts_in_order
from gossamer.reading.requests.robots_captures import RobotsCaptures
from gossamer.sim.chaos import audit_problems
from gossamer.sim.web.web import preset
from gossamer.telemetry.event_log import EventLog, file_stem, read_events
from tests.reading.folders import Crawled, crawl, event, ledger_of, said
from tests.servers.web import RunningWeb

CRAWL_DELAY_S = 0.2
CROWD = 3
Doctor = Callable[[list[Event]], list[Event]]


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    plan = preset("small", pages=120, slow=0.0, robots_rules=0.5, crawl_delays=0.3, crawl_delay_s=CRAWL_DELAY_S)
    with RunningWeb(plan) as running:
        yield running


@pytest.fixture(scope="module")
def good(web: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    return crawl(web, tmp_path_factory.mktemp("good") / "crawl")


def _doctored(folder: Path, doctor: Doctor) -> Path:
    path = next((folder / "events").glob("*.jsonl"))
    changed = doctor(list(read_events(folder / "events")))
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in changed))
    with ledger_of(folder) as ledger:
        state = ledger.crawl_state()
        assert state is not None
        state.event_ends[path.name] = path.stat().st_size
        ledger.put_crawl_state(state)
    return folder


def _breaches(capsys: pytest.CaptureFixture[str], folder: Path) -> dict[str, int]:
    status, out, err = said(capsys, "audit", folder, "--json")
    assert err == ""
    found: dict[str, int] = json.loads(out)["breaches"]
    assert status == bool(found)
    return found


def _pages(events: list[Event], host: str) -> list[Event]:
    return [one for one in events if one.event is EventName.FETCH_OK and one.host == host and not one.kind]


def _robots(events: list[Event], host: str) -> Event:
    return next(one for one in events if one.kind == "robots" and one.host == host)


def _busy_host(events: list[Event], web: RunningWeb, *, has_delay: bool = False, has_rules: bool = False) -> str:
    """Return a host with at least four pages that has, or has not, a Crawl-delay."""
    for one in events:
        site = web.web.site(one.host)
        if site is None or (site.crawl_delay_s > 0) is not has_delay or (site.robots == "rules") < has_rules:
            continue
        if len(_pages(events, one.host)) >= 4:
            return one.host
    raise AssertionError("no such host in this crawl")


def _changed(events: list[Event], old: Event, **fields: object) -> list[Event]:
    return [replace(one, **fields) if one is old else one for one in events]


def test_a_good_crawl_passes(good: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "audit", good.path)
    assert status == 0
    assert "robots.txt and pace were respected" in out
    assert f"{good.summary.fetches:,} requests" in out


def _before_robots(events: list[Event], web: RunningWeb) -> list[Event]:
    host = _busy_host(events, web)
    page, asked = _pages(events, host)[0], _robots(events, host).sent_at
    return _changed(events, page, sent_at=asked - 5, ts=asked - 4.9)


def _before_the_answer_of_robots(events: list[Event], web: RunningWeb) -> list[Event]:
    host = _busy_host(events, web)
    asked, page = _robots(events, host), _pages(events, host)[0]
    return _changed(events, asked, ts=page.sent_at + 0.001)


def _disallowed(events: list[Event], web: RunningWeb) -> list[Event]:
    page = _pages(events, _busy_host(events, web, has_rules=True))[1]
    return _changed(events, page, url="http://" + page.url.split("/")[2] + "/private/secret")


def _too_soon(events: list[Event], web: RunningWeb) -> list[Event]:
    first, second = _pages(events, _busy_host(events, web))[1:3]
    return _changed(events, second, sent_at=first.sent_at + 0.012)


def _faster_than_crawl_delay(events: list[Event], web: RunningWeb) -> list[Event]:
    first, second = _pages(events, _busy_host(events, web, has_delay=True))[1:3]
    return _changed(events, second, sent_at=first.sent_at + CRAWL_DELAY_S / 2)


def _two_at_once(events: list[Event], web: RunningWeb) -> list[Event]:
    first, second = _pages(events, _busy_host(events, web))[1:3]
    return _changed(events, first, ts=second.sent_at + 1)


def _deaf_to_retry_after(events: list[Event], web: RunningWeb) -> list[Event]:
    page = _pages(events, _busy_host(events, web))[1]
    return _changed(
        events, page, event=EventName.RETRY, status=429, reason="rate_limited", retry_after_s=600.0, wait_s=600.0
    )


def _deaf_to_robots_retry_after(events: list[Event], web: RunningWeb) -> list[Event]:
    host = _busy_host(events, web)
    asked = _robots(events, host)
    refused = replace(
        asked,
        event=EventName.ROBOTS_UNREACHABLE,
        status=503,
        reason="server_error",
        retry_after_s=60.0,
        sent_at=asked.sent_at - 5,
        ts=asked.ts - 5,
        order=1_000_000,
    )
    return [*events, refused]


def _repeated(events: list[Event], web: RunningWeb) -> list[Event]:
    return _changed(events, _pages(events, _busy_host(events, web))[1], requests=2)


def _old_robots(events: list[Event], web: RunningWeb) -> list[Event]:
    page = _pages(events, _busy_host(events, web))[-1]
    return _changed(events, page, sent_at=page.sent_at + 25 * 3600, ts=page.ts + 25 * 3600)


def _opted_out(events: list[Event], web: RunningWeb) -> list[Event]:
    host = _busy_host(events, web)
    second = _pages(events, host)[1]
    return [event(EventName.OPTED_OUT, ts=second.sent_at - 0.001 - second.total_ms / 1000, host=host), *events]


def _robots_down(events: list[Event], web: RunningWeb) -> list[Event]:
    asked = _robots(events, _busy_host(events, web))
    return _changed(events, asked, event=EventName.ROBOTS_UNREACHABLE, status=503, reason="server_error")


def _robots_without_connection(events: list[Event], web: RunningWeb) -> list[Event]:
    asked = _robots(events, _busy_host(events, web))
    return _changed(events, asked, event=EventName.ROBOTS_UNREACHABLE, status=0, reason="timeout")


def _promise(events: list[Event], promises: Promises) -> list[Event]:
    start = next(one for one in events if one.event is EventName.STARTED)
    return _changed(events, start, promises=promises)


def _domain_too_fast(events: list[Event], _web: RunningWeb) -> list[Event]:
    return _promise(events, Promises(delay_s=0.02, domain_delay_s=5.0))


def _address_too_fast(events: list[Event], _web: RunningWeb) -> list[Event]:
    return _promise(events, Promises(delay_s=0.02, address_delay_s=5.0))


def _address_crowded(events: list[Event], _web: RunningWeb) -> list[Event]:
    """Let one host more share an address, and be asked at one moment, than the run has promised."""
    first: dict[str, Event] = {}
    for one in events:
        if one.event is EventName.FETCH_OK and not one.kind:
            first.setdefault(one.host, one)
    crowd = sorted(first.values(), key=lambda one: one.sent_at)[: 1 + CROWD]
    assert len(crowd) == 1 + CROWD
    end = max(one.ts for one in crowd) + 0.01
    stretched = [replace(one, ts=end, address="127.9.9.9") if one in crowd else one for one in events]
    return _promise(stretched, Promises(delay_s=0.02, address_connections=CROWD))


@pytest.mark.parametrize(
    ("plant", "breach"),
    [
        (_before_robots, "robots_not_fetched"),
        (_before_the_answer_of_robots, "robots_not_fetched"),
        (_disallowed, "robots_disallowed"),
        (_too_soon, "too_soon"),
        (_faster_than_crawl_delay, "crawl_delay"),
        (_two_at_once, "too_many_at_once"),
        (_deaf_to_retry_after, "retry_after"),
        (_deaf_to_robots_retry_after, "retry_after"),
        (_repeated, "repeated"),
        (_old_robots, "robots_expired"),
        (_opted_out, "opted_out"),
        (_robots_down, "robots_unreachable"),
        (_robots_without_connection, "robots_unreachable"),
        (_domain_too_fast, "domain_pace"),
        (_address_too_fast, "address_pace"),
        (_address_crowded, "address_crowd"),
    ],
)
def test_rudeness_is_found(  # noqa: PLR0917 - fixtures
    plant: Callable[[list[Event], RunningWeb], list[Event]],
    breach: str,
    good: Crawled,
    web: RunningWeb,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = _doctored(good.copied(tmp_path / "rude"), lambda events: plant(events, web))
    assert breach in _breaches(capsys, folder)


def test_a_crawl_keeps_to_its_promise_to_an_address_and_is_found_out_if_it_had_promised_less(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunningWeb(preset("small", pages=120, domains_per_address=12, slow=1.0, slow_s=0.05)) as web:
        folder = crawl(web, tmp_path / "crawl", address_connections=CROWD).path
    assert _breaches(capsys, folder) == {}
    _doctored(folder, lambda events: _promise(events, Promises(delay_s=0.02, address_connections=CROWD - 1)))
    assert set(_breaches(capsys, folder)) == {"address_crowd"}
    _, out, _ = said(capsys, "audit", folder)
    assert f"{CROWD} concurrent at address 127.1.1.1; {CROWD - 1} promised" in out


def test_a_run_that_promised_an_address_nothing_is_not_held_to_it(
    good: Crawled, web: RunningWeb, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = good.copied(tmp_path / "old")
    _doctored(folder, lambda events: _promise(_address_crowded(events, web), Promises(delay_s=0.02)))
    assert "address_crowd" not in _breaches(capsys, folder)


def test_the_offending_fetch_is_named(
    good: Crawled, web: RunningWeb, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _doctored(good.copied(tmp_path / "rude"), lambda events: _disallowed(events, web))
    status, out, _ = said(capsys, "audit", folder)
    assert status == 1
    assert "/private/secret: line " in out
    assert "VIOLATED: robots_disallowed 1" in out


def test_robots_whose_text_is_nowhere_prove_nothing(
    good: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = good.copied(tmp_path / "burnt")
    for path in (folder / "archive").iterdir():
        path.unlink()
    assert _breaches(capsys, folder) == {}, "the ledger has the last texts"
    _forget_robots(folder)
    assert set(_breaches(capsys, folder)) == {"robots_not_shown"}


def _forget_robots(folder: Path) -> None:
    with ledger_of(folder) as ledger:
        for host in ledger.hosts():
            for robots in ledger.robots(host_id(host.name)):
                robots.fetched_at -= 3600
                ledger.put_robots(robots)


def test_chaos_excuses_robots_that_are_not_shown_after_a_power_cut_only(good: Crawled, tmp_path: Path) -> None:
    folder = good.copied(tmp_path / "cut")
    for path in (folder / "archive").iterdir():
        path.unlink()
    _forget_robots(folder)
    requests = 1 << 30
    assert audit_problems(folder, requests, had_power_cut=True) == []
    (problem,) = audit_problems(folder, requests, had_power_cut=False)
    assert "robots_not_shown" in problem


def test_the_pace_of_a_run_is_the_one_that_it_promised(
    good: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = good.copied(tmp_path / "slower")
    settings = folder / "crawl.toml"
    settings.write_text(settings.read_text("utf-8").replace("politeness-ms = 20", "politeness-ms = 500"), "utf-8")
    assert _breaches(capsys, folder) == {}, "the setting may have changed since"
    _doctored(folder, lambda events: _promise(events, Promises(delay_s=0.5)))
    assert "too_soon" in _breaches(capsys, folder)


def test_a_robots_txt_that_was_requested_at_a_path_of_another_host_is_a_violation(good: Crawled) -> None:
    origin = "http://forger.test"

    def sent(url: str, at: float, redirect_to: str = "") -> SentRequest:
        return SentRequest(
            url=url,
            host=host_of(url),
            origin=origin,
            is_robots=True,
            sent_at=at,
            issued_at=at,
            ended_at=at + 0.1,
            outcome="redirect" if redirect_to else "ok",
            requests=1,
            retry_after_s=0.0,
            address="",
            run=(0, 1.0),
            redirect_to=redirect_to,
        )

    def breaches(*facts: SentRequest) -> dict[str, int]:
        with CrawlReader(good.path) as crawl:
            found = Auditor(Promises(), RobotsCaptures(crawl, "gossamer")).check(facts).breaches
        return {breach: count for breach, count in found.items() if breach == "robots_elsewhere"}

    first = f"{origin}/robots.txt"
    second = "http://victim.test/robots.txt"
    assert breaches(sent(first, 1.0, "http://victim.test/a"), sent("http://victim.test/a", 5.0)) == {
        "robots_elsewhere": 1
    }
    assert breaches(sent(first, 1.0, f"{origin}/a"), sent(f"{origin}/a", 5.0)) == {}
    to_own_path = sent(second, 5.0, "http://victim.test/rules"), sent("http://victim.test/rules", 9.0)
    assert breaches(sent(first, 1.0, second), *to_own_path) == {}, "the other host says so itself"


@pytest.mark.parametrize("kept", [0, 5])
def test_events_that_are_missing_prove_nothing(
    good: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: int
) -> None:
    folder = good.copied(tmp_path / "cut")
    (path,) = (folder / "events").glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    if kept:
        path.write_bytes(b"".join(lines[:-kept]))
    else:
        path.unlink()
    status, out, _ = said(capsys, "audit", folder)
    assert status == 1
    assert f"note: INCOMPLETE: events/{path.name}" in out
    assert "as far as the events show; some are missing" in out


def test_runs_are_in_their_order_though_the_clock_was_set_back(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    for run, began_at in enumerate((10_000.0, 6_400.0)):
        log = EventLog(folder, file_stem(began_at))
        log.open()
        log.emit(event(EventName.STARTED, ts=began_at, promises=Promises()))
        if run:  # recovered from the archive: requested before the clock was set back
            log.emit(_fetched("http://a.test/recovered", began_at + 1, 10_004.0, 1))
        for number in range(3):
            at = began_at + 10 + number
            log.emit(_fetched(f"http://a.test/{run}{number}", at + 0.1, at, number + 2))
        log.close()
    facts = list(facts_in_order(folder))
    urls = [fact.url.rpartition("/")[2] if isinstance(fact, SentRequest) else "" for fact in facts]
    assert urls == ["", "00", "01", "02", "recovered", "", "10", "11", "12"]


def _fetched(url: str, at: float, sent_at: float, order: int) -> Event:
    return event(EventName.FETCH_OK, ts=at, url=url, host="a.test", sent_at=sent_at, order=order, requests=1)


HOPS = MAX_ROBOTS_HOPS + 1  # after which a robots.txt that only redirects counts as none


@pytest.mark.parametrize(("before", "after", "is_known"), [(0, HOPS, True), (0, HOPS - 1, False), (3, HOPS, True)])
def test_a_run_that_ends_among_redirects_begins_them_anew(
    good: Crawled, before: int, after: int, is_known: bool
) -> None:
    url, first, second = "http://circle.test/robots.txt", (0, 1.0), (0, 50.0)

    def sent(at: float, run: tuple[int, float], *, is_robots: bool = True) -> SentRequest:
        return SentRequest(
            url=url if is_robots else "http://circle.test/",
            host="circle.test",
            origin="http://circle.test",
            is_robots=is_robots,
            sent_at=at,
            issued_at=at,
            ended_at=at + 0.1,
            outcome="redirect" if is_robots else "ok",
            requests=1,
            retry_after_s=0.0,
            address="",
            run=run,
        )

    facts = [sent(1 + number, first) for number in range(before)]
    facts += [sent(50 + number, second) for number in range(after)]
    facts.append(sent(90, second, is_robots=False))
    with CrawlReader(good.path) as crawl:
        report = Auditor(Promises(), RobotsCaptures(crawl, "gossamer")).check(facts)
    assert report.breaches == ({} if is_known else {"robots_not_fetched": 1})
