"""Crawls under a ceiling of memory find what they find without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gossamer.settings.budget import Budget, min_bytes
from gossamer.sim.web.web import preset
from tests.amount import some
from tests.e2e.program import crawl, crawl_options, fetched_urls, run
from tests.servers.web import RunningWeb

MAX_BYTES = 5_000_000


def _warnings(out: Path) -> list[str]:
    lines = [line for path in (out / "events").glob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
    events: list[dict[str, Any]] = [json.loads(line) for line in lines if '"warning"' in line]
    return [event["reason"] for event in events if "memory" in event["reason"]]


@pytest.mark.timed  # hosts are parked if the machine is too busy to answer in time
@pytest.mark.parametrize("workers", some([2, 1], 1))
def test_the_least_ceiling_is_kept_and_every_page_is_found(tmp_path: Path, workers: int) -> None:
    ceiling = min_bytes(workers, MAX_BYTES)
    free, held = tmp_path / "free", tmp_path / "held"
    options = ("--scope", "any", "--workers", str(workers), "--max-depth", "1000")
    with RunningWeb(preset("broad", domains=1500, pages=3000)) as web:
        without = crawl(web, free, 0, *options, seeds=web.seeds(10), is_new=True)
        summary = crawl(web, held, 0, *options, "--memory", str(ceiling), seeds=web.seeds(10), is_new=True)
    assert summary["peak_private_bytes"] <= ceiling
    assert summary["finished"] == without["finished"] == "exhausted"
    assert summary["pages"] == without["pages"]
    assert sorted(fetched_urls(held)) == sorted(fetched_urls(free))
    assert _warnings(held) == []


def test_a_crawl_goes_on_under_another_ceiling(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RunningWeb(preset("small")) as web:
        crawl(web, out, 0, "--memory", "1G", "--max-pages", "50", is_new=True)
        assert "memory = 1073741824" in (out / "crawl.toml").read_text("utf-8")
        summary = crawl(web, out, 0, "--memory", "200M", "--max-pages", "200", is_new=True)
    assert summary["pages"] == 200
    assert summary["peak_private_bytes"] <= 200 << 20


def test_too_little_memory_is_refused_in_one_line(tmp_path: Path) -> None:
    with RunningWeb(preset("small")) as web:
        done = run(
            *("crawl", *web.seeds(), *crawl_options(web, tmp_path / "out", 0)), "--memory", "50M", "--workers", "2"
        )
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "memory = 50M: too little for 2 workers" in done.stderr
    assert not (tmp_path / "out").exists()


def test_one_connection_under_the_least_ceiling_gives_the_same_sequence_twice_and_says_what_it_depends_on(
    tmp_path: Path,
) -> None:
    ceiling = min_bytes(1, MAX_BYTES)
    options = ("-c", "1", "--scope", "any", "--memory", str(ceiling))
    room = Budget.of(ceiling, workers=1, connections=1, max_bytes=MAX_BYTES).hosts
    with RunningWeb(preset("broad", domains=room + 200, pages=2 * room)) as web:
        seeds = web.seeds(room + 200)
        for name in ("first", "second"):
            done = run("crawl", *seeds, *crawl_options(web, tmp_path / name, 0), *options, is_new=True)
            assert done.returncode == 0, done.stderr
            said = [line for line in done.stderr.splitlines() if "order of requests" in line]
            assert len(said) == 1
            assert f"room for {room} hosts" in said[0]
    first, second = fetched_urls(tmp_path / "first"), fetched_urls(tmp_path / "second")
    assert len(first) > 1.5 * room
    assert first == second


def test_an_ordinary_crawl_says_nothing_about_its_order(tmp_path: Path) -> None:
    with RunningWeb(preset("small")) as web:
        done = run(
            "crawl", *web.seeds(), *crawl_options(web, tmp_path / "out", 0), "--max-pages", "20", "--memory", "90M"
        )
    assert done.returncode == 0
    assert "order of requests" not in done.stderr
