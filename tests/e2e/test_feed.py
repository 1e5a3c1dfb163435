"""The change feed beside a crawl that runs, and over crashes of either."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gossamer.reading.folder import CrawlReader
from gossamer.sim.web.web import preset
from tests.amount import some
from tests.e2e.preloaded import GOSSAMER
from tests.e2e.program import crawl_options, run, start
from tests.reading.folders import is_one_line
from tests.servers.web import RunningWeb

PAGES = 120
PACE_MS = 150


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def wait_for_changes(out: Path, count: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with CrawlReader(out) as crawl:
                if crawl.ledger.last_change() >= count:
                    return
        except Exception:  # the folder is being made
            pass
        time.sleep(0.1)
    pytest.fail("the crawl does not get on")


def settled(out: Path) -> tuple[Counter[str], set[str]]:
    """Return what the catalog says should be in the feed: pages, and what is gone."""
    with CrawlReader(out) as crawl:
        rows = [row for _, row in crawl.ledger.urls() if row.kind == 0 and row.source != 5]
        pages = Counter(row.url for row in rows if row.outcome == "ok")
        return pages, {row.url for row in rows if row.status in (404, 410)}


def assert_whole(lines: list[dict[str, Any]], out: Path) -> None:
    pages, gone = settled(out)
    assert [line["cursor"] for line in lines] == list(range(1, len(lines) + 1))
    assert Counter(line["url"] for line in lines if line["op"] in ("upsert", "duplicate")) == pages
    assert {line["url"] for line in lines if line["op"] == "gone"} == gone


@pytest.mark.parametrize("workers", some(["2", "1"], 1))
def test_the_sequence_is_right_after_kill_and_resume(tmp_path: Path, workers: str) -> None:
    out = tmp_path / "crawl"
    with RunningWeb(preset("small", pages=PAGES, slow=0.0)) as web:
        process = start("crawl", *web.seeds(), *crawl_options(web, out, PACE_MS), "--workers", workers)
        wait_for_changes(out, 20)
        time.sleep(0.3)  # into the next window, so that there is something to finish from the archive
        process.send_signal(signal.SIGKILL)
        process.communicate()
        before = lines_of(run("feed", str(out)).stdout)
        done = run("resume", str(out))
        assert done.returncode == 0, done.stderr
    after = lines_of(run("feed", str(out), "--after", str(before[-1]["cursor"])).stdout)
    assert len(before) >= 20
    assert after
    assert_whole(before + after, out)


def test_a_killed_reader_goes_on_from_its_cursor_and_ends_with_the_crawl(tmp_path: Path) -> None:
    out, kept = tmp_path / "crawl", tmp_path / "cursor"
    with RunningWeb(preset("small", pages=PAGES, slow=0.0)) as web:
        process = start("crawl", *web.seeds(), *crawl_options(web, out, PACE_MS))
        wait_for_changes(out, 10)
        command = [*GOSSAMER, "feed", str(out), "--follow", "--cursor-file", str(kept)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout is not None
            first = [reader.stdout.readline() for _ in range(12)]
            reader.kill()
            rest = reader.stdout.read()
        handed_over = lines_of("".join(first) + rest[: rest.rfind("\n") + 1])
        second = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert second.stderr == ""
        process.communicate()
        assert process.returncode == 0
    later = lines_of(second.stdout)
    # Some may come twice, none is missing.
    assert later[0]["cursor"] <= handed_over[-1]["cursor"] + 1
    together = {line["cursor"]: line for line in [*handed_over, *later]}
    assert_whole([together[cursor] for cursor in sorted(together)], out)
    assert kept.read_text() == f"{max(together)}\n"


def test_ctrl_c_keeps_the_cursor_of_what_was_handed_over(tmp_path: Path) -> None:
    out, kept = tmp_path / "crawl", tmp_path / "cursor"
    with RunningWeb(preset("small", pages=PAGES, slow=0.0)) as web:
        process = start("crawl", *web.seeds(), *crawl_options(web, out, PACE_MS))
        wait_for_changes(out, 10)
        command = [*GOSSAMER, "feed", str(out), "--follow", "--cursor-file", str(kept)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
            assert reader.stdout is not None
            assert reader.stderr is not None
            first = [reader.stdout.readline() for _ in range(10)]
            reader.send_signal(signal.SIGINT)
            lines = lines_of("".join(first) + reader.stdout.read())
            assert reader.stderr.read() == ""
        assert reader.returncode == 11
        # The signal may come between a line and its cursor: that line comes again.
        assert int(kept.read_text()) in (lines[-1]["cursor"] - 1, lines[-1]["cursor"])
        # And an export beside the running crawl holds whole pages only.
        exported = run("export", str(out), "--format", "jsonl")
        assert exported.returncode == 0, exported.stderr
        assert all(line["text"] for line in lines_of(exported.stdout))
        process.communicate()


def test_a_crawl_without_an_archive_says_so(tmp_path: Path) -> None:
    out = tmp_path / "crawl"
    with RunningWeb(preset("small", pages=20, slow=0.0)) as web:
        done = run("crawl", *web.seeds(), *crawl_options(web, out, 10), "--store", "files")
        assert done.returncode == 0, done.stderr
    refused = run("export", str(out), "--format", "jsonl")
    assert refused.returncode == 2
    assert "has no WARC archive" in refused.stderr
    assert is_one_line(refused.stderr)
