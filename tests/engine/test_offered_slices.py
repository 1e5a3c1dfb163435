"""What other nodes sent is offered in parts, and a message counts as read with its last one."""

from __future__ import annotations

import pytest

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.cluster.link_messages import LinkMessage, NodeMessage, RobotsAnswer, parts_of
from gossamer.engine.cluster.node import ClusterNode, Delivery
from gossamer.engine.crawl import Crawl
from gossamer.model.records import FetchKind, Outcome, Source
from gossamer.ports.shared_ledger import NodeId
from gossamer.sim.scenarios import START, ImaginedSites, Scenario

PAGES = [f"http://a.test/{number}" for number in range(25)]
SHARD = shard_of(host_id("a.test"))


def _links(urls: list[str]) -> list[LinkMessage]:
    return [LinkMessage(url, 1, Source.LINK, FetchKind.PAGE) for url in urls]


def _node(limits: FrontierLimits | None = None) -> tuple[ClusterNode, Crawl]:
    """Return a node that owns the shard of `a.test`, and its crawl."""
    crawl = Scenario(ImaginedSites(), [], limits=limits or FrontierLimits()).engine()
    crawl.begin_as_node(START)
    node = ClusterNode(NodeId("one", "1"), crawl)
    node.grant({SHARD: 7})
    node.begin_shards([SHARD], [], START)
    node.part_links = 10
    return node, crawl


def _queued(crawl: Crawl) -> int:
    record = crawl.frontier.record_of("a.test")
    return record.queued if record is not None else 0


def test_a_message_is_read_when_its_last_link_is_offered() -> None:
    node, crawl = _node()
    node.receive(
        {SHARD: [Delivery(b"m1", NodeMessage(links=_links(PAGES))), Delivery(b"m2", NodeMessage(links=_links(PAGES)))]}
    )
    seen = []
    while node.offer_slice(START):
        seen.append((_queued(crawl), node.read_ids()))
    assert [queued for queued, _ in seen[:3]] == [10, 20, 25]
    assert seen[1][1] == {}, "some of its links are not offered yet"
    assert node.read_ids() == {SHARD: (b"m1", b"m2")}
    assert _queued(crawl) == len(PAGES)


def test_small_messages_are_offered_together() -> None:
    node, crawl = _node()
    node.receive(
        {SHARD: [Delivery(b"%d" % number, NodeMessage(links=_links([url]))) for number, url in enumerate(PAGES)]}
    )
    assert node.offer_slice(START)
    assert _queued(crawl) == 10
    assert node.offer_slice(START)
    assert not node.offer_slice(START)
    assert len(node.read_ids()[SHARD]) == len(PAGES)


def test_a_message_for_a_shard_that_has_left_stays_in_its_inbox() -> None:
    node, _ = _node()
    node.receive({SHARD: [Delivery(b"m1", NodeMessage(links=_links(PAGES)))]})
    assert node.offer_slice(START)
    node._owned[SHARD] = 8  # it has left, and come back
    assert not node.offer_slice(START)
    assert node.read_ids() == {}


def test_a_commit_contains_a_message_as_a_whole() -> None:
    node, crawl = _node()
    node.receive(
        {SHARD: [Delivery(b"m1", NodeMessage(links=_links(PAGES))), Delivery(b"m2", NodeMessage(links=_links(PAGES)))]}
    )
    crawl.finish_message(START)
    assert (_queued(crawl), node.read_ids()) == (0, {}), "nothing was offered yet"
    assert node.offer_slice(START)
    crawl.finish_message(START)
    assert (_queued(crawl), node.read_ids()) == (len(PAGES), {SHARD: (b"m1",)})


def test_a_shard_does_not_leave_within_a_message() -> None:
    node, _ = _node()
    node.receive({SHARD: [Delivery(b"m1", NodeMessage(links=_links(PAGES)))]})
    assert node.offer_slice(START)
    assert node.end_drained(START), "no other node wants it, but nobody has told it that it is to have it"
    assert node.read_ids() == {SHARD: (b"m1",)}


def test_nothing_is_accepted_for_a_shard_of_another_node() -> None:
    node, _ = _node()
    other = (SHARD + 1) % 4096
    node.receive({other: [Delivery(b"m1", NodeMessage(links=_links(PAGES)))]})
    assert not node.offer_slice(START)
    assert node.read_ids() == {}


@pytest.mark.parametrize("room", [1, 64 << 20])
def test_long_robots_txt_files_are_read_in_slices_though_memory_has_room_for_one(room: int) -> None:
    node, crawl = _node(FrontierLimits(max_rules_bytes=room))
    ports = (8001, 8002, 8003)
    texts = [b"User-agent: *\n" + b"".join(b"Disallow: /%d/%x\n" % (port, n) for n in range(9_000)) for port in ports]
    answers = [
        RobotsAnswer(f"http://a.test:{port}", "http://b.test/robots.txt", 1, Outcome.OK, 200, body=text)
        for port, text in zip(ports, texts, strict=True)
    ]
    node.receive({SHARD: [Delivery(b"m0", NodeMessage(links=_links(PAGES[:1])))]})
    node.receive({SHARD: [Delivery(b"m1", NodeMessage(answers=answers))]})
    calls = 1
    while node.offer_slice(START):
        calls += 1
        assert calls < 100
    assert calls > 3 * 3, "each in several slices"
    assert node.read_ids() == {SHARD: (b"m0", b"m1")}
    stored = {record.origin: record.body for record in crawl._ledger.robots(host_id("a.test"))}
    assert stored == {answer.origin: answer.body for answer in answers}


def test_parts_have_everything_once_homes_and_ranks_first() -> None:
    message = NodeMessage(links=_links(PAGES), homes={"a.test": "eu"})
    parts = list(parts_of(message, 10))
    assert [len(part.links) for part in parts] == [0, 10, 10, 5, 0]
    assert [part.homes for part in parts if part.homes] == [{"a.test": "eu"}] == [parts[0].homes]
    assert [link.url for part in parts for link in part.links] == PAGES
