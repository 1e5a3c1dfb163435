"""Everybody can use it: axe-core finds no serious fault in any view, light or dark; keys reach everything."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.dashboard_crawl import PageCrawl, shown
from tests.e2e.program import crawl
from tests.servers import engines
from tests.servers.browser import Browser, running_browser
from tests.servers.web import RunningWeb

VIEWS = ("", "hosts", "live", "why", "pages", "duplicates", "traps", "dead", "settings", "nowhere")
CHECK = """
const done = arguments[arguments.length - 1];
axe.run(document, { resultTypes: ["violations"] }).then((found) => done(found.violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => `${one.id}: ${one.nodes.map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`)));
"""


@pytest.fixture(scope="module", params=[engines.param("npm")])
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, which is not part of the project."""
    folder = tmp_path_factory.mktemp("axe")
    npm = engines.program("npm")
    words = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), "axe-core@4"]
    done = subprocess.run([npm, *words], capture_output=True, text=True, timeout=120, check=False)
    source = folder / "node_modules" / "axe-core" / "axe.min.js"
    assert source.is_file(), done.stderr
    return source.read_text("utf-8")


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", seed=5, pages=200, slow=0.0)) as web:
        yield web


@pytest.fixture(scope="module")
def address(web: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard of a crawl that has ended."""
    out = tmp_path_factory.mktemp("crawl") / "out"
    crawl(web, out, 10)
    with shown(out) as address:
        yield address


@pytest.fixture(scope="module", params=[engines.param("chromium")])
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


def faults(browser: Browser, axe: str, path: str) -> Any:
    browser.run("location.hash = '#/' + arguments[0]", path)
    browser.find("main h1")
    browser.wait(lambda: "Reading" not in browser.text(), f"{path} is read")
    browser.run(axe)
    return browser.run_async(CHECK)


def test_no_view_of_a_finished_crawl_has_a_serious_fault(
    browser: Browser, axe: str, web: RunningWeb, address: str
) -> None:
    browser.go(address)
    browser.find("#state", "finished")
    browser.run("location.hash = '#/pages'")
    browser.find("main td.url a")
    page = str(browser.run("return document.querySelector('main td.url a').hash")).removeprefix("#/")
    url = str(browser.run("return encodeURIComponent(document.querySelector('main td.url .second').textContent)"))
    host = web.seeds()[3].split("/")[2].partition(":")[0]
    details = (page, f"hosts/{host}", f"why/{url}", "why/http%3A%2F%2Fnever.test%2F")
    for scheme in ("light", "dark"):
        browser.emulate(scheme)
        found = {path: faults(browser, axe, path) for path in (*VIEWS, *details)}
        assert {path: each for path, each in found.items() if each} == {}, scheme


def test_no_view_of_a_running_crawl_has_a_serious_fault(
    browser: Browser, axe: str, web: RunningWeb, tmp_path: Path
) -> None:
    running = PageCrawl(web, tmp_path / "out", pace_ms=2500)  # it must still run at the end
    browser.go(running.address)
    browser.find("#state", "running")
    host = web.seeds()[3].split("/")[2].partition(":")[0]
    for scheme in ("dark", "light"):
        browser.emulate(scheme)
        found = {path: faults(browser, axe, path) for path in ("", "hosts", "live", "settings", f"hosts/{host}")}
        assert {path: each for path, each in found.items() if each} == {}, scheme
    browser.find("#stop").click()
    browser.find("dialog", "Stop the crawl?")
    browser.run(axe)
    assert browser.run_async(CHECK) == []
    browser.find("#confirm").click()
    assert running.end()[0] == 11


def test_everything_is_reached_by_keys(browser: Browser, address: str) -> None:
    tab, enter, escape = "\ue004", "\ue007", "\ue00c"
    browser.go(address)
    browser.find("#state", "finished")
    browser.press(tab)
    assert browser.run("return document.activeElement.className") == "skip"
    browser.press("2")
    browser.find("main h1", "Hosts")
    assert browser.run("return document.activeElement.id") == "main", "the new view has the focus"
    browser.press("/")
    browser.wait(lambda: browser.run("return document.activeElement.type") == "search")
    browser.wait(lambda: len(browser.all("main td a")) > 3)
    before = len(browser.all("main td a"))
    browser.press("www.")
    browser.wait(lambda: 0 < len(browser.all("main td a")) < before)  # the table was drawn anew
    for _ in range(12):
        browser.press(tab)
        if browser.run("return document.activeElement.matches('main td a')"):
            break
    width = browser.run("return getComputedStyle(document.activeElement).outlineWidth")
    assert width == "2px", "the focus is seen"
    browser.press(enter)
    browser.wait_for_text("robots.txt of http://")
    browser.press("?")
    browser.find("dialog", "Keys")
    browser.press(escape)
    browser.wait(lambda: browser.all("dialog") == [])


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900), (1920, 1080)])
def test_no_view_is_wider_than_its_window(browser: Browser, address: str, width: int, height: int) -> None:
    browser.go(address)
    browser.find("#state", "finished")
    browser.resize(width, height)
    for path in VIEWS:
        browser.run("location.hash = '#/' + arguments[0]", path)
        browser.find("main h1")
        browser.wait(lambda: "Reading" not in browser.text())
        assert browser.run("return document.documentElement.scrollWidth") <= width, path
