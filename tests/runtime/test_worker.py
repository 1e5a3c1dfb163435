"""Answers that arrive together: all are read, then stored, then reported."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from gossamer.fetch.http import Fetcher
from gossamer.fetch.identity import Identity
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.errors import DiskFullError, GossamerError
from gossamer.model.exchanges import Exchange
from gossamer.model.records import ContentRecord, FetchKind, FetchTask, Outcome, Result
from gossamer.ports.page_sink import FetchedPage, Volume
from gossamer.runtime.watch.crash import Crash
from gossamer.runtime.workers import worker as worker_module
from gossamer.runtime.workers.answers import WorkerRules
from gossamer.runtime.workers.worker import Worker

ONE, TWO = b"<p>some words of a page", b"<p>other words"


class Recorder:
    """A sink and a hub that write down what happens, and know the contents that were reported."""

    volume = Volume()

    def __init__(self, *, full_at: int = 0) -> None:
        self.log: list[str] = []
        self.previews: list[str] = []
        self.known: dict[bytes, int] = {}
        self._full_at = full_at

    def first_copy(self, content: bytes) -> ContentRecord | None:
        return ContentRecord(b"", f"http://a.test/{self.known[content]}", 0.0, b"") if content in self.known else None

    def prepare(self, page: FetchedPage) -> None:
        self.log.append(f"read {page.task.id}")

    def write(self, page: FetchedPage, result: Result) -> None:
        if page.task.id == self._full_at:
            raise DiskFullError("no room")
        self.log.append(f"store {page.task.id}" + (" as a copy" if page.first_copy is not None else ""))

    def sync(self) -> None:
        pass

    def close(self) -> None:
        self.log.append("close")

    def on_result(self, result: Result) -> None:
        self.previews.append(result.preview)
        self.known.setdefault(result.content_hash, result.task_id)
        self.log.append(f"report {result.task_id}")

    def on_sent(self, task_id: int, sent_at: float) -> None:
        pass

    def on_failure(self, error: GossamerError) -> None:
        self.log.append(f"fail: {error}")

    def on_crash(self, crash: Crash) -> None:
        self.log.append("crash")


async def arrive(
    recorder: Recorder,
    *contents: bytes,
    closes: bool = False,
    kind: FetchKind = FetchKind.PAGE,
    rules: WorkerRules = WorkerRules(),  # noqa: B008 - frozen
) -> list[str]:
    """Have answers with these contents arrive at once; return what is done with them."""
    fetcher = Fetcher(FetchLimits(), Identity("Gossamer"), AddressPolicy(), time.time)
    worker = Worker(rules, fetcher, [recorder], recorder.first_copy, recorder)
    for number, content in enumerate(contents, 1):
        url = f"http://a.test/{number}"
        task = FetchTask(number, kind, url, b"", "a.test", ("127.0.0.1",), 0, 0, 0, 0.0)
        headers = [("content-type", "text/html")]
        head = b"HTTP/1.1 200 OK\r\n\r\n"
        exchange = Exchange(url, Outcome.OK, status=200, headers=headers, response_head=head)
        exchange.body = exchange.content = content
        worker._enqueue(task, exchange)
    if not closes:
        while worker._is_draining:
            await asyncio.sleep(0)
    await worker.close()
    return recorder.log[:-1]


def steps(*words: str) -> list[str]:
    return [f"{verb} {number}" for verb in words for number in (1, 2)]


def test_pages_are_read_then_stored_then_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "SLICE_S", 60.0)
    assert asyncio.run(arrive(Recorder(), ONE, TWO)) == steps("read", "store", "report")


def test_a_page_is_reported_before_a_copy_of_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "SLICE_S", 60.0)
    log = asyncio.run(arrive(Recorder(), ONE, TWO, ONE, TWO))
    begun = [f"read {number}" for number in (1, 2, 3, 4)]
    assert log == [*begun, *steps("store", "report"), "store 3 as a copy", "store 4 as a copy", "report 3", "report 4"]


def test_without_time_for_more_there_is_one_page_in_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "SLICE_S", 0.0)
    expected = [f"{verb} {number}" for number in (1, 2) for verb in ("read", "store", "report")]
    assert asyncio.run(arrive(Recorder(), ONE, TWO)) == expected


def test_a_robots_txt_whose_rules_may_take_the_hub_long_ends_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "SLICE_S", 60.0)
    expected = [f"{verb} {number}" for number in (1, 2) for verb in ("read", "store", "report")]
    assert asyncio.run(arrive(Recorder(), b"a", b"b", kind=FetchKind.ROBOTS)) == expected


def test_a_group_of_small_pages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "SLICE_S", 60.0)
    log = asyncio.run(arrive(Recorder(), *(b"<p>page %d" % number for number in range(20))))
    assert log.index("read 9") > log.index("report 8") > log.index("store 8") > log.index("read 8")


def test_what_cannot_be_stored_is_not_reported_and_the_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "SLICE_S", 60.0)
    log = asyncio.run(arrive(Recorder(full_at=1), ONE, TWO))
    assert log == ["read 1", "read 2", "fail: no room", "store 2", "report 2"]


def test_what_has_arrived_when_a_worker_is_closed_is_finished() -> None:
    log = asyncio.run(arrive(Recorder(), ONE, TWO, ONE, closes=True))
    for verb in ("read", "store", "report"):
        assert sum(line.startswith(verb) for line in log) == 3


class SlowDisk(Recorder):
    """A sink that writes in the thread from which it is called, and must not be called from two at once."""

    def __init__(self, *, full_at: int = 0) -> None:
        super().__init__(full_at=full_at)
        self.threads: dict[int, str] = {}
        self._writing = threading.Lock()

    def write(self, page: FetchedPage, result: Result) -> None:
        assert self._writing.acquire(blocking=False), "two answers are written at the same time"
        try:
            self.threads[page.task.id] = threading.current_thread().name
            if len(page.exchange.body) > 1000:
                self.wait_for_others()
            super().write(page, result)
        finally:
            self._writing.release()

    def wait_for_others(self) -> None:
        """Give the others time to be written meanwhile."""
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            pass


@pytest.mark.parametrize("closes", [True, False])
def test_a_huge_answer_is_stored_in_a_thread_and_others_wait(monkeypatch: pytest.MonkeyPatch, *, closes: bool) -> None:
    monkeypatch.setattr(worker_module, "BIG_BODY_BYTES", 1000)
    monkeypatch.setattr(worker_module, "BIG_BYTES", 500)
    monkeypatch.setattr(worker_module, "SLICE_S", 0.0)
    disk = SlowDisk()
    contents = [b"x" * 600, b"y" * 2000, *(b"<p>page %d" % number for number in range(30)), b"z" * 2000, b"v" * 700]
    log = asyncio.run(arrive(disk, *contents, closes=closes))
    numbers = set(range(1, len(contents) + 1))
    for verb in ("read", "store", "report"):
        assert {int(line.split()[1]) for line in log if line.startswith(verb)} == numbers
    assert {number for number, thread in disk.threads.items() if thread.startswith("huge")} == {2, 33}


def test_a_worker_that_is_closed_does_not_write_beside_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "BIG_BODY_BYTES", 1000)
    monkeypatch.setattr(worker_module, "BIG_BYTES", 500)
    monkeypatch.setattr(worker_module, "SLICE_S", 0.0)
    process_some, overlaps = Worker._process_some, list[bool]()

    def process_and_check(worker: Worker) -> None:
        overlaps.append(not worker._sinks_free.is_set())
        process_some(worker)

    monkeypatch.setattr(Worker, "_process_some", process_and_check)
    pages = [b"<p>page %d" % number for number in range(300)]
    contents = [b"x" * 2000, b"<p>a", b"y" * 2000, *pages, b"z" * 2000, *(page + b"b" for page in pages)]
    log = asyncio.run(arrive(SlowDisk(), *contents, closes=True))
    assert sum(line.startswith("report") for line in log) == len(contents)
    assert not any(overlaps)
    assert "crash" not in log


def test_a_huge_answer_for_which_there_is_no_room_stops_the_worker_and_holds_up_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_module, "BIG_BODY_BYTES", 1000)
    monkeypatch.setattr(worker_module, "BIG_BYTES", 500)
    log = asyncio.run(arrive(SlowDisk(full_at=1), b"x" * 2000, ONE))
    assert "fail: no room" in log
    assert "report 1" not in log
    assert "report 2" in log


def test_the_first_words_are_read_of_as_many_pages_as_somebody_wants_to_see() -> None:
    recorder = Recorder()
    menu = b"<ul><li>Home<li>Shop</ul><p>The third kiln fires at 1,280 degrees, twice a week."
    asyncio.run(arrive(recorder, ONE, b"", menu, TWO, rules=WorkerRules(previews=2)))
    assert recorder.previews == ["some words of a page", "", "The third kiln fires at 1,280 degrees, twice a week.", ""]
