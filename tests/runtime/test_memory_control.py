from __future__ import annotations

from dataclasses import dataclass

from gossamer.model.commands import Command, CommitSoon, SetMemoryWindow
from gossamer.runtime.watch.memory_control import MemoryControl, MemoryLimits
from gossamer.sim.scenarios import START, Scenario, many_hosts

CEILING = 100_000_000


@dataclass(slots=True)
class Caches:
    """A ledger's memory."""

    pending: int = 0
    shrunk: int = 0
    forgotten: int = 0
    has_forgotten_signatures: bool = False

    def pending_count(self) -> int:
        return self.pending

    def shrink(self, *, forgets_pages: bool) -> None:
        self.shrunk += 1
        self.forgotten += forgets_pages


class Controlled:
    """Memory control over a crawl that has just begun."""

    def __init__(self, *, forgets_pages: bool = True) -> None:
        self.caches = Caches()
        self.submitted: list[Command] = []
        self.warnings: list[str] = []
        self.now = START
        crawl, _ = Scenario(many_hosts(2, 10), ["http://h0.test/", "http://h1.test/"]).prepare()
        self.control = MemoryControl(
            MemoryLimits(CEILING, 4, 64, body_bytes=10_000_000, max_pending=1000, forgets_pages=forgets_pages),
            crawl=crawl,
            ledger=self.caches,
            warn=lambda rule, text: self.warnings.append(f"{rule}: {text}"),
            submit=self.submitted.append,
            now=lambda: self.now,
        )
        self.crawl = crawl

    def answer(self, count: int) -> None:
        """Count answers of 1,000 bytes."""
        self.crawl.totals.fetches += count
        self.crawl.totals.bytes += 1000 * count


def test_with_room_and_answers_the_window_grows_and_each_change_is_submitted_once() -> None:
    run = Controlled()
    run.crawl.tasks(run.now)
    assert run.crawl.frontier.in_flight == 2, "half of the window is used"
    run.control.on_memory(CEILING // 10)
    assert run.submitted == []
    run.answer(10)
    run.control.on_memory(CEILING // 10)
    run.control.on_memory(CEILING // 10)
    assert run.submitted == [SetMemoryWindow(14)]


def test_many_uncommitted_changes_ask_for_a_commit() -> None:
    run = Controlled()
    run.caches.pending = 1000
    run.control.on_memory(CEILING // 10)
    assert run.submitted == [CommitSoon()]


def test_over_the_ceiling_caches_shrink_a_commit_is_asked_for_and_one_warning_is_emitted() -> None:
    run = Controlled()
    for _ in range(3):
        run.now += 2.0
        run.control.on_memory(2 * CEILING)
    assert run.caches.shrunk == 3
    assert run.submitted.count(CommitSoon()) == 3
    (warning,) = run.warnings
    assert warning.startswith("memory: ")


def test_over_the_ceiling_pages_are_forgotten_only_if_the_order_may_depend_on_memory() -> None:
    for forgets_pages in (True, False):
        run = Controlled(forgets_pages=forgets_pages)
        run.control.on_memory(2 * CEILING)
        assert run.caches.shrunk == 1
        assert run.caches.forgotten == forgets_pages


def test_near_duplicates_among_newer_pages_only_are_warned_of_once() -> None:
    run = Controlled()
    run.caches.has_forgotten_signatures = True
    run.control.on_memory(CEILING // 10)
    run.control.on_memory(CEILING // 10)
    (warning,) = run.warnings
    assert "near duplicates" in warning
