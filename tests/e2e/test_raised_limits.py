"""Limits that a finished crawl reached can be raised: it goes on with what they had left out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.core.url.forms import key_of
from gossamer.sim.web.web import preset
from tests.amount import some
from tests.e2e.program import crawl, fetched_urls, run, summary_of
from tests.servers.web import RunningWeb
from tests.support.sites.trap_server import TrapServer
from tests.support.sites.trap_sites import Site

SITE = Site(lambda n: f"/p/{n}", lambda n: f"a page about the number {n} and nothing else, written for a test")


@pytest.fixture
def small_web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", pages=160, slow=0.0)) as web:
        yield web


def keys(out: Path) -> list[str]:
    """Return the keys of the pages that were fetched: the same page may be found in several spellings."""
    return [key_of(url) for url in fetched_urls(out)]


def test_a_raised_depth_is_crawled_to_the_same_pages_as_at_once(tmp_path: Path, small_web: RunningWeb) -> None:
    at_once, in_steps = tmp_path / "at-once", tmp_path / "in-steps"
    crawl(small_web, at_once, 5, "--max-depth", "4")
    for depth in ("1", "2", "4"):
        summary = crawl(small_web, in_steps, 5, "--max-depth", depth)
        assert summary["finished"] == "exhausted"
    assert set(keys(in_steps)) == set(keys(at_once))
    twice = [url for url, times in Counter(keys(in_steps)).items() if times > 1]
    assert all(url.endswith(".pdf") for url in twice), "a PDF is not archived, so it is fetched again for its links"
    assert run("verify", str(in_steps)).returncode == 0


@pytest.mark.parametrize("workers", some(["2", "1"], 1))
def test_resume_with_a_raised_depth_goes_on(tmp_path: Path, workers: str) -> None:
    with TrapServer(SITE, 40) as server:
        options = ("--politeness-ms", "0", "--json", "--workers", workers)
        first = run("crawl", server.seed, "--out", str(tmp_path / "out"), "--max-depth", "2", *options)
        assert summary_of(first.stdout)["pages"] == 11
        assert summary_of(first.stdout)["cuts"]["max_depth_pages"] > 0
        again = run("resume", str(tmp_path / "out"), "--max-depth", "9", *options)
        assert summary_of(again.stdout)["pages"] == 41, again.stderr
        assert "max_depth" not in summary_of(again.stdout)["cuts"]
        assert server.requests == 41


def test_what_is_not_in_an_archive_is_fetched_again_for_its_links(tmp_path: Path) -> None:
    with TrapServer(SITE, 20) as server:
        options = ("--politeness-ms", "0", "--json", "--store", "files")
        run("crawl", server.seed, "--out", str(tmp_path / "out"), "--max-depth", "2", *options)
        assert server.requests == 11
        again = run("resume", str(tmp_path / "out"), "--max-depth", "9", "--politeness-ms", "0", "--json")
        assert again.returncode == 0, again.stderr
        assert {f"/p/{number}" for number in range(1, 21)} <= set(server.paths)


@pytest.mark.parametrize("failpoint", ["before_commit:kill:2", "after_commit:kill:2", "after_fetch:kill:30"])
def test_a_kill_while_links_are_read_again_loses_none(tmp_path: Path, failpoint: str) -> None:
    with TrapServer(SITE, 400) as server:
        out, options = str(tmp_path / "out"), ("--politeness-ms", "0", "--no-traps", "--json")
        run("crawl", server.seed, "--out", out, "--max-depth", "30", *options)
        assert server.requests == 151
        killed = run("resume", out, "--max-depth", "100", *options, environment={"GOSSAMER_FAILPOINT": failpoint})
        assert killed.returncode != 0
        again = run("resume", out, *options)
        assert summary_of(again.stdout)["pages"] == 401, again.stderr


def test_a_target_of_domains_can_be_raised_and_not_lowered(tmp_path: Path, small_web: RunningWeb) -> None:
    seeds = small_web.seeds(1)
    first = crawl(small_web, tmp_path / "out", 0, "-c", "1", "--target-unique-domains", "3", seeds=seeds)
    assert (first["finished"], first["unique_domains"]) == ("target_domains", 3)
    second = crawl(small_web, tmp_path / "out", 0, "-c", "1", "--target-unique-domains", "6", seeds=seeds)
    assert (second["finished"], second["unique_domains"]) == ("target_domains", 6)
    lowered = run("resume", str(tmp_path / "out"), "--target-unique-domains", "2")
    assert lowered.returncode == 2
    assert "--target-unique-domains" in lowered.stderr
    assert "raised" in lowered.stderr


def test_a_first_pass_that_stopped_can_go_on_with_everything(tmp_path: Path, small_web: RunningWeb) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    seeds = small_web.seeds(1)
    crawl(small_web, whole, 5, "--scope", "any", seeds=seeds)
    first = crawl(small_web, out, 0, "-c", "1", "--target-unique-domains", "3", seeds=seeds)
    assert first["pages"] < 10
    second = crawl(small_web, out, 5, "-c", "20", "--after-target", "continue", seeds=seeds)
    assert second["finished"] == "exhausted"
    assert set(keys(out)) == set(keys(whole))


def test_the_status_of_a_crawl_whose_depth_was_raised_says_so(tmp_path: Path) -> None:
    with TrapServer(SITE, 40) as server:
        out, options = str(tmp_path / "out"), ("--politeness-ms", "0", "--json")
        run("crawl", server.seed, "--out", out, "--max-depth", "1", *options)
        run("resume", out, "--max-depth", "3", *options)
    lines = [line for path in sorted((tmp_path / "out" / "events").glob("*.jsonl")) for line in path.open()]
    (event,) = [event for event in map(json.loads, lines) if event["event"] == "links_read_again"]
    assert (event["links"], event["new_links"]) == (5, 5)
