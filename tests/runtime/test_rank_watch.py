"""When ranks are computed beside a crawl, and what becomes of a job that fails."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from gossamer.model.errors import GossamerError
from gossamer.runtime.ranks.rank_job import RankJob
from gossamer.runtime.ranks.rank_watch import is_due


@pytest.mark.parametrize(
    ("pages", "last", "due"),
    [(99, 0, False), (100, 0, True), (199, 100, False), (200, 100, True), (1200, 1000, False), (1250, 1000, True)],
)
def test_a_ranking_is_due_after_n_pages_and_a_quarter_of_the_last(pages: int, last: int, due: bool) -> None:
    assert is_due(pages, last, 100) is due


def test_all_rankings_together_read_five_times_the_pages_at_most() -> None:
    read = last = 0
    for pages in range(0, 1_000_000, 50):
        if is_due(pages, last, 1000):
            read, last = read + pages, pages
    assert 3 * 1_000_000 < read <= 5 * 1_000_000


def test_a_job_that_fails_says_why_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(GossamerError) as caught:
        asyncio.run(RankJob(str(tmp_path)).run())
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_job_ends_with_the_crawl_that_started_it(tmp_path: Path) -> None:
    """Cancelled, as at the end of a crawl: its process is gone when the cancellation is over."""
    pid = tmp_path / "pid"
    script = tmp_path / "job.py"
    script.write_text(f"import os, sys\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\nsys.stdin.read()\n")

    async def cancel_it() -> None:
        task = asyncio.create_task(RankJob(str(script), [sys.executable]).run())
        while not pid.exists() or not pid.read_text():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_it())
    assert not Path(f"/proc/{pid.read_text()}").exists()
