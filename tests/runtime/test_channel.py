"""Channels to workers: frames cut anywhere, processes that die, hang or are left alone."""

from __future__ import annotations

import asyncio
import errno
import gzip
import os
import random
import signal
import socket
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.url.forms import link_to
from gossamer.fetch.identity import Identity
from gossamer.fetch.limits import FetchLimits
from gossamer.model.errors import DiskFullError, GossamerError
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.runtime.session.clock import TimeLine
from gossamer.runtime.stores.sinks import SinkConfig
from gossamer.runtime.watch.crash import Crash
from gossamer.runtime.workers import messages
from gossamer.runtime.workers.answers import WorkerRules
from gossamer.runtime.workers.channel import Channel, LocalChannel, ProcessChannel
from gossamer.runtime.workers.factory import WorkerConfig
from gossamer.runtime.workers.worker import BIG_BYTES

WITHIN_S = 20.0  # whatever a test waits for


class Hub:
    """Writes down what channels report."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self.sent: list[int] = []
        self.failures: list[GossamerError] = []
        self.lost: list[int] = []
        self.causes: list[str] = []
        self.crashes: list[Crash] = []
        self.changed = asyncio.Event()

    def on_result(self, result: Result) -> None:
        self.results.append(result)
        self.changed.set()

    def on_sent(self, task_id: int, sent_at: float) -> None:
        self.sent.append(task_id)

    def on_failure(self, error: GossamerError) -> None:
        self.failures.append(error)
        self.changed.set()

    def on_crash(self, crash: Crash) -> None:
        self.crashes.append(crash)

    def on_lost(self, number: int, cause: str) -> None:
        self.lost.append(number)
        self.causes.append(cause)
        self.changed.set()

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(WITHIN_S):
            while not is_so():
                self.changed.clear()
                await self.changed.wait()


def config(tmp_path: Path, number: int = 3) -> WorkerConfig:
    return WorkerConfig(
        rules=WorkerRules(number=number),
        limits=FetchLimits.from_timeout(2.0, 1 << 20),
        identity=Identity("Gossamer/test"),
        allowed_networks=("127.0.0.0/8",),
        allowed_addresses=(),
        time_line=TimeLine.begin(),
        sinks=SinkConfig(("warc",), str(tmp_path), "crawl", 100, {}),
        ca_file="",
        copies=100,
    )


def process(tmp_path: Path, hub: Hub) -> ProcessChannel:
    """Return a channel to a worker process, not opened yet."""
    (tmp_path / "state").mkdir()
    ledger = LocalLedger(tmp_path / "state")
    ledger.open()
    ledger.close()
    return ProcessChannel(config(tmp_path), str(tmp_path / "state"), hub, is_replacement=False)


def closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def task(number: int, port: int) -> FetchTask:
    url = f"http://a.test:{port}/{number}"
    return FetchTask(number, FetchKind.PAGE, url, link_to(url).id, "a.test", ("127.0.0.1",), 0, 0, 0, 0.0)


def run(main: Callable[[Hub], Awaitable[None]]) -> None:
    async def started() -> None:
        async with asyncio.timeout(3 * WITHIN_S):
            await main(Hub())

    asyncio.run(started())


# -- frames -----------------------------------------------------------------------------------------

MESSAGES: list[messages.Message] = [
    messages.Sync(7),
    messages.Results([Result(1, Outcome.OK, status=200, title="x" * 300), Result(2, Outcome.TIMEOUT)]),
    messages.Sent(3, 12.5),
    messages.Close(),
    messages.Results([]),
    messages.Failed("DiskFullError", "no room"),
]
STREAM = b"".join(map(messages.frame, MESSAGES))


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_messages_come_out_whole_wherever_their_frames_are_cut(cuts: list[int]) -> None:
    reader = messages.FrameReader()
    edges = [0, *sorted(cuts), len(STREAM)]
    parts = [STREAM[start:end] for start, end in pairwise(edges)]
    assert [message for part in parts for message in reader.feed(part)] == MESSAGES


def test_messages_come_out_whole_byte_by_byte() -> None:
    reader = messages.FrameReader()
    assert [message for byte in STREAM for message in reader.feed(bytes([byte]))] == MESSAGES


def test_a_frame_that_is_not_whole_is_waited_for() -> None:
    reader = messages.FrameReader()
    assert list(reader.feed(STREAM[:-1])) == MESSAGES[:-1]
    assert list(reader.feed(b"")) == []
    assert list(reader.feed(STREAM[-1:])) == MESSAGES[-1:]


def test_a_channel_reports_in_order_what_arrives_in_pieces(tmp_path: Path) -> None:
    async def main(hub: Hub) -> None:
        channel = process(tmp_path, hub)
        data = messages.frame(MESSAGES[1]) + messages.frame(MESSAGES[2]) + messages.frame(MESSAGES[5])
        source = random.Random(1)
        while data:
            size = source.randint(1, 20)
            channel.data_received(data[:size])
            data = data[size:]
        assert [result.task_id for result in hub.results] == [1, 2]
        assert hub.sent == [3]
        assert [type(failure) for failure in hub.failures] == [DiskFullError]

    run(main)


def test_a_message_that_only_hubs_send_is_an_error(tmp_path: Path) -> None:
    async def main(hub: Hub) -> None:
        with pytest.raises(GossamerError, match="unexpected message Close"):
            process(tmp_path, hub).data_received(messages.frame(messages.Close()))

    run(main)


# -- a worker in this process, and in one of its own ------------------------------------------------


@pytest.mark.parametrize("kind", ["local", "process"])
def test_every_task_has_one_result_and_the_files_are_finished(tmp_path: Path, kind: str) -> None:
    async def main(hub: Hub) -> None:
        channel: Channel
        if kind == "local":
            channel = LocalChannel(config(tmp_path), lambda _hash: None, hub)
        else:
            channel = process(tmp_path, hub)
        await channel.open()
        async with Answering() as port:
            channel.start([task(1, port), task(2, port)])
            channel.start([task(3, closed_port())])
            await hub.until(lambda: len(hub.results) == 3)
            await channel.sync()
            report = await channel.close()
        outcomes = {result.task_id: result.outcome for result in hub.results}
        assert outcomes == {1: Outcome.OK, 2: Outcome.OK, 3: Outcome.CONNECT_FAILED}
        (path,) = (tmp_path / "archive").iterdir()
        assert path.name.endswith("-03-00000.warc.gz")
        assert (report is not None) == (kind == "process")
        assert (hub.lost, hub.failures) == ([], [])

    run(main)


class Answering:
    """A server that gives every request the same page, packed if it is not small."""

    def __init__(self, size: int = 8) -> None:
        body = b"<p>" + b"x" * (size - 7) + b"</p>"
        coding = b"" if size == 8 else b"Content-Encoding: gzip\r\n"
        body = gzip.compress(body) if coding else body
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%bContent-Length: %d\r\n\r\n"
        self._answer = head % (coding, len(body)) + body

    async def __aenter__(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


# -- processes that die -----------------------------------------------------------------------------


def test_a_process_that_dies_is_reported_once_and_nobody_waits_for_it(tmp_path: Path) -> None:
    async def main(hub: Hub) -> None:
        channel = process(tmp_path, hub)
        await channel.open()
        await channel.sync()
        os.kill(channel.pid, signal.SIGSTOP)  # so that the sync is under way when it dies
        syncing = asyncio.create_task(channel.sync())
        await asyncio.sleep(0)
        os.kill(channel.pid, signal.SIGKILL)
        await syncing
        await hub.until(lambda: hub.lost)
        channel.start([task(1, 1)])
        channel.mark_links_final(1)
        await channel.sync()
        assert await channel.close() is None
        assert hub.lost == [3]
        assert hub.causes == ["was killed by SIGKILL"]

    run(main)


@pytest.mark.parametrize("stage", ["in_decode", "in_parse"])
@pytest.mark.parametrize("size", [10, BIG_BYTES + 1])
def test_a_dead_process_leaves_behind_which_answer_it_was_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, size: int
) -> None:
    monkeypatch.setenv("GOSSAMER_FAILPOINT", f"{stage}:kill:@/7")

    async def main(hub: Hub) -> None:
        async with Answering(size) as port:
            channel = process(tmp_path, hub)
            await channel.open()
            assert channel.reading() == []
            channel.start([task(number, port) for number in (5, 6, 7)])
            await hub.until(lambda: hub.lost)
            assert 7 in channel.reading()  # an earlier big one may still be read in its thread

    run(main)


def test_a_stopped_process_is_killed_and_no_commit_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gossamer.runtime.workers.channel.SYNC_LIMIT_S", 0.2)

    async def main(hub: Hub) -> None:
        channel = process(tmp_path, hub)
        await channel.open()
        await hub.until(lambda: channel.pid)
        os.kill(channel.pid, signal.SIGSTOP)
        async with asyncio.timeout(WITHIN_S):
            await channel.sync()
        assert hub.lost == [3], "before the commit goes on: what the process left is finished first"
        assert hub.causes == ["did not answer for 0.2 s"]
        with pytest.raises(ProcessLookupError):
            os.kill(channel.pid, 0)

    run(main)


def test_a_process_that_cannot_start_is_reported_as_lost(tmp_path: Path) -> None:
    async def main(hub: Hub) -> None:
        channel = ProcessChannel(config(tmp_path), str(tmp_path / "no" / "ledger"), hub, is_replacement=False)
        await channel.open()
        await hub.until(lambda: hub.lost)
        assert hub.lost == [3]
        assert hub.causes == ["ended with status 1"]
        assert "ledger" in str(hub.failures[0])
        assert await channel.close() is None

    run(main)


def test_a_process_that_died_of_a_damaged_ledger_stops_the_crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "gossamer.runtime.workers.channel.WORKER_STATUS", -signal.SIGKILL
    )  # as if that were how it ends

    async def main(hub: Hub) -> None:
        channel = process(tmp_path, hub)
        await channel.open()
        await channel.sync()
        os.kill(channel.pid, signal.SIGKILL)
        await hub.until(lambda: hub.failures)
        await channel.close()
        assert "the ledger is damaged: it ended worker" in str(hub.failures[0])
        assert hub.lost == [], "no page is to blame"

    run(main)


def test_what_a_lost_process_left_and_cannot_be_read_back_stops_the_crawl(tmp_path: Path) -> None:
    class UnreadableHub(Hub):
        def on_lost(self, number: int, cause: str) -> None:
            super().on_lost(number, cause)
            raise OSError(errno.EIO, "Input/output error")

    async def main(_hub: Hub) -> None:
        hub = UnreadableHub()
        channel = process(tmp_path, hub)
        await channel.open()
        await channel.sync()
        os.kill(channel.pid, signal.SIGKILL)
        await hub.until(lambda: hub.lost)
        await channel.close()
        assert "Input/output error" in str(hub.failures[0])

    run(main)


def test_a_process_that_does_not_end_in_time_is_killed_and_what_it_left_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gossamer.runtime.workers.channel.CLOSE_LIMIT_S", 0.05)

    async def main(hub: Hub) -> None:
        channel = process(tmp_path, hub)
        await channel.open()
        await channel.sync()
        os.kill(channel.pid, signal.SIGSTOP)
        assert await channel.close() is None
        with pytest.raises(ProcessLookupError):
            os.kill(channel.pid, 0)
        assert hub.lost == [3]
        assert hub.causes == ["was killed by SIGKILL while it finished its files"]

    run(main)


def test_a_process_whose_hub_is_gone_ends_and_leaves_its_file_open(tmp_path: Path) -> None:
    async def main(hub: Hub) -> None:
        channel = process(tmp_path, hub)
        await channel.open()
        async with Answering() as port:
            channel.start([task(1, port)])
            await hub.until(lambda: hub.results)
        assert channel._transport is not None
        channel._transport.close()
        await hub.until(lambda: hub.lost)
        assert channel._process is not None
        async with asyncio.timeout(WITHIN_S):
            assert await channel._process.wait() == 1
        (path,) = (tmp_path / "archive").iterdir()
        assert path.suffix == ".open"

    run(main)
