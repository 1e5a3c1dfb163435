"""The shared ledger on Redis Cluster: whenever a node dies, and whichever server goes back in time, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gossamer.backends.redis.calls import Argument
from gossamer.backends.redis.cluster_calls import Call, ClusterCalls
from gossamer.backends.redis.cluster_ledger import JOURNAL_COMMITS, RedisClusterLedger
from gossamer.backends.redis.ranges import RANGES, KeyRanges, journals_of, of_shard
from gossamer.core.cluster.record_additions import Additions
from gossamer.core.url.identity import SHARD_COUNT
from gossamer.model.errors import GossamerError, LeaseLostError, LedgerUnavailableError
from gossamer.model.figures import Totals
from gossamer.model.records import UrlId
from gossamer.model.state import CrawlRecord, NodeStatus, Terms
from gossamer.ports import Row
from gossamer.ports.shared_ledger import Commit, NodeId
from tests.amount import amount, some
from tests.servers import engines
from tests.servers.redis import RedisServer
from tests.servers.redis_cluster import RedisClusterServers, running_cluster, wait_for

LEASE_S = 60.0
A, B, C = (NodeId(name, "1") for name in "abc")
SHARDS = range(0, SHARD_COUNT, 256)  # in 16 ranges
CONTENT, FIRST, SECOND = b"h" * 16, b"1" * 16, b"2" * 16
Cut = tuple[str, int]  # script, and how many calls of it are made before the node dies
NEVER: Cut = "", 0
_names = count()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisClusterServers]:
    program = engines.valkey()
    with running_cluster(program, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


class _DiedError(Exception):
    """The process ended here."""


class DyingCalls(ClusterCalls):
    """Sends scripts one by one, and dies before one of them; what it would have sent is stored."""

    def __init__(self, servers: RedisClusterServers, name: str) -> None:
        super().__init__(servers.client(), name)
        self.dies_before = NEVER
        self.unsent: list[Call] = []

    def run(self, script: str, prefix: str, *args: Argument) -> Any:
        self._count([(script, prefix, args)])
        return super().run(script, prefix, *args)

    def run_many(self, calls: Sequence[Call]) -> list[Any]:
        answers: list[Any] = []
        for place, call in enumerate(calls):
            self._count(calls[place:])
            answers += super().run_many([call])
        return answers

    def _count(self, calls: Sequence[Call]) -> None:
        """Die, if the first of the calls is the one."""
        script, left = self.dies_before
        if calls[0][0] == script:
            self.dies_before = script, left - 1
            if left == 0:
                self.unsent = list(calls)
                raise _DiedError


class Crawl:
    """A crawl of its own on the servers."""

    def __init__(self, servers: RedisClusterServers) -> None:
        self.name = f"crawl{next(_names)}"
        self.keys = KeyRanges(self.name)
        self._servers = servers
        self.calls: list[ClusterCalls] = []
        self.ledger().start(CrawlRecord(Terms(1, "3", "rules"), b""))

    def server(self, number: int) -> RedisServer:
        """Return a server: 0 is the one with the control keys."""
        of_control = self._servers.server_of(self.keys.control)
        return [of_control, *(each for each in self._servers.servers if each is not of_control)][number]

    def ledger(self) -> RedisClusterLedger:
        """Return a ledger, as another process would open it."""
        calls = ClusterCalls(self._servers.client(), self.name)
        self.calls.append(calls)
        return RedisClusterLedger(calls)

    def dying(self) -> tuple[RedisClusterLedger, DyingCalls]:
        calls = DyingCalls(self._servers, self.name)
        self.calls.append(calls)
        return RedisClusterLedger(calls), calls

    def command(self, *words: Argument) -> Any:
        return self.calls[0].command(*words)


@pytest.fixture
def crawl(servers: RedisClusterServers) -> Iterator[Crawl]:
    crawl = Crawl(servers)
    yield crawl
    for each in crawl.calls:
        each.close()


def rows(text: str) -> dict[int, list[Row]]:
    return {shard: [Row("queue", b"%d" % shard, text.encode())] for shard in SHARDS}


def commit(number: int, epochs: Mapping[int, int], text: str, page: UrlId = FIRST) -> Commit:
    """Return a commit that changes a row of every shard, and sends a link to it."""
    links = {shard: f"link {text}".encode() for shard in SHARDS}
    contents = {CONTENT: page}
    return Commit(number, Totals(pages=number), epochs, rows(text), links, contents=contents)


def joined(ledger: RedisClusterLedger, node: NodeId) -> dict[int, int]:
    ledger.join(node, "", LEASE_S)
    return ledger.take(node, SHARDS)


def taken_over(crawl: Crawl, node: NodeId) -> tuple[RedisClusterLedger, dict[int, int]]:
    """Take the shards of a node that has died."""
    ledger = crawl.ledger()
    epochs = joined(ledger, node)
    assert epochs.keys() == set(SHARDS)
    return ledger, epochs


def texts(ledger: RedisClusterLedger, node: NodeId) -> set[str]:
    """Return what the rows of all shards say: one text, if commits are made wholly or not at all."""
    found = [row for some in ledger.restore(node, SHARDS, ["queue"]) for row in some]
    assert len(found) in (0, len(SHARDS))
    return {(row.value or b"").decode() for row in found}


def links(ledger: RedisClusterLedger, node: NodeId) -> list[list[str]]:
    """Return the links that wait, the same for each shard."""
    for _ in range(2):  # what is not applied yet comes with the next call
        received = ledger.receive(node, {}, 1 << 20)
    found = [[message.links.decode() for message in received.get(shard, [])] for shard in SHARDS]
    assert all(each == found[0] for each in found)
    return found[:1]


# -- a node dies ----------------------------------------------------------------------------------

APPLIED = len(SHARDS) + 1  # ranges: that of the content, too
CUTS: list[Cut] = [("journal", 0), ("journal", 1), ("decide", 0), *(("apply", number) for number in range(APPLIED))]


def is_made(cut: Cut) -> bool:
    return cut[0] == "apply"


def died(crawl: Crawl, cut: Cut) -> tuple[RedisClusterLedger, DyingCalls, dict[int, int]]:
    """Let node a die in its second commit."""
    ledger, calls = crawl.dying()
    epochs = joined(ledger, A)
    ledger.commit(A, commit(1, epochs, "one"))
    calls.dies_before = cut
    with pytest.raises(_DiedError):
        ledger.commit(A, commit(2, epochs, "two"))
    calls.dies_before = NEVER
    return ledger, calls, epochs


@pytest.mark.parametrize("cut", CUTS)
def test_a_commit_is_made_wholly_or_not_at_all_wherever_its_node_dies(crawl: Crawl, cut: Cut) -> None:
    died(crawl, cut)[0].leave(A)
    ledger, epochs = taken_over(crawl, B)
    assert texts(ledger, B) == ({"two"} if is_made(cut) else {"one"})
    assert links(ledger, B) == [["link one", "link two"] if is_made(cut) else ["link one"]]
    assert ledger.nodes()[A].totals.pages == (2 if is_made(cut) else 1)
    assert ledger.commit(B, commit(1, epochs, "three", SECOND)).contents == {CONTENT: FIRST}
    assert texts(ledger, B) == {"three"}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("is_new", [False, True])
def test_a_commit_that_was_cut_off_is_repeated(crawl: Crawl, cut: Cut, *, is_new: bool) -> None:
    ledger, _, epochs = died(crawl, cut)
    if is_new:
        ledger = crawl.ledger()
    assert ledger.commit(A, commit(2, epochs, "two")).contents == {CONTENT: FIRST}
    assert texts(ledger, A) == {"two"}
    assert links(ledger, A) == [["link one", "link two"]]
    ledger.commit(A, commit(3, epochs, "three"))
    assert texts(ledger, A) == {"three"}


def test_who_takes_shards_completes_the_last_commit_of_their_owner(crawl: Crawl) -> None:
    other = crawl.ledger()
    other.join(B, "", LEASE_S)
    died(crawl, ("apply", 3))[0].leave(A)
    assert other.take(B, SHARDS).keys() == set(SHARDS)
    assert texts(other, B) == {"two"}


def test_who_reads_a_crawl_without_nodes_reads_the_last_commit_whole(crawl: Crawl) -> None:
    died(crawl, ("apply", 3))[0].leave(A)
    found = [row for some in crawl.ledger().scan(range(SHARD_COUNT), ["queue"]) for row in some]
    assert [row.value for row in found] == [b"two"] * len(SHARDS)


def test_who_reads_letters_of_a_crawl_without_nodes_reads_all_of_them(crawl: Crawl) -> None:
    died(crawl, ("apply", 3))[0].leave(A)
    assert list(crawl.ledger().messages([SHARDS[9]])) == [(SHARDS[9], b"link one"), (SHARDS[9], b"link two")]


def test_links_of_a_node_that_died_arrive_without_a_take_over(crawl: Crawl) -> None:
    other = crawl.ledger()
    other.join(B, "", LEASE_S)
    other.take(B, [SHARDS[5]])
    ledger, calls = crawl.dying()
    ledger.join(A, "", LEASE_S)
    calls.dies_before = "apply", 0
    with pytest.raises(_DiedError):
        ledger.commit(A, Commit(1, Totals(), links={SHARDS[5]: b"link", SHARDS[6]: b"other"}))
    assert other.receive(B, {}, 1000) == {}, "it may still be on its way"
    assert [each.links for each in other.receive(B, {}, 1000)[SHARDS[5]]] == [b"link"]


def test_a_part_that_arrives_after_a_take_over_changes_nothing(crawl: Crawl) -> None:
    _, calls, _ = died(crawl, ("apply", 4))
    unsent = calls.unsent
    assert len(unsent) == APPLIED - 4
    crawl.ledger().leave(A)
    ledger, epochs = taken_over(crawl, B)
    assert texts(ledger, B) == {"two"}
    ledger.commit(B, commit(1, epochs, "three"))
    calls.run_many(unsent)
    assert texts(ledger, B) == {"three"}
    assert links(ledger, B) == [["link one", "link two", "link three"]]


def test_a_node_that_wakes_after_a_take_over_makes_no_commit(crawl: Crawl) -> None:
    ledger, _, epochs = died(crawl, ("decide", 0))
    crawl.ledger().leave(A)
    taker, _ = taken_over(crawl, B)
    assert texts(taker, B) == {"one"}
    with pytest.raises(LeaseLostError):
        ledger.commit(A, commit(2, epochs, "two"))
    assert texts(taker, B) == {"one"}
    assert links(taker, B) == [["link one"]]


@settings(max_examples=amount(6, 25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from([*CUTS, NEVER]), st.booleans()), min_size=1, max_size=8))
def test_any_sequence_of_deaths_and_take_overs_ends_with_what_was_decided(
    servers: RedisClusterServers, deaths: list[tuple[Cut, bool]]
) -> None:
    crawl = Crawl(servers)
    made = ["none"]
    for turn, (cut, is_repeated) in enumerate(deaths):
        node = NodeId("n", str(turn))
        ledger, calls = crawl.dying()
        epochs = joined(ledger, node)
        assert texts(ledger, node) == set(made[-1:]) - {"none"}
        calls.dies_before = cut
        next_commit = commit(1, epochs, str(turn))
        try:
            ledger.commit(node, next_commit)
        except _DiedError:
            calls.dies_before = NEVER
            if is_repeated:
                ledger.commit(node, next_commit)
        if is_made(cut) or is_repeated or cut == NEVER:
            made.append(str(turn))
        crawl.ledger().leave(node)
    ledger, _ = taken_over(crawl, B)
    assert texts(ledger, B) == set(made[-1:]) - {"none"}
    assert links(ledger, B) == [[f"link {each}" for each in made[1:]]]
    for each in crawl.calls:
        each.close()


def test_settling_beside_nodes_that_commit_changes_nothing(crawl: Crawl) -> None:
    commits = 25

    def work(node: NodeId, shards: Sequence[int]) -> None:
        ledger = crawl.ledger()
        ledger.join(node, "", LEASE_S)
        epochs = ledger.take(node, shards)
        for number in range(1, commits + 1):
            changed = {shard: [Row("queue", b"key", b"%d" % number)] for shard in shards}
            sent = dict.fromkeys(SHARDS, b"%d" % number)
            ledger.commit(node, Commit(number, Totals(pages=number), epochs, changed, sent))

    halves = {A: SHARDS[::2], B: SHARDS[1::2]}
    with ThreadPoolExecutor() as threads:
        nodes = [threads.submit(work, node, shards) for node, shards in halves.items()]
        while not all(each.done() for each in nodes):
            list(crawl.ledger().scan([], []))
    for each in nodes:
        each.result()
    reader = crawl.ledger()
    found = [row for some in reader.scan(SHARDS, ["queue"]) for row in some]
    assert [row.value for row in found] == [b"%d" % commits] * len(SHARDS)
    assert len(list(reader.messages(SHARDS))) == 2 * commits * len(SHARDS)
    assert {view.totals.pages for view in reader.nodes().values()} == {commits}


def scripts_run(servers: RedisClusterServers) -> int:
    """Return how many scripts all servers have run."""
    run = 0
    for server in servers.servers:
        client: Any = server.client()
        run += client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"]
        client.close()
    return run


def test_a_commit_costs_a_script_per_range_one_per_server_and_one(servers: RedisClusterServers, crawl: Crawl) -> None:
    ledger = crawl.ledger()
    epochs = joined(ledger, A)
    ledger.commit(A, commit(1, epochs, "one"))
    before = scripts_run(servers)
    ledger.commit(A, commit(2, epochs, "two"))
    assert scripts_run(servers) - before == len(servers.servers) + 1 + APPLIED


def test_what_a_crawl_stores_is_on_the_servers_of_its_ranges(servers: RedisClusterServers, crawl: Crawl) -> None:
    ledger = crawl.ledger()
    ledger.commit(A, commit(1, joined(ledger, A), "one"))
    of_ranges = [servers.server_of(crawl.keys.prefix(of_shard(shard))) for shard in SHARDS]
    assert any(server is not of_ranges[0] for server in of_ranges)
    for server in servers.servers:
        client: Any = server.client()
        rows = list(client.scan_iter(f"gossamer:{crawl.name}:*:queue:*", count=10_000))
        assert bool(rows) == any(each is server for each in of_ranges)
        client.close()


# -- a server goes back in time -------------------------------------------------------------------


def test_what_a_server_stores_is_in_the_journal_of_another() -> None:
    assert journals_of({0: "x", 1: "y", 2: "x", 3: "z"}, "y") == {"x": 1, "y": 3, "z": 0}
    assert journals_of({0: "x"}, "x") == {"x": 0}
    assert journals_of({0: "x", 1: "y"}, "only control keys") == {"x": 1, "y": 0, "only control keys": 0}


def repeated_until_made(ledger: RedisClusterLedger, node: NodeId, made: Commit) -> None:
    """Make a commit as a node does: again and again while servers are away, or do not know yet who took over."""

    def is_made() -> bool:
        with suppress(LedgerUnavailableError):
            ledger.commit(node, made)
            return True
        return False

    wait_for(is_made)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("who", ["the node", "the node in another process", "another node"])
def test_a_server_that_goes_back_in_time_gets_what_it_lost(
    servers: RedisClusterServers, crawl: Crawl, number: int, who: str
) -> None:
    ledger = crawl.ledger()
    epochs = joined(ledger, A)
    ledger.commit(A, commit(1, epochs, "one"))
    with servers.going_back(crawl.server(number)):
        ledger.commit(A, commit(2, epochs, "two"))
        ledger.commit(A, commit(3, epochs, "three"))
    made = ["one", "two", "three"]
    if who != "another node":
        made.append("four")
        ledger = ledger if who == "the node" else crawl.ledger()
        repeated_until_made(ledger, A, commit(4, epochs, "four"))
    crawl.ledger().leave(A)
    taker, _ = taken_over(crawl, B)
    assert texts(taker, B) == {made[-1]}
    assert links(taker, B) == [[f"link {each}" for each in made]]
    assert taker.nodes()[A].totals.pages == len(made)


def test_what_a_lost_commit_has_added_to_the_record_is_added_again(servers: RedisClusterServers, crawl: Crawl) -> None:
    ledger = crawl.ledger()
    epochs = joined(ledger, A)
    ledger.commit(A, commit(1, epochs, "one"))
    with servers.going_back(crawl.server(0)):
        ledger.commit(A, replace(commit(2, epochs, "two"), added=Additions(["http://added.example/"])))
    crawl.ledger().leave(A)
    taker, _ = taken_over(crawl, B)
    assert texts(taker, B) == {"two"}
    record = taker.record()
    assert record is not None
    assert record.scope == ["http://added.example/"]


def test_a_node_whose_join_is_lost_begins_anew_and_its_commits_stay(servers: RedisClusterServers, crawl: Crawl) -> None:
    ledger = crawl.ledger()
    with servers.going_back(crawl.server(0)):
        epochs = joined(ledger, A)
        ledger.commit(A, commit(1, epochs, "one"))
    with pytest.raises(LeaseLostError):
        repeated_until_made(ledger, A, commit(2, epochs, "two"))
    taker, _ = taken_over(crawl, NodeId("a", "2"))
    assert texts(taker, NodeId("a", "2")) == {"one"}
    assert links(taker, NodeId("a", "2")) == [["link one"]]
    assert taker.nodes()[A].totals.pages == 1


@pytest.mark.parametrize("number", range(3))
def test_a_shard_that_moved_in_the_lost_time_ends_as_its_last_owner_wrote_it(
    servers: RedisClusterServers, crawl: Crawl, number: int
) -> None:
    first, second = crawl.ledger(), crawl.ledger()
    epochs = joined(first, B)
    first.commit(B, commit(1, epochs, "one"))
    with servers.going_back(crawl.server(number)):
        first.commit(B, commit(2, epochs, "two"))
        first.release(B, SHARDS)
        epochs = joined(second, A)
        read = {shard: [each.id for each in some] for shard, some in second.receive(A, {}, 1 << 20).items()}
        assert len(read) == len(SHARDS)
        second.commit(A, Commit(1, Totals(pages=5), epochs, rows("three"), read=read))
    for node in (A, B):
        crawl.ledger().leave(node)
    taker, _ = taken_over(crawl, C)
    assert texts(taker, C) == {"three"}
    assert links(taker, C) == [[]], "all were read"
    assert sum(view.totals.pages for view in taker.nodes().values()) == 7


@pytest.mark.parametrize("number", range(3))
def test_a_node_without_anything_to_commit_notices_it_too(
    servers: RedisClusterServers, crawl: Crawl, number: int
) -> None:
    ledger = crawl.ledger()
    epochs = joined(ledger, A)
    ledger.commit(A, commit(1, epochs, "one"))
    ledger.renew(A, NodeStatus())
    with servers.going_back(crawl.server(number)):
        ledger.commit(A, commit(2, epochs, "two"))
    for _ in range(2):  # a broken connection is found with the first
        with suppress(LedgerUnavailableError):
            membership = ledger.renew(A, NodeStatus())
    assert membership.commit == 2
    for shard in SHARDS:
        assert (
            crawl.command("HGET", f"gossamer:{crawl.name}:{{{crawl.name}/{shard >> 6}}}:queue:{shard}", shard) == b"two"
        )


def test_what_nobody_has_any_more_is_an_error_that_says_how_to_go_on_without_it(crawl: Crawl) -> None:
    ledger = crawl.ledger()
    epochs = joined(ledger, A)
    ledger.commit(A, commit(1, epochs, "one"))
    for number in RANGES:
        crawl.command("DEL", f"{crawl.keys.prefix(number)}journal:a/1")
    place = crawl.keys.prefix(SHARDS[3] >> 6)
    crawl.command("HDEL", f"{place}applied", "a/1")
    ledger.leave(A)
    taker = crawl.ledger()
    with pytest.raises(GossamerError, match="has lost commits 1 to 1 of node a/1") as failure:
        joined(taker, B)
    _, advice = str(failure.value).split("there: ")
    assert "\n" not in str(failure.value)
    crawl.command(*advice.split())
    joined(taker, B)
    assert texts(taker, B) == {"one"}


def test_a_decision_that_nobody_has_any_more_is_an_error_too(crawl: Crawl) -> None:
    ledger = crawl.ledger()
    epochs = joined(ledger, A)
    ledger.commit(A, commit(1, epochs, "one"))
    for number in RANGES:
        crawl.command("DEL", f"{crawl.keys.prefix(number)}journal:a/1")
    crawl.command("HSET", f"{crawl.keys.control}node:a/1", "commit", 0)
    with pytest.raises(GossamerError, match="control keys has lost commits 1 to 1 of node a/1") as failure:
        ledger.commit(A, commit(2, epochs, "two"))
    crawl.command(*str(failure.value).split("links: ")[1].split())
    ledger.commit(A, commit(2, epochs, "two"))
    assert texts(ledger, A) == {"two"}


def test_links_that_a_server_has_lost_are_an_error(crawl: Crawl) -> None:
    ledger = crawl.ledger()
    joined(ledger, A)
    ledger.commit(A, Commit(1, Totals(), links={SHARDS[2]: b"link"}))
    crawl.command("DEL", f"{crawl.keys.prefix(SHARDS[2] >> 6)}inbox:{SHARDS[2]}")
    assert ledger.receive(A, {}, 1000) == {}
    with pytest.raises(GossamerError, match=f"lost the links of message a/1/1 to shard {SHARDS[2]}"):
        ledger.receive(A, {}, 1000)


def test_the_journal_has_the_last_commits_only(crawl: Crawl) -> None:
    ledger = crawl.ledger()
    joined(ledger, A)
    for number in range(1, JOURNAL_COMMITS + 10):
        ledger.commit(A, Commit(number, Totals()))
    sizes = [crawl.command("HLEN", f"{crawl.keys.prefix(number)}journal:a/1") for number in RANGES]
    assert sorted(sizes)[-1] == sum(sizes) == JOURNAL_COMMITS


# -- a server is away -----------------------------------------------------------------------------


def test_a_server_that_is_away_is_waited_for(servers: RedisClusterServers, crawl: Crawl) -> None:
    ledger = crawl.ledger()
    epochs = joined(ledger, A)
    ledger.commit(A, commit(1, epochs, "one"))
    away = crawl.server(1)
    away.stop()
    for _ in range(2):
        with pytest.raises(LedgerUnavailableError) as failure:
            ledger.commit(A, commit(2, epochs, "two"))
        assert "\n" not in str(failure.value)
    assert ledger.renew(A, NodeStatus()).commit in (1, 2), "the lease is kept meanwhile"
    away.start()
    servers.wait_until_whole()
    repeated_until_made(ledger, A, commit(2, epochs, "two"))
    assert texts(ledger, A) == {"two"}


@pytest.mark.parametrize("number", some([0, 1], 1))
def test_a_replica_takes_over(tmp_path: Path, number: int) -> None:
    program = engines.valkey()
    with running_cluster(program, tmp_path) as servers:
        crawl = Crawl(servers)
        ledger = crawl.ledger()
        epochs = joined(ledger, A)
        primary = crawl.server(number)
        with servers.replica_of(primary) as replica:
            ledger.commit(A, commit(1, epochs, "one"))
            servers.wait_until_same(primary, replica)
            primary.stop()
            servers.wait_until_primary(replica)
            repeated_until_made(ledger, A, commit(2, epochs, "two"))
            crawl.ledger().leave(A)
            taker, _ = taken_over(crawl, B)
            assert texts(taker, B) == {"two"}
            assert links(taker, B) == [["link one", "link two"]]
        for each in crawl.calls:
            each.close()


@pytest.mark.parametrize("number", range(3))
def test_only_a_server_that_was_restarted_writes_its_append_only_file_anew_and_only_once(
    crawl: Crawl, servers: RedisClusterServers, number: int
) -> None:
    ledgers = [crawl.ledger(), crawl.ledger()]
    for ledger, node in zip(ledgers, (A, B), strict=True):
        ledger.join(node, "", LEASE_S)
    before, server = logs_written(servers), crawl.server(number)
    server.stop()
    server.start()
    servers.wait_until_whole()
    for _ in range(2):
        for ledger, node in zip(ledgers, (A, B), strict=True):
            ledger.renew(node, NodeStatus())
    after = logs_written(servers)
    assert [new - old for old, new in zip(before, after, strict=True)] == [each is server for each in servers.servers]


def logs_written(servers: RedisClusterServers) -> list[int]:
    """Return how often each server has written its append-only file anew: what it is based on has that number."""
    for server in servers.servers:
        client: Any = server.client()
        wait_for(lambda: not client.info("persistence")["aof_rewrite_in_progress"])  # noqa: B023
        client.close()
    bases = [server.folder.rglob("*.base.*") for server in servers.servers]
    return [max(int(path.name.split(".")[-3]) for path in some) for some in bases]
