"""Messages and rows in a shared ledger that no node has written: each is named, and the node goes on."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import redis

from gossamer.backends.redis import arguments
from gossamer.backends.redis.shared_ledger import RedisSharedLedger
from gossamer.core.url.identity import host_id, shard_of, use, with_record
from gossamer.engine.cluster.link_messages import LinkMessage, NodeMessage, RobotsQuestion, encode_message
from gossamer.model.records import FetchKind, HostRecord, Source
from gossamer.sim.web.web import preset
from tests.e2e.program import run
from tests.e2e.test_cluster import LEASE_S, Nodes
from tests.servers import engines
from tests.servers.redis import RedisServer, running
from tests.servers.web import RunningWeb


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", seed=3, pages=60)) as web:
        yield web


def _link(url: str, depth: int = 1, source: Source = Source.LINK) -> LinkMessage:
    return LinkMessage(url, depth, source, FetchKind.PAGE)


def _send(client: redis.Redis, crawl: str, shard: int, number: int, links: bytes) -> None:
    """Append to an inbox what a commit of a node named `evil` would have."""
    client.rpush(f"gossamer:{crawl}:inbox:{shard}", arguments.message(f"evil/1/{number}".encode(), links))
    client.hincrby(f"gossamer:{crawl}:inboxes", str(shard), 1)


def warnings_of(folder: Path) -> list[str]:
    (file,) = (folder / "events").glob("*.jsonl")
    events = map(json.loads, file.read_text().splitlines())
    return [event["reason"] for event in events if event.get("rule") == "message_refused"]


def test_poisoned_messages_are_set_aside_and_the_honest_ones_are_received(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    nodes = Nodes(web, server, tmp_path, more=["--politeness-ms", "200"])
    nodes.start("a")
    client = server.client()
    nodes.wait_for(lambda: client.hlen("gossamer:crawl:owners"))
    record = RedisSharedLedger(client, nodes.name).record()
    assert record is not None
    use(with_record(record.ids))
    site = web.seeds()[0]
    shard = shard_of(host_id(site.split("/")[2].partition(":")[0]))
    private = socket.create_server(("127.200.0.1", 0))
    inside = f"http://127.200.0.1:{private.getsockname()[1]}/"
    poisoned = [
        b"\xff\xfe",
        b"",
        encode_message(NodeMessage(links=[_link(f"{site}cut-off")]))[:-5],
        b"\x91" * 100_000,
        encode_message(NodeMessage(links=[_link("javascript:alert(1)")])),
        encode_message(NodeMessage(links=[_link(f"{site}deep", depth=2**62)])),
        encode_message(NodeMessage(questions=[RobotsQuestion("zzz", "yyy", 1)])),
    ]
    honest = [
        NodeMessage(links=[_link(f"{site}honest")]),
        # What a node could have sent is judged here as ever: by the scope, and by what a robots.txt may lead to.
        NodeMessage(links=[_link(inside), _link("http://elsewhere.test/")]),
        NodeMessage(questions=[RobotsQuestion("http://elsewhere.test", f"{inside}secret", 1)]),
    ]
    messages = [*poisoned, *map(encode_message, honest), encode_message(NodeMessage(links=[_link(f"{site}last")]))]
    for number, links in enumerate(messages):
        _send(client, nodes.name, shard, number, links)
    summary = nodes.end("a")
    assert summary["finished"] == "exhausted"
    assert client.llen(f"gossamer:crawl:inbox:{shard}") == 0
    client.close()
    requested = {f"{request.target}" for request in web.log()}
    assert {"/honest", "/last"} <= requested
    private.settimeout(0)
    with pytest.raises(BlockingIOError):
        private.accept()
    private.close()
    warned = warnings_of(tmp_path / "a")
    assert len(warned) == len(poisoned), warned
    assert all(f"message evil/1/{number} to shard {shard}: " in text for number, text in enumerate(warned))
    kept = {path.read_bytes() for path in (tmp_path / "a" / "aside").glob("message-*.msgpack")}
    assert kept == set(poisoned)


class Stopped:
    """A crawl whose only node was killed, and what its server has: copied for each test."""

    def __init__(self, server: RedisServer, folder: Path, seed: str) -> None:
        self.url = f"{server.url}/crawl"
        self.seed = seed
        self.folder = folder
        self.client = server.client()
        self._keys = {key: self.client.dump(key) or b"" for key in self.client.scan_iter(match="gossamer:crawl:*")}

    def restore(self) -> None:
        self.client.flushall()
        for key, value in self._keys.items():
            self.client.restore(key, 0, value)

    def first(self, table: str) -> tuple[str, bytes]:
        """Return the first hash of a table, and its first field."""
        key = min(self.client.scan_iter(match=f"gossamer:crawl:{table}:*")).decode()
        return key, min(map(bytes, self.client.hkeys(key)))  # type: ignore[arg-type]  # the client does not decode


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stopped]:
    folder = tmp_path_factory.mktemp("stopped")
    with (
        running(engines.valkey(), folder / "redis") as server,
        RunningWeb(preset("small", seed=3, pages=40)) as web,
    ):
        nodes = Nodes(web, server, folder, more=["--politeness-ms", "300"])
        nodes.start("a")
        client = server.client()
        nodes.wait_for(lambda: [*client.scan_iter(match="gossamer:crawl:queue:*")] and len(web.log()) > 20)
        nodes.wait_for(lambda: [*client.scan_iter(match="gossamer:crawl:robots:*")])
        nodes.kill("a")
        client.close()
        yield Stopped(server, folder, web.seeds()[0])


def _put(table: str, value: bytes, field: bytes = b"") -> Callable[[Stopped], object]:
    def change(stopped: Stopped) -> object:
        key, first = stopped.first(table)
        return stopped.client.hset(key, field or first, value)

    return change


def _host(**changed: object) -> Callable[[Stopped], object]:
    def change(stopped: Stopped) -> object:
        key, name = stopped.first("hosts")
        record = msgspec.json.decode(stopped.client.hget(key, name) or b"", type=HostRecord)
        return stopped.client.hset(key, name, msgspec.json.encode(msgspec.structs.replace(record, **changed)))

    return change


def _dangling(stopped: Stopped) -> object:
    key, place = stopped.first("queue")
    return stopped.client.hset(key, place[:20] + b"\xff" * 8, b"")


ROWS: dict[str, tuple[Callable[[Stopped], object], str]] = {
    "a URL of another type": (_put("urls", b"\xff\xff"), "in urls: it cannot be decoded"),
    "a URL that cannot be decompressed": (_put("urls", b"\0\xff\xff"), "it cannot be decompressed"),
    "nested arrays": (_put("urls", b"\x91" * 100_000), "in urls: it cannot be decoded"),
    "an empty row": (_put("urls", b""), "in urls: it cannot be decoded"),
    "a short key": (_put("urls", b"\x90", b"abc"), "in urls: its key has an impossible length"),
    "another shard": (_put("urls", b"\x90", b"\0" * 16), "in urls: its key belongs to another shard"),
    "a host of another type": (_put("hosts", b"nope"), "in hosts:"),
    "a delay that was doubled for ever": (_host(backoff=10**18), "in hosts: it has an impossible number"),
    "a negative queue": (_host(queued=-5), "in hosts: it has an impossible number"),
    "a host after the end of time": (_host(next_at=1e300), "in hosts: it has an impossible number"),
    "a robots.txt without fields": (_put("robots", b"{}"), "in robots:"),
    "a queued URL that is nowhere": (_dangling, "in queue: its URL is not in the catalog"),
    "a state of a shard": (_put("shards", b"\x01"), "in shards: it cannot be decoded"),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_that_no_node_has_written_is_named(stopped: Stopped, tmp_path: Path, name: str) -> None:
    change, expected = ROWS[name]
    stopped.restore()
    change(stopped)
    done = run("join", stopped.url, "--node", "b", "-o", str(tmp_path / "b"), "--lease", str(LEASE_S), "--no-progress")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert done.stderr.startswith("gossamer join: the ledger's row '")
    assert expected in done.stderr


def test_a_node_joins_a_ledger_with_the_rows_that_another_has_written(stopped: Stopped, tmp_path: Path) -> None:
    stopped.restore()
    where = ["--node", "b", "-o", str(tmp_path / "b"), "--lease", str(LEASE_S), "--no-progress", "--max-time", "3"]
    done = run("join", stopped.url, *where)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_archive_file_of_a_ledger_is_in_the_folder_of_its_node(stopped: Stopped, tmp_path: Path) -> None:
    stopped.restore()
    secret = stopped.folder / "secret"
    secret.write_text("x" * 100)
    end = stopped.client.hlen("gossamer:crawl:archives:a")
    assert end
    stopped.client.hset("gossamer:crawl:archives:a", "../../secret", "100")
    done = run("migrate", stopped.url, str(tmp_path / "copy"))
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert "'../../secret', which is elsewhere" in done.stderr
    assert not (tmp_path / "secret").exists()


@pytest.mark.parametrize(("field", "value", "status"), [("body", b"\xff", 2), ("version", b"x", 1)])
def test_a_record_that_cannot_be_read_is_a_line(
    stopped: Stopped, tmp_path: Path, field: str, value: bytes, status: int
) -> None:
    stopped.restore()
    stopped.client.hset("gossamer:crawl:record", field, value)
    for words in (["join", stopped.url, "-o", str(tmp_path / "b")], ["status", stopped.url]):
        done = run(*words)
        assert (done.returncode, len(done.stderr.splitlines())) == (status, 1), done.stderr
