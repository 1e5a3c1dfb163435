"""A planted farm beside an honest site, crawled by the program: what is marked, demoted, held back and released."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.core.spam.hosts import MIN_CLEAR_SPAM
from gossamer.core.url.forms import canonical, path_of
from tests.e2e.program import run, summary_of
from tests.hostile.serving import Call, Catalogue, HostileServer
from tests.support.sites.spam_sites import SpamSite, site

PAGES = 80
FARM, GOOD = site("doorway", "farm.test", PAGES, 2), site("blog", "good.test", 20, 3)
SHUFFLED = site("stuffed", "shuffled.test", PAGES, 4)


def catalogue_of(*sites: SpamSite) -> Catalogue:
    catalogue = Catalogue()
    for one in sites:
        bodies = {_requested(one, page.path): page.body for page in one.pages}

        async def serve(call: Call, bodies: dict[str, str] = bodies) -> None:
            if call.path in bodies:
                await call.html(bodies[call.path])
            else:
                await call.html("", status="404 Not Found")

        catalogue.serves(one.host.removesuffix(".test"))(serve)
    return catalogue


def _requested(one: SpamSite, path: str) -> str:
    url = canonical(f"http://{one.host}{path}")
    assert url is not None
    return path_of(url)


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer(catalogue_of(FARM, GOOD, SHUFFLED)) as running:
        yield running


def options(server: HostileServer, out: Path, *more: str) -> list[str]:
    return [
        *("--dns", server.dns_address, "--allow-network", "127.0.0.1/32", "--politeness-ms", "1", "--max-wait", "2"),
        *("--max-depth", "100", "--out", str(out), "--json", *more),
    ]


def crawl(server: HostileServer, out: Path, *more: str) -> dict[str, Any]:
    seeds = [f"http://{name}.test:{server.port}/" for name in ("farm", "good", "shuffled")]
    done = run("crawl", *seeds, *options(server, out, *more))
    assert done.returncode == 0, done.stderr
    return summary_of(done.stdout)


def traps(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("traps", str(out), "--json").stdout.splitlines()]


def fetched(server: HostileServer, name: str) -> int:
    return len(server.requests(name))


def test_by_default_the_hosts_with_spam_are_demoted_and_everything_is_fetched(
    server: HostileServer, tmp_path: Path
) -> None:
    out = tmp_path / "crawl"
    summary = crawl(server, out)
    assert summary["pages"] == 2 * PAGES + 20
    assert summary["held"] == {}
    assert summary["spam_hosts"] == 2
    assert {(one["name"], one["demotes_only"]) for one in traps(out)} == {
        ("farm.test:spam", True),
        ("shuffled.test:spam", True),
    }
    exported = [json.loads(line) for line in run("export", str(out), "--format", "jsonl").stdout.splitlines()]
    assert {page["url"] for page in exported if page["spam"]} == {
        page["url"] for page in exported if page["spam_signals"]
    }
    honest = run("export", str(out), "--format", "jsonl", "--where", "spam=no").stdout.splitlines()
    assert len(honest) == len(exported) - summary["spam_pages"] < len(exported)
    host = run("hosts", str(out), "farm.test").stdout
    assert "demoted: " in host
    assert "pages are spam (doorway " in host
    assert "spam" not in run("hosts", str(out), "good.test").stdout
    url = f"http://shuffled.test:{server.port}{_requested(SHUFFLED, next(p.path for p in SHUFFLED.pages if p.is_spam))}"
    why = run("why", str(out), url).stdout
    assert "keyword_stuffing" in why
    assert "words are those of title and address" in why
    assert "the host was demoted" in why
    assert "2 hosts demoted" in run("report", str(out)).stdout


def test_links_to_hosts_with_spam_are_held_if_asked_to_and_released(server: HostileServer, tmp_path: Path) -> None:
    out = tmp_path / "crawl"
    summary = crawl(server, out, "--spam", "quarantine")
    before = fetched(server, "shuffled")
    assert summary["held"]["spam"] > 0
    assert MIN_CLEAR_SPAM < before < PAGES
    assert fetched(server, "good") == 20
    held = next(one for one in traps(out) if one["name"] == "shuffled.test:spam")
    assert held["held"] > 0
    event = next(
        json.loads(line)
        for path in (out / "events").glob("*.jsonl")
        for line in path.read_text("utf-8").splitlines()
        if '"excluded_by_rule"' in line and '"shuffled.test"' in line
    )
    assert event["reason"] == "spam"
    assert "held back by the spam rule" in run("why", str(out), event["url"]).stdout
    assert "released" in run("traps", str(out), "--release", "shuffled.test:spam").stdout
    done = run("resume", str(out), "--json", "--max-wait", "2")
    assert done.returncode == 0, done.stderr
    assert fetched(server, "shuffled") == PAGES
    assert next(one for one in traps(out) if one["name"] == "shuffled.test:spam")["is_released"]


def test_off_means_that_nothing_is_judged(server: HostileServer, tmp_path: Path) -> None:
    out = tmp_path / "crawl"
    summary = crawl(server, out, "--spam", "off")
    assert summary["pages"] == 2 * PAGES + 20
    assert (summary["spam_pages"], summary["spam_hosts"], summary["held"]) == (0, 0, {})
    assert traps(out) == []


def test_a_wrong_choice_is_one_line(tmp_path: Path) -> None:
    done = run("crawl", "http://good.test/", "--out", str(tmp_path / "crawl"), "--spam", "delete")
    assert done.returncode == 2
    assert "demote" in done.stderr
    assert "Traceback" not in done.stderr
