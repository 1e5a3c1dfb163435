"""A word means one thing wherever it is shown: words, held, dead, gone, blocked; and no counter is left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.program import crawl_options, run
from tests.servers.web import RunningWeb

COUNTERS = ("fetched", "enqueued", "errors", "unique_domains", "frontier_size")
QUICK = ("--retry-wait", "0.05", "--timeout", "1", "--max-wait", "1")
MAX_BYTES = 9000


def events_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted((out / "events").glob("*.jsonl")) for line in path.open()]


def json_of(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*words, "--json").stdout)
    return found


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("rough", domains=10, hosts=12, pages=240, slow=0.0)) as web:
        yield web


@pytest.fixture(scope="module")
def crawled(web: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rough") / "c"
    done = run("crawl", *web.seeds(), *crawl_options(web, out, 5), *QUICK, "--max-bytes", str(MAX_BYTES))
    assert done.returncode == 0, done.stderr
    return out


def test_every_heartbeat_has_its_five_counters(tmp_path: Path) -> None:
    """Also those that are zero: this web has no errors, and in the end nothing is queued."""
    with RunningWeb(preset("small", pages=110, slow=0.0)) as web:
        out = tmp_path / "c"
        assert run("crawl", *web.seeds(), *crawl_options(web, out, 5)).returncode == 0
    beats = [event for event in events_of(out) if event["event"] == "heartbeat"]
    assert len(beats) >= 3
    for beat in beats:
        assert [name for name in COUNTERS if name not in beat] == []
    assert beats[-1]["frontier_size"] == 0
    others = [event for event in events_of(out) if event["event"] == "fetch_ok"]
    assert not [event for event in others if event.keys() & set(COUNTERS)]


def test_a_truncated_page_says_so_in_its_event_and_a_whole_one_does_not(crawled: Path) -> None:
    pages = [event for event in events_of(crawled) if event["event"] == "fetch_ok"]
    cut = [event for event in pages if event.get("truncated")]
    assert {event["truncated"] for event in cut} == {"length"}
    assert 0 < len(cut) < len(pages)
    assert json_of("report", str(crawled))["summary"]["cuts"]["truncated_pages"] == len(cut)


def test_words_are_those_of_the_visible_text_everywhere(crawled: Path, tmp_path: Path) -> None:
    report = json_of("report", str(crawled))
    target = tmp_path / "pages.jsonl"
    assert run("export", str(crawled), "--format", "jsonl", "-o", str(target)).returncode == 0
    pages = [json.loads(line) for line in target.open()]
    assert len(pages) == report["summary"]["pages"]
    assert sum(page["words"] for page in pages) == report["corpus"]["words"] > 0
    assert all(page["text_words"] == len(page["text"].split()) for page in pages)
    listed = [json.loads(line) for line in run("pages", str(crawled), "--json", "--limit", "0").stdout.splitlines()]
    words = {row["url"]: row["words"] for row in listed if "url" in row}
    assert words == {page["url"]: page["words"] for page in pages}


def test_dead_letters_are_counted_alike_everywhere(crawled: Path) -> None:
    summary = json_of("report", str(crawled))["summary"]
    listed = run("retry", str(crawled), "--list", "--json").stdout.splitlines()
    missing = [json.loads(line) for line in run("missing", str(crawled), "--json", "--limit", "0").stdout.splitlines()]
    errors = [event for event in events_of(crawled) if event["event"] == "error" and event.get("kind") != "dns"]
    assert summary["dead"] > 0
    assert len({json.loads(line)["url"] for line in listed}) == summary["dead"]
    assert len({event["url"] for event in errors}) == summary["dead"]
    assert {event["url"] for event in errors} <= {line.get("url") for line in missing}
