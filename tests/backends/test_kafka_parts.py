"""The parts of the ledger on Kafka and Cassandra that need no server: addresses, layout, inbox."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.backends.kafka.address import place_of
from gossamer.backends.kafka.inbox import Inbox
from gossamer.backends.kafka.layout import Layout, check_layout
from gossamer.core.url.identity import SHARD_COUNT, shard_of
from gossamer.model.errors import UsageError

URL = "kafka://b1:9093,b2/books?cassandra=c1,c2:9143/crawls"

# -- addresses ------------------------------------------------------------------------------------


def test_a_url_names_both_engines() -> None:
    place = place_of(URL, {})
    assert place.kafka.hosts == (("b1", 9093), ("b2", 9092))
    assert place.cassandra.hosts == (("c1", 9042), ("c2", 9143))
    assert (place.name, place.keyspace, place.topic) == ("books", "crawls", "books.frontier")


def test_users_and_options_are_taken_from_the_url_and_passwords_also_from_the_environment() -> None:
    url = "kafka://ann:p%40ss@b/x?cassandra=bob@c/k&security.protocol=SASL_SSL&cassandra_tls=/etc/ca.pem"
    place = place_of(url, {"GOSSAMER_CASSANDRA_PASSWORD": "secret", "GOSSAMER_KAFKA_PASSWORD": "other"})
    assert (place.kafka.user, place.kafka.password) == ("ann", "p@ss")
    assert (place.cassandra.user, place.cassandra.password) == ("bob", "secret")
    assert place.kafka_options == {"security.protocol": "SASL_SSL"}
    assert place.cassandra_tls == "/etc/ca.pem"
    assert "ann" not in place.shown
    assert "bob" not in place.shown


@pytest.mark.parametrize("url", [
    "kafka://b/x", "kafka://b/x?cassandra=", "kafka://b/x?cassandra=c", "kafka://b/x?cassandra=c/bad-name",
    "kafka:///x?cassandra=c/k", "kafka://b:port/x?cassandra=c/k", "kafka://b/bad name?cassandra=c/k",
    "kafka://b/x?cassandra", "kafka://:secret@b/x?cassandra=c/k", "kafka://b:70000/x?cassandra=c/k",
])  # fmt: skip
def test_a_wrong_url_is_one_line_that_says_what_is_right(url: str) -> None:
    with pytest.raises(UsageError, match="expected kafka://host:port,…/NAME") as caught:
        place_of(url, {})
    assert "secret" not in str(caught.value)


# -- layout ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [Layout(1, 1), Layout(4, 2), Layout(64, 1), Layout(1024, 256)])
def test_every_row_is_in_a_slice_of_its_shard(layout: Layout) -> None:
    for number in range(0, SHARD_COUNT, 37):
        key = (number << 4).to_bytes(2, "big") + bytes(13) + bytes([number % 256])
        assert shard_of(key) == number
        for table in ("urls", "hosts"):
            part = layout.part_of(table, key)
            found = [(first, after) for where, first, after in layout.slices(table, [number, 4095]) if where == part]
            assert any(first <= key < after for first, after in found)


@pytest.mark.parametrize("layout", [Layout(1, 1), Layout(64, 1), Layout(1024, 3), Layout(1024, 256)])
def test_hashes_are_found_by_their_first_byte(layout: Layout) -> None:
    for first in range(256):
        for second in (0, 1, 127, 255):
            assert layout.part_of_hash(bytes([first, second, 9, 9])) in layout.parts_with(first)
    assert layout.part_of_hash(b"\xff" * 16) == layout.parts - 1


@pytest.mark.parametrize("layout", [Layout(0, 1), Layout(48, 1), Layout(2048, 1), Layout(64, 0), Layout(64, 257)])
def test_a_division_that_cannot_be_is_refused(layout: Layout) -> None:
    with pytest.raises(UsageError, match="expected"):
        check_layout(layout, "topic")


# -- inbox ----------------------------------------------------------------------------------------

TWO = Layout(partitions=2)  # shards 0 to 2047, and the rest


def inbox(**positions: int) -> Inbox:
    made = Inbox(TWO)
    made.add_shards({int(name[1:]): position for name, position in positions.items()})
    return made


def sent(box: Inbox, offset: int, *shards: int, sender: str = "a/1", number: int = 0, links: bytes = b"x") -> None:
    box.add(0, offset, f"{sender}/{number or offset + 1}".encode(), [(shard, links, False) for shard in shards])


def offered(box: Inbox, shard: int, *read: bytes, made: int = 1 << 30) -> list[bytes]:
    messages = box.offer({shard: read}, lambda message: message.number <= made, 1 << 20).get(shard, [])
    return [message.id for message in messages]


def test_links_stay_until_they_are_read() -> None:
    box = inbox(s1=0, s2=0)
    sent(box, 0, 1)
    sent(box, 1, 1, 2)
    first, second = offered(box, 1)
    assert offered(box, 1, first) == [second]
    assert box.done_offsets() == {0: 0}
    box.remove({1: [first]})
    assert box.done_offsets() == {0: 1}
    box.remove({1: [second], 2: offered(box, 2)})
    assert box.done_offsets() == {0: 2}
    assert box.waiting_bytes == 0


def test_links_of_a_commit_that_is_not_made_yet_wait_and_others_pass_them() -> None:
    box = inbox(s1=0)
    sent(box, 0, 1, number=9)
    sent(box, 1, 1, number=3)
    passed = offered(box, 1, made=5)
    assert passed == [b"a/1/3"]
    assert offered(box, 1, *passed, made=9) == [b"a/1/9"]
    assert box.positions_after({1: passed}) == {1: 0}, "the first one is not read"
    box.remove({1: passed})
    assert offered(box, 1, made=9) == [b"a/1/9"]


def test_a_commit_that_was_never_made_does_not_hold_anything_up() -> None:
    box = inbox(s1=0)
    sent(box, 0, 1, sender="dead/1")
    box.drop(lambda letter: letter.sender == "dead/1")
    assert offered(box, 1) == []
    assert box.done_offsets() == {0: 1}


def test_a_shard_that_is_taken_goes_on_where_its_last_owner_was_and_the_others_notice_nothing() -> None:
    box = inbox(s1=5)
    sent(box, 5, 1, 2)
    assert box.next_offsets == {0: 6}
    box.add_shards({2: 3})
    assert box.next_offsets == {0: 3}, "the partition is read again"
    sent(box, 3, 1, 2)
    sent(box, 4, 2)
    sent(box, 5, 1, 2)
    sent(box, 6, 1)
    assert offered(box, 1) == [b"a/1/6", b"a/1/7"], "what it had is passed over"
    assert offered(box, 2) == [b"a/1/4", b"a/1/5", b"a/1/6"]


def test_links_in_several_messages_are_offered_when_all_have_come() -> None:
    box = inbox(s1=0)
    box.add(0, 0, b"a/1/1", [(1, b"one ", True)])
    assert offered(box, 1) == []
    box.add(0, 1, b"a/1/1", [(1, b"two", False)])
    (message,) = box.offer({}, lambda _: True, 100)[1]
    assert message.links == b"one two"
    assert box.positions_after({}) == {1: 0}
    box.remove({1: [message.id]})
    assert box.done_offsets() == {0: 2}


def test_a_shard_that_was_released_leaves_nothing_behind() -> None:
    box = inbox(s1=0, s2=0)
    sent(box, 0, 1, 2)
    box.remove_shards([1])
    assert offered(box, 1) == []
    assert box.positions_after({}) == {2: 0}
    box.remove_shards([2])
    assert (box.next_offsets, box.waiting_bytes) == ({}, 0)


@given(st.data())
def test_every_link_is_read_once_whatever_is_taken_and_released(data: st.DataObject) -> None:
    """Shards move between two nodes; each goes on from the positions that the last owner has stored."""
    log = data.draw(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True), max_size=12))
    positions = dict.fromkeys(range(4), 0)
    boxes = [Inbox(TWO), Inbox(TWO)]
    boxes[0].add_shards(positions)
    owner = dict.fromkeys(range(4), 0)
    read: list[tuple[int, bytes]] = []
    for _ in range(30):
        number = data.draw(st.integers(0, 1))
        box = boxes[number]
        match data.draw(st.sampled_from(["read", "commit", "move"])):
            case "read" if box.next_offsets:
                start = box.next_offsets[0]
                for offset in range(start, min(start + 2, len(log))):
                    sent(box, offset, *log[offset])
            case "commit":
                taken = {shard: offered(box, shard)[:1] for shard in box.shards}
                read += [(shard, each) for shard, ids in taken.items() for each in ids]
                positions |= box.positions_after(taken)
                box.remove(taken)
            case "move":
                shard = data.draw(st.integers(0, 3))
                boxes[owner[shard]].remove_shards([shard])
                owner[shard] = 1 - owner[shard]
                boxes[owner[shard]].add_shards({shard: positions[shard]})
    for box in boxes:
        while box.next_offsets and box.next_offsets[0] < len(log):
            sent(box, box.next_offsets[0], *log[box.next_offsets[0]])
        read += [(shard, each) for shard in box.shards for each in offered(box, shard)]
    assert sorted(read) == sorted(
        (shard, f"a/1/{offset + 1}".encode()) for offset, to in enumerate(log) for shard in to
    )
