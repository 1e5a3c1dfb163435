"""What is done where memory comes near its ceiling."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gossamer.runtime.watch.memory_control import MemoryGuard, Use, Window

CEILING = 100 << 20
MB = 1 << 20


class Crawl:
    """A crawl in which every answer has the same size, and that many requests are out as may be."""

    def __init__(self, *, least: int, most: int, body_bytes: int = 1 << 40) -> None:
        self.done: list[str] = []
        self.window = Window(least, most, body_bytes)
        self.guard = MemoryGuard(
            CEILING,
            self.window,
            relieve=lambda: self.done.append("relieve"),
            shrink=lambda: self.done.append("shrink"),
        )
        self.answers = self.bytes = 0
        self.now = 0.0

    def tick(self, in_use: int, answers: int = 0, size: int = 1000, in_flight: int | None = None) -> str:
        self.now += 0.05
        self.answers += answers
        self.bytes += answers * size
        out = self.window.size if in_flight is None else in_flight
        return self.guard.update(Use(in_use, out, self.answers, self.bytes), self.now)


def test_the_window_doubles_with_each_round_of_answers_while_there_is_room() -> None:
    crawl = Crawl(least=4, most=256)
    sizes = [crawl.tick(50 * MB) or crawl.window.size]
    for _ in range(7):
        crawl.tick(50 * MB, answers=crawl.window.size)
        sizes.append(crawl.window.size)
    assert sizes == [4, 8, 16, 32, 64, 128, 256, 256]


def test_answers_of_earlier_runs_do_not_count() -> None:
    crawl = Crawl(least=4, most=256)
    crawl.answers = 1_000_000
    crawl.tick(50 * MB)
    assert crawl.window.size == 4


def test_a_window_that_is_not_used_does_not_grow() -> None:
    crawl = Crawl(least=4, most=256)
    crawl.tick(50 * MB)
    crawl.tick(50 * MB, answers=100, in_flight=1)
    assert crawl.window.size == 4


def test_large_answers_use_what_others_leave_free() -> None:
    crawl = Crawl(least=2, most=256, body_bytes=40 * MB)
    crawl.tick(15 * MB)
    for _ in range(20):
        crawl.tick(15 * MB, answers=crawl.window.size, size=10 * MB)
    assert crawl.window.size == 6
    crawl.tick(70 * MB)
    assert crawl.window.size == 4


def test_large_answers_leave_room_for_few() -> None:
    crawl = Crawl(least=2, most=256, body_bytes=40 * MB)
    crawl.tick(50 * MB)
    for _ in range(20):
        crawl.tick(50 * MB, answers=crawl.window.size, size=10 * MB)
        assert crawl.window.size <= 4, "from the first answer on"
    assert crawl.window.size == 4
    for _ in range(100):
        crawl.tick(50 * MB, answers=crawl.window.size, size=MB // 10)
    assert crawl.window.size == 256
    for _ in range(20):
        crawl.tick(50 * MB, answers=64, size=2 * MB)
    assert crawl.window.size == 20


def test_near_the_ceiling_the_window_is_halved_once_a_second_and_grows_slowly_after() -> None:
    crawl = Crawl(least=4, most=256)
    crawl.tick(50 * MB)
    crawl.tick(50 * MB, answers=60)
    assert crawl.window.size == 64
    for _ in range(10):
        crawl.tick(95 * MB)
    assert crawl.window.size == 32
    assert crawl.done == ["relieve"]
    for _ in range(20):
        crawl.tick(95 * MB)
    assert crawl.window.size == 16
    crawl.tick(50 * MB, answers=16)
    assert crawl.window.size == 17


def test_between_the_marks_nothing_changes() -> None:
    crawl = Crawl(least=4, most=256)
    crawl.tick(80 * MB)
    crawl.tick(80 * MB, answers=100)
    assert crawl.window.size == 4
    assert crawl.done == []


def test_over_the_ceiling_caches_are_let_go_and_one_warning_says_so() -> None:
    crawl = Crawl(least=4, most=256)
    warnings = [crawl.tick(120 * MB) for _ in range(50)]
    assert [warning for warning in warnings if warning] == [
        "120M of memory in use, over the ceiling of 100M: fewer concurrent requests, smaller caches"
    ]
    assert crawl.done == ["relieve", "shrink"] * 3
    assert crawl.window.size == 4, "it is never less than the least"


@given(
    st.integers(1, 8),
    st.integers(0, 500),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 300), st.integers(0, 5_000_000)), max_size=60),
)
def test_the_window_stays_between_its_ends_whatever_happens(
    least: int, spread: int, ticks: list[tuple[int, int, int]]
) -> None:
    crawl = Crawl(least=least, most=least + spread, body_bytes=20 * MB)
    for in_use_mb, answers, size in ticks:
        crawl.tick(in_use_mb * MB, answers=answers, size=size)
        assert least <= crawl.window.size <= least + spread
