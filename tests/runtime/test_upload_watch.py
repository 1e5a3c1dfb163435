"""What is uploaded beside commits, and the bound on what waits for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gossamer.model.commands import Command, Pause, Resume
from gossamer.runtime.stores.upload_watch import UploadWatch, WatchLimits
from tests.runtime.test_segment_uploads import Spool


class Watched:
    """A spool that is watched."""

    def __init__(self, spool: Spool, **limits: float) -> None:
        self.spool = spool
        self.commands: list[Command] = []
        self.warnings: list[str] = []
        wanted = WatchLimits(1000, **{"retry_s": 0.0, "give_up_s": 0.0, "warn_every_s": 30.0, **limits})
        self.watch = UploadWatch(
            spool.uploads, wanted, self.commands.append, lambda _, text: self.warnings.append(text)
        )


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


def test_a_full_spool_pauses_fetching_until_it_is_well_below(spool: Spool) -> None:
    watched = Watched(spool)
    watched.watch.look(999)
    assert watched.commands == []
    watched.watch.look(1000)
    assert set(watched.commands) == {Pause("spool")}
    watched.watch.look(900)
    assert set(watched.commands) == {Pause("spool")}, "a little below is not enough"
    watched.watch.look(800)
    assert watched.commands[-1] == Resume("spool")
    assert len(watched.warnings) == 1
    assert "--spool allows 1.0 kB" in watched.warnings[0]


def test_a_spool_that_stays_full_is_reported_again(spool: Spool) -> None:
    watched = Watched(spool, warn_every_s=0.0)
    watched.watch.look(2000)
    watched.watch.look(2000)
    assert len(watched.warnings) == 2


def test_the_end_waits_until_everything_is_merged(spool: Spool) -> None:
    watched = Watched(spool)
    spool.add(b"one")
    spool.writer.close()
    assert asyncio.run(watched.watch.finish(lambda: False)) == ""
    assert spool.keys("segments/") == []
    assert len(spool.keys("archive/")) == 1


def test_the_end_of_a_stopped_crawl_does_not_wait_for_a_store_that_is_away(spool: Spool) -> None:
    watched = Watched(spool)
    spool.add(b"one")
    spool.writer.close()
    spool.store.is_away = True
    left = asyncio.run(watched.watch.finish(lambda: True))
    assert "are not merged there yet: resume does that" in left
    spool.store.is_away = False
    assert spool.restarted().tidy()


def test_the_end_of_a_crawl_that_is_over_waits_for_a_store_and_says_so(spool: Spool) -> None:
    watched = Watched(spool)
    spool.add(b"one")
    spool.writer.close()
    spool.store.is_away = True

    async def come_back() -> None:
        while not watched.warnings:
            await asyncio.sleep(0)
        spool.store.is_away = False

    async def end() -> str:
        left, _ = await asyncio.gather(watched.watch.finish(lambda: False), come_back())
        return left

    assert asyncio.run(end()) == ""
    assert "the crawl ends when the store has its last files" in watched.warnings[0]
    assert len(spool.keys("archive/")) == 1
