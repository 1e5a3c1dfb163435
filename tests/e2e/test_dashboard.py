"""The dashboard in a browser: an operator watches a crawl of the synthetic web, and steers it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.dashboard_crawl import PageCrawl, address_in, shown, wait_for
from tests.e2e.program import crawl, crawl_options, run, start, until
from tests.servers import engines
from tests.servers.browser import Browser, Element, running_browser
from tests.servers.reverse_proxy import reverse_proxy
from tests.servers.web import RunningWeb
from tests.support.sites.trap_server import TrapServer
from tests.support.sites.trap_sites import HONEST, TRAPS
from tests.web.serving import Served

PAGES = 1500
WITHIN_S = 2.0


@pytest.fixture(scope="module", params=[engines.param("chromium")])
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", seed=5, pages=PAGES, slow=0.0)) as web:
        yield web


@pytest.fixture
def short_web() -> Iterator[RunningWeb]:
    """One whose crawl ends soon."""
    with RunningWeb(preset("small", seed=5, pages=200, slow=0.0)) as web:
        yield web


def view(browser: Browser, path: str, heading: str = "") -> None:
    browser.run("location.hash = '#/' + arguments[0]", path)
    if heading:
        browser.find("main h1", heading)


def tile(browser: Browser, name: str) -> str:
    """Return the figure in a tile."""
    script = (
        "return [...document.querySelectorAll('.tile')].find(one => one.querySelector('dt').textContent === "
        "arguments[0])?.querySelector('dd').textContent ?? ''"
    )
    return str(browser.run(script, name))


def fact(browser: Browser, name: str) -> str:
    """Return what a list of facts says about a name."""
    script = (
        "return [...document.querySelectorAll('main .facts dt')].find(one => one.textContent === arguments[0])"
        "?.nextElementSibling.textContent ?? ''"
    )
    return str(browser.run(script, name))


def _first_page(browser: Browser) -> Element | None:
    """Read the list of pages anew; return the link to the first of them."""
    view(browser, "hosts", "Hosts")
    view(browser, "pages", "Pages")
    browser.wait(lambda: "Reading" not in browser.text(), "the list")
    return next(iter(browser.all("main td.url a")), None)


def is_visible(browser: Browser, selector: str) -> bool:
    return bool(browser.run("return document.querySelector(arguments[0])?.checkVisibility() ?? false", selector))


def test_a_crawl_is_watched_from_its_first_pages_to_its_end(
    browser: Browser, short_web: RunningWeb, tmp_path: Path
) -> None:
    crawl = PageCrawl(short_web, tmp_path / "out", pace_ms=200)
    browser.go(crawl.address)
    browser.find("#state", "running")
    assert "token" not in str(browser.run("return location.href")), "the address bar has lost it"
    assert browser.run("return document.cookie") == ""
    first = int(browser.wait(lambda: tile(browser, "Pages")).replace(",", ""))
    browser.wait(lambda: int(tile(browser, "Pages").replace(",", "")) > first + 20, "more pages")
    browser.wait(lambda: len(browser.all(".chart path.line")) >= 4, "charts")
    view(browser, "live", "Live")
    browser.wait(lambda: len(browser.all("table.live tbody tr")) > 10, "events")
    status, out, err = crawl.end()
    assert status == 0, err
    browser.find("#state", "finished")
    browser.wait_for_text(f"The crawl has ended, and this dashboard with it. To see it again: gossamer ui {crawl.out}")
    assert browser.all("#pause, #stop") == []
    view(browser, "", "Overview")
    assert tile(browser, "Pages") == f"{json.loads(out.splitlines()[-1])['pages']:,}"
    browser.find("main .view-head p", "ended: everything within reach was fetched")


def test_a_crawl_that_is_stopped_on_its_page_is_shown_as_stopped(
    browser: Browser, web: RunningWeb, tmp_path: Path
) -> None:
    crawl = PageCrawl(web, tmp_path / "out")
    crawl.wait_for_requests(20)
    browser.go(crawl.address)
    browser.find("#stop").click()
    browser.find("#confirm").click()
    assert crawl.end()[0] == 11
    browser.find("#state", "stopped")
    browser.find("#banner", f"gossamer ui {crawl.out}")
    assert browser.all("#pause, #stop") == []
    browser.find(".chart .value", "on average"), "it has no speed any more"
    browser.find("main .view-head p", "resume continues")
    with shown(crawl.out) as address:
        browser.go("about:blank")
        browser.go(address)
        browser.find("#state", "stopped")
        browser.find("main .card", "Once it is resumed: ")
        browser.find(".chart .ticks.x", " s")


def test_the_axes_of_charts_say_how_much_and_when(browser: Browser, web: RunningWeb, tmp_path: Path) -> None:
    crawl = PageCrawl(web, tmp_path / "out")
    browser.go(crawl.address)
    browser.wait(lambda: len(browser.all(".chart path.line")) >= 4, "charts")
    script = "return [...document.querySelector('.chart').querySelectorAll(arguments[0])].map(one => one.textContent)"
    top, middle, bottom = map(float, browser.run(script, ".ticks.y span"))
    assert top > middle > bottom == 0
    browser.wait(lambda: len(set(browser.run(script, ".ticks.x span"))) == 2, "a second has passed")
    assert all("00:00:00" <= clock[-8:] <= "23:59:59" for clock in browser.run(script, ".ticks.x span"))
    crawl.process.terminate()
    assert crawl.end()[0] == 11


def test_a_page_whose_process_was_killed_does_not_claim_that_the_crawl_runs(
    browser: Browser, short_web: RunningWeb, tmp_path: Path
) -> None:
    summary = crawl(short_web, tmp_path / "out", 10)
    assert summary["pages"]
    page = start("ui", str(tmp_path / "out"))
    browser.go(address_in(page))
    browser.find("#state", "finished")
    page.kill()
    page.communicate(timeout=30)
    browser.find("#state", "not connected")
    browser.find("#banner", f"gossamer ui {tmp_path / 'out'}")


def test_a_host_is_found_and_a_url_is_inspected(browser: Browser, web: RunningWeb, tmp_path: Path) -> None:
    crawl = PageCrawl(web, tmp_path / "out")
    crawl.wait_for_requests(60)
    name = web.log()[20].host
    browser.go(crawl.address)
    view(browser, "hosts", "Hosts")
    browser.press("/")
    browser.wait(lambda: browser.run("return document.activeElement.type") == "search", "focus on the search")
    browser.find("main input[type=search]").type(name)
    browser.click_at_once("main td a", name)
    browser.find("main h1", name)
    browser.wait_for_text("robots.txt of http://")
    browser.find("main table td.url a", "/")
    assert "[object" not in browser.text()
    browser.click_at_once("main table td.url a", "/")
    browser.wait_for_text("The path from the seed")
    browser.wait_for_text("robots.txt")
    crawl.process.terminate()
    assert crawl.end()[0] == 11


def test_a_host_that_is_looked_at_is_read_again_as_the_crawl_goes_on(
    browser: Browser, web: RunningWeb, tmp_path: Path
) -> None:
    crawl = PageCrawl(web, tmp_path / "out")
    crawl.wait_for_requests(40)
    busy = max({request.host for request in web.log()}, key=crawl.requests_to)
    browser.go(crawl.address)
    view(browser, f"hosts/{busy}", busy)
    browser.find("main input[type=number]").type("7")
    first = browser.wait(lambda: fact(browser, "fetches"))
    browser.wait(lambda: fact(browser, "fetches") != first, "more fetches")
    browser.wait_for_text(f"robots.txt of http://{busy}")
    assert "7" in browser.run("return document.querySelector('main input[type=number]').value"), "it was typed"
    crawl.process.terminate()
    assert crawl.end()[0] == 11


def test_a_crawl_is_paused_and_resumed_by_its_buttons(browser: Browser, web: RunningWeb, tmp_path: Path) -> None:
    crawl = PageCrawl(web, tmp_path / "out")
    crawl.wait_for_requests(20)
    browser.go(crawl.address)
    browser.find("#pause", "Pause").click()
    browser.find("#state", "paused")
    browser.find("main .view-head p", "paused for")
    assert tile(browser, "Pages per second") == "paused"
    browser.find("main .card", "The crawl is paused.")
    paused_at = time.monotonic()
    wait_for(lambda: time.monotonic() > paused_at + WITHIN_S)
    before = len(web.log())
    wait_for(lambda: time.monotonic() > paused_at + 2 * WITHIN_S)
    assert len(web.log()) == before
    browser.find("#pause", "Resume").click()
    browser.find("#state", "running")
    crawl.wait_for_requests(20)
    crawl.process.terminate()
    assert crawl.end()[0] == 11


def test_a_host_is_blocked_and_left_alone_within_two_seconds(browser: Browser, web: RunningWeb, tmp_path: Path) -> None:
    crawl = PageCrawl(web, tmp_path / "out")
    crawl.wait_for_requests(60)
    busy = max({request.host for request in web.log()}, key=crawl.requests_to)
    browser.go(crawl.address)
    view(browser, f"hosts/{busy}", busy)
    browser.find("#block").click()
    assert not is_visible(browser, "#unblock"), "it is not blocked"
    browser.find("#confirm").click()
    browser.find(".toast", "no more requests")
    told_at = time.monotonic()
    wait_for(lambda: time.monotonic() > told_at + WITHIN_S)
    before = crawl.requests_to(busy)
    crawl.wait_for_requests(40)
    assert crawl.requests_to(busy) == before
    browser.wait(lambda: is_visible(browser, "#unblock") and not is_visible(browser, "#block"), "the way back")
    browser.find("#unblock").click()
    browser.find(".toast", "queued again")
    wait_for(lambda: crawl.requests_to(busy) > before)
    crawl.process.terminate()
    assert crawl.end()[0] == 11
    assert run("audit", str(crawl.out)).returncode == 0


def test_seeds_are_added_and_a_limit_is_changed(browser: Browser, web: RunningWeb, tmp_path: Path) -> None:
    first, *_, last = web.seeds()
    out = tmp_path / "out"
    options = ("--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "--politeness-ms", "500", "--max-wait", "3")
    process = start("crawl", first, "--scope", "host", "-o", str(out), *options, "--json", "--no-progress", "--ui")
    browser.go(address_in(process))
    view(browser, "settings", "Settings")
    browser.find("textarea").type(last)
    browser.find("form button", "Add").click()
    browser.find(".toast", "1 of 1 seed is new")
    wait_for(lambda: any(last.startswith(f"http://{request.host}:") for request in web.log()))
    browser.find("input[name=value]").type("many")
    browser.find("form button", "Change").click()
    browser.find(".toast.bad", "expected a whole number")
    browser.find(".toast.bad .close").click()
    assert browser.all(".toast.bad") == []
    browser.run("document.querySelector('input[name=value]').value = '45'")
    browser.find("form button", "Change").click()
    browser.find(".toast", "max-pages = 45")
    out_text, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    summary = json.loads(out_text.splitlines()[-1])
    assert (summary["pages"], summary["finished"]) == (45, "max_pages")


def test_a_trap_is_released(browser: Browser, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with TrapServer(TRAPS["facets"], 100_000) as server, TrapServer(HONEST["numbered records"], 100_000) as honest:
        pace = ("--politeness-ms", "10", "--max-depth", "99", "--ui", "--no-progress")
        process = start("crawl", server.seed, honest.seed, "--out", str(out), *pace, "--json")
        address = address_in(process)
        wait_for(lambda: "URLs held" in run("traps", str(out)).stdout)
        browser.go(address)
        browser.find("#state", "running")
        view(browser, "traps", "Traps")
        browser.find("button.release").click()
        browser.find("#confirm").click()
        browser.find(".toast", "1 pattern released")
        browser.find("main .tag", "released")
        browser.find("#stop").click()
        browser.find("#confirm").click()
        process.communicate(timeout=60)
    assert process.returncode == 11


def test_a_finished_crawl_has_everything_but_control(browser: Browser, short_web: RunningWeb, tmp_path: Path) -> None:
    summary = crawl(short_web, tmp_path / "out", 10)
    with shown(tmp_path / "out") as address:
        browser.go("about:blank")
        browser.complaints()  # of the pages before
        browser.go(address)
        browser.find("#state", "finished")
        assert tile(browser, "Pages") == f"{summary['pages']:,}"
        assert browser.all("#pause, #stop") == []
        known = browser.find("a[data-view=hosts] .count").text
        assert tile(browser, "Hosts") == known
        for path, text in (
            ("hosts", f"{known} hosts"),
            ("hosts", "site-0"),
            ("pages", "text/html"),
            ("duplicates", "same"),
            ("traps", "No pattern is in quarantine"),
            ("dead", "client error"),
            ("settings", "The crawl does not run"),
            ("live", "fetch"),
        ):
            view(browser, path)
            browser.wait_for_text(text)
        browser.press("5")
        browser.find("main h1", "Pages").click()
        browser.find("main td.url a").click()
        browser.find("#tab-text").click()
        browser.wait(lambda: len(browser.find("#panel pre").text) > 50, "the text")
        browser.find("#tab-headers").click()
        browser.find("#panel td", "content-type")
        browser.press("?")
        browser.find("dialog", "Keys")
        assert browser.complaints() == []


def test_what_the_page_changes_in_a_crawl_that_does_not_run_is_for_its_next_run(
    short_web: RunningWeb, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    before = crawl(short_web, out, 10, "--max-pages", "20")
    with shown(out) as address:
        page = Served([address])
        assert page.ask("/api/hosts").json["known"] > 0  # the ledger is open for reading
        for name, fields in (
            ("add", {"seeds": [short_web.seeds()[-1]]}),
            ("set", {"key": "max-pages", "value": 30}),
            ("block", {"names": ["blocked.test"]}),
            ("pace", {"pattern": "slow.test", "delay": 7.5}),
        ):
            reply = page.command(name, **fields)
            assert (reply.status, "for its next run" in reply.json["text"]) == (200, True), reply.body
        assert page.command("pause").status == 409
        assert page.ask("/api/hosts").json["known"] > 0
        settings = {one["key"]: one["value"] for one in page.ask("/api/settings").json["settings"]}
    assert (settings["max-pages"], settings["block-host"]) == (30, ["blocked.test"])
    assert (settings["pace"][0]["host"], settings["pace"][0]["delay"]) == ("slow.test", 7.5)
    resumed = run("resume", str(out), "--json", "--no-progress")
    assert (before["pages"], json.loads(resumed.stdout.splitlines()[-1])["pages"]) == (20, 30), resumed.stderr


@pytest.mark.parametrize("is_transparent", [False, True])
def test_behind_a_reverse_proxy_with_a_path_everything_works(
    browser: Browser, web: RunningWeb, tmp_path: Path, is_transparent: bool
) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-that-a-proxy-may-know\n")
    with reverse_proxy("/ops/crawl", strips_path=not is_transparent, keeps_host=is_transparent) as proxy:
        options = (*crawl_options(web, tmp_path / "out", 100), "--no-progress")
        served = ("--ui", "--ui-url", proxy.url, "--ui-token-file", str(token))
        process = start("crawl", *web.seeds(), *options, *served)
        lines = until(process, "dashboard"), until(process, "listening")
        assert f"{proxy.url}#token=… (in {token})" in lines[0]
        assert token.read_text().strip() not in lines[0]
        host, _, port = lines[1].split()[2].removeprefix("http://").rstrip("/").rpartition(":")
        proxy.target = (host, int(port))
        browser.go("about:blank")
        browser.complaints()
        browser.go(f"{proxy.url}#token={token.read_text().strip()}")
        browser.find("#state", "running")
        browser.wait(lambda: tile(browser, "Pages"), "figures")
        browser.wait(lambda: _first_page(browser), "a page is committed").click()
        browser.find("#panel")
        browser.wait(lambda: browser.run("return document.querySelector('iframe')?.src ?? ''").startswith(proxy.url))
        browser.find("#stop").click()
        browser.find("#confirm").click()
        process.communicate(timeout=60)
        browser.find("#state", "stopped")
        assert browser.complaints() == []
    assert process.returncode == 11


def test_an_address_that_is_taken_is_one_line_until_its_crawl_is_killed(web: RunningWeb, tmp_path: Path) -> None:
    first = PageCrawl(web, tmp_path / "first", pace_ms=200)
    listening = first.address.split("/")[2]
    options = ("--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "-n", "3", "--no-progress")
    second = ("crawl", web.seeds()[0], *options, "-o", str(tmp_path / "second"), "--ui-listen", listening)
    refused = run(*second)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert (
        refused.stderr
        == f"gossamer crawl: --ui-listen {listening}: cannot listen there: Address already in use; 0 is any free port\n"
    )
    assert not (tmp_path / "second").exists()
    first.process.kill()
    first.process.communicate(timeout=30)
    begun = run(*second)
    assert begun.returncode == 0, begun.stderr
    host, _, port = listening.rpartition(":")
    wait_for(lambda: not _is_open(host, int(port)), 10)


def _is_open(host: str, port: int) -> bool:
    import socket

    try:
        socket.create_connection((host, port), 1).close()
    except OSError:
        return False
    return True
