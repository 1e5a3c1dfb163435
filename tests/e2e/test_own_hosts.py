"""`--own-host`: what robots.txt forbids is fetched at hosts of the operator's own, and said wherever it matters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.program import run
from tests.servers.plain_site import Answer, PlainSite, plain_site

FAST = ("--politeness-ms", "0", "--no-traps")


@pytest.fixture
def site() -> Iterator[PlainSite]:
    with plain_site() as site:
        site.answers["/robots.txt"] = Answer("User-agent: *\nDisallow: /private\n", content_type="text/plain")
        site.answers["/"] = Answer('<p>Front <a href="/private/a">a</a> <a href="/open">b</a>')
        site.answers["/private/a"] = Answer("<p>A page that robots.txt forbids")
        site.answers["/open"] = Answer("<p>A page that everybody may fetch")
        yield site


def test_what_robots_txt_forbids_is_fetched_at_an_own_host_and_said_everywhere(site: PlainSite, tmp_path: Path) -> None:
    out = str(tmp_path / "c")
    done = run("crawl", site.url, "--own-host", "127.0.0.1", *FAST, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "/private/a" in site.requests
    assert site.requests[0] == "/robots.txt"
    assert "0 URLs, by robots.txt; 1 more fetched all the same at your own hosts (--own-host)" in done.stdout
    audit = run("audit", out)
    assert audit.returncode == 0, audit.stdout
    assert "note: 1 request to 127.0.0.1 that robots.txt does not allow: named as the operator's own" in audit.stdout
    assert json.loads(run("audit", out, "--json").stdout)["own_hosts"] == {"127.0.0.1": 1}
    why = run("why", out, f"{site.url}private/a").stdout
    assert "not allowed; the host is your own (--own-host)" in why
    assert "fetched although robots.txt forbids it (line 2: Disallow: /private): --own-host" in why
    (events,) = Path(out).glob("events/*.jsonl")
    said = [json.loads(line) for line in events.read_text().splitlines()]
    (overridden,) = [event for event in said if event["event"] == "robots_overridden"]
    assert (overridden["url"], overridden["reason"]) == (f"{site.url}private/a", "own-host")


def test_an_own_host_without_a_reachable_robots_txt_is_crawled(site: PlainSite, tmp_path: Path) -> None:
    site.answers["/robots.txt"] = Answer("broken", 503)
    out = str(tmp_path / "c")
    done = run("crawl", site.url, "--own-host", "127.0.0.1", *FAST, "-o", out, "--json")
    assert json.loads(done.stdout)["pages"] == 3
    assert run("audit", out).returncode == 0


def test_other_hosts_are_not_concerned(site: PlainSite, tmp_path: Path) -> None:
    done = run("crawl", site.url, "--own-host", "www.example.org", *FAST, "-o", str(tmp_path / "c"), "--json")
    summary = json.loads(done.stdout)
    assert (summary["pages"], summary["robots_disallowed"], summary["robots_overridden"]) == (2, 1, 0)
    assert "/private/a" not in site.requests


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("*", "expected the name of one host"),
        ("*.example.org", "expected the name of one host"),
        ("https://example.org/", "expected the name of one host"),
        ("Example.org", "did you mean 'example.org'?"),
        ("", "expected the name of one host"),
    ],
)
def test_nobody_owns_a_pattern(tmp_path: Path, name: str, hint: str) -> None:
    refused = run("crawl", "http://localhost/", "--own-host", name, "-o", str(tmp_path / "c"))
    assert refused.returncode == 2
    assert f"own-host = {name!r}: not a host of your own; {hint}" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not (tmp_path / "c").exists()
