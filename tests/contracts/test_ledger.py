"""What every ledger must do, run on each of them. See `gossamer.ports.Ledger`."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from msgspec.structs import replace

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.ledger import rows
from gossamer.core.ledger.catalog import record_of
from gossamer.core.ledger.tables import (
    DUE,
    DUE_HOSTS,
    EVIDENCE,
    HELD,
    HOST_VISITS,
    QUARANTINES,
    SHARD_VISITS,
    SUBMITTERS,
    held_prefix,
)
from gossamer.core.revisit.stored import DueHost, DueUrl, HostVisits, ShardVisits, due_host_key, due_key
from gossamer.core.traps.quarantine import Quarantine
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import host_id, id_in_shard, shard_of, shard_prefix
from gossamer.model.records import (
    ChangeKind,
    ContentRecord,
    DomainRecord,
    FetchKind,
    HostRecord,
    QueuedUrl,
    RobotsRecord,
    Source,
    UrlRecord,
    UrlState,
)
from gossamer.model.state import CrawlState, HeldUrl, HoldRule, HostEvidence, ShardState, Submitters
from gossamer.ports import Ledger, Row, SealedChanges

H = host_id("h.test")
Step: TypeAlias = Callable[[], None]


def queued(path: str, priority: int = 0, seq: int = 1, host: str = "h.test") -> QueuedUrl:
    link = link_to(f"http://{host}/{path}")
    return QueuedUrl(link.url, link.id, link.host, priority, seq, depth=1)


def done(url: QueuedUrl, state: UrlState = UrlState.DONE) -> UrlRecord:
    return replace(record_of(url), state=state, outcome="ok", status=200, fetched_at=5.0)


def paths(urls: list[QueuedUrl]) -> list[str]:
    return [url.url.rpartition("/")[2] for url in urls]


@pytest.fixture(params=["memory", "local", "local_committed", "local_sealed"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger()
        return
    local = LocalLedger(tmp_path / "state")
    local.open()
    yield local
    local.close()


@pytest.fixture
def step(request: pytest.FixtureRequest, ledger: Ledger) -> Iterator[Step]:
    """Return what is done between a change and a read: nothing, a commit, or half of one."""
    kind = request.node.callspec.params["ledger"]
    sealed: list[SealedChanges] = []

    def go() -> None:
        if kind == "local_committed":
            ledger.commit()
        elif kind == "local_sealed" and isinstance(ledger, LocalLedger):
            while sealed:
                sealed.pop().write()
            sealed.append(ledger.seal())

    yield go
    while sealed:
        sealed.pop().write()


def test_changes_are_numbered_in_order(ledger: Ledger, step: Step) -> None:
    assert ledger.last_change() == 0
    ledger.record_change(queued("a").id, ChangeKind.UPSERT)
    ledger.record_change(queued("b").id, ChangeKind.GONE)
    step()
    ledger.record_change(queued("a").id, ChangeKind.UNCHANGED)
    found = [(change.seq, change.url_id, change.kind) for change in ledger.changes(0, 10)]
    assert found == [
        (1, queued("a").id, ChangeKind.UPSERT),
        (2, queued("b").id, ChangeKind.GONE),
        (3, queued("a").id, ChangeKind.UNCHANGED),
    ]
    assert [change.seq for change in ledger.changes(1, 1)] == [2]
    assert ledger.changes(3, 10) == []
    assert ledger.last_change() == 3


def test_changes_go_on_from_the_last_committed_number(tmp_path: Path) -> None:
    ledger = LocalLedger(tmp_path / "state")
    ledger.open()
    ledger.record_change(b"a" * 16, ChangeKind.UPSERT)
    ledger.commit()
    ledger.record_change(b"lost" * 4, ChangeKind.UPSERT)
    ledger._store.close()  # as a killed process: what is not committed is gone
    again = LocalLedger(tmp_path / "state")
    again.open()
    assert again.last_change() == 1
    again.record_change(b"b" * 16, ChangeKind.GONE)
    assert [(change.seq, change.url_id) for change in again.changes(0, 9)] == [(1, b"a" * 16), (2, b"b" * 16)]
    again.close()


def test_a_url_is_admitted_once(ledger: Ledger, step: Step) -> None:
    ledger.put_host(HostRecord("h.test", "h.test"))
    a, b, c = queued("a", seq=1), queued("b", seq=2), queued("c", seq=3)
    assert ledger.admit([a, b, a]) == [a, b]
    step()
    assert ledger.admit([b, c, c]) == [c]
    assert ledger.is_seen(a.id)
    assert not ledger.is_seen(queued("d").id)


def test_another_spelling_of_a_url_is_the_same(ledger: Ledger) -> None:
    assert len(ledger.admit([queued("a?utm_source=x", seq=1)])) == 1
    assert ledger.admit([queued("a", seq=2)]) == []


def test_an_admitted_url_stands_in_the_catalog_as_queued(ledger: Ledger, step: Step) -> None:
    url = replace(queued("a", priority=3, seq=9), parent=b"p" * 16, found_at=4.5, https_first=True, hops=2)
    ledger.admit([url])
    step()
    assert ledger.look_up(url.id) == record_of(url)
    assert ledger.look_up(queued("b").id) is None


def test_a_host_gives_its_urls_in_order_of_priority_and_arrival(ledger: Ledger, step: Step) -> None:
    ledger.put_host(HostRecord("h.test", "h.test"))
    ledger.put_host(HostRecord("i.test", "i.test"))
    places = {"e": (2, 1), "a": (0, 4), "c": (1, 2), "b": (0, 5), "d": (1, 3)}
    for n, (path, (priority, seq)) in enumerate(places.items()):
        ledger.admit([queued(path, priority, seq), queued(path, 0, seq, host="i.test")])
        if n in (1, 3):
            step()
    assert paths(ledger.read_queue(H, None, 10)) == ["a", "b", "c", "d", "e"]
    assert paths(ledger.read_queue(H, None, 2)) == ["a", "b"]
    assert paths(ledger.read_queue(H, queued("b", 0, 5).position, 2)) == ["c", "d"]
    assert paths(ledger.read_queue(H, (1, 0, b"\xff" * 16), 10)) == ["c", "d", "e"]
    assert ledger.read_queue(H, queued("e", 2, 1).position, 10) == []
    assert paths(ledger.read_queue(H, (-(1 << 62), 0, b""), 10)) == ["a", "b", "c", "d", "e"]
    assert ledger.read_queue(host_id("j.test"), None, 10) == []


def test_the_end_of_a_queue_last_first(ledger: Ledger, step: Step) -> None:
    for name in ("h.test", "i.test"):
        ledger.put_host(HostRecord(name, name))
    for n, (path, priority) in enumerate([("c", 1), ("a", 0), ("e", 3), ("d", 2), ("b", 0)]):
        ledger.admit([queued(path, priority, n), queued(path, priority, n, host="i.test")])
        if n in (1, 3):
            step()
    assert paths(ledger.last(H, 2)) == ["e", "d"]
    assert paths(ledger.last(H, 99)) == ["e", "d", "c", "b", "a"]
    ledger.finish(queued("e", 3, 2), done(queued("e", 3, 2)))
    assert paths(ledger.last(H, 2)) == ["d", "c"]
    step()
    assert paths(ledger.last(H, 2)) == ["d", "c"]
    assert ledger.last(host_id("j.test"), 5) == []


def test_what_is_read_back_is_what_was_admitted(ledger: Ledger, step: Step) -> None:
    ledger.put_host(HostRecord("h.test", "h.test"))
    first = queued("a", priority=3, seq=9)
    url = replace(first, parent=b"p" * 16, found_at=4.5, https_first=True, hops=2, attempt=1, not_before=8.0)
    ledger.admit([url])
    step()
    assert ledger.read_queue(H, None, 1) == [url]


def test_a_settled_url_is_queued_no_more_but_stays_seen(ledger: Ledger, step: Step) -> None:
    ledger.put_host(HostRecord("h.test", "h.test"))
    a, b = queued("a", seq=1), queued("b", seq=2)
    ledger.admit([a, b])
    step()
    ledger.finish(a, done(a))
    assert paths(ledger.read_queue(H, None, 10)) == ["b"]
    step()
    assert paths(ledger.read_queue(H, None, 10)) == ["b"]
    assert ledger.look_up(a.id) == done(a)
    assert ledger.admit([a]) == []


def test_a_retry_keeps_its_place(ledger: Ledger, step: Step) -> None:
    ledger.put_host(HostRecord("h.test", "h.test"))
    a, b = queued("a", seq=1), queued("b", seq=2)
    ledger.admit([a, b])
    step()
    again = replace(a, attempt=1, not_before=77.0)
    ledger.requeue(again)
    assert ledger.read_queue(H, None, 10) == [again, b]
    step()
    assert ledger.read_queue(H, None, 10) == [again, b]


def test_a_settled_url_can_be_queued_again_elsewhere(ledger: Ledger, step: Step) -> None:
    ledger.put_host(HostRecord("h.test", "h.test"))
    a, b = queued("a", seq=1), queued("b", seq=2)
    ledger.admit([a, b])
    ledger.finish(a, done(a))
    step()
    again = replace(a, seq=3)
    ledger.requeue(again, done(a))
    assert paths(ledger.read_queue(H, None, 10)) == ["b", "a"]
    step()
    assert paths(ledger.read_queue(H, None, 10)) == ["b", "a"]
    record = ledger.look_up(a.id)
    assert record is not None
    assert (record.state, record.seq, record.status) == (UrlState.QUEUED, 3, 200)


def test_a_url_that_was_withdrawn_may_be_admitted_again(ledger: Ledger, step: Step) -> None:
    ledger.put_host(HostRecord("h.test", "h.test"))
    a, b = queued("a", seq=1), queued("b", seq=2)
    ledger.admit([a, b])
    step()
    ledger.finish(a, None)
    step()
    assert (ledger.look_up(a.id), ledger.is_seen(a.id)) == (None, False)
    assert ledger.read_queue(a.id[:8], None, 9) == [b]
    again = queued("a", seq=3)
    assert ledger.admit([again, b]) == [again]


def test_a_host_can_be_in_a_shard_where_it_does_not_belong(ledger: Ledger, step: Step) -> None:
    shard = shard_of(host_id("h.test")) ^ 1
    ledger.put_host(HostRecord("h.test", "h.test", queued=2), id_in_shard(shard, "h.test"))
    step()
    assert ledger.host("h.test") is None
    assert [host.queued for host in ledger.hosts(shard)] == [2]


def test_a_buried_host_has_nothing_queued(ledger: Ledger, step: Step) -> None:
    for name in ("h.test", "i.test"):
        ledger.put_host(HostRecord(name, name))
    ledger.admit([queued(str(n), seq=n) for n in range(5)])
    ledger.admit([queued("x", seq=9, host="i.test")])
    step()
    ledger.admit([queued(str(n), seq=n) for n in range(5, 8)])
    ledger.finish(queued("3", seq=3), done(queued("3", seq=3)))
    assert ledger.kill_queue(H, "dns_not_found", "no such name", 9.0) == 7
    step()
    assert ledger.read_queue(H, None, 10) == []
    assert ledger.kill_queue(H, "dns_not_found", "no such name", 9.0) == 0
    record = ledger.look_up(queued("6").id)
    assert record is not None
    assert (record.state, record.outcome, record.error, record.fetched_at) == (
        UrlState.DEAD,
        "dns_not_found",
        "no such name",
        9.0,
    )
    settled = ledger.look_up(queued("3").id)
    assert settled is not None
    assert settled.state is UrlState.DONE
    assert paths(ledger.read_queue(host_id("i.test"), None, 10)) == ["x"]


def test_killing_a_queue_preserves_what_the_catalog_knew(ledger: Ledger, step: Step) -> None:
    ledger.put_host(HostRecord("h.test", "h.test"))
    url = queued("a")
    ledger.admit([url])
    ledger.finish(url, done(url))
    step()
    ledger.requeue(url, done(url))
    assert ledger.kill_queue(H, "dns_not_found", "gone", 9.0) == 1
    record = ledger.look_up(url.id)
    assert record is not None
    assert (record.status, record.outcome) == (200, "dns_not_found")


def test_hosts(ledger: Ledger, step: Step) -> None:
    record = HostRecord("h.test", "h.test", queued=3)
    ledger.put_host(record)
    record.queued = 4
    assert ledger.host("h.test") == record
    step()
    assert ledger.host("h.test") == record
    assert ledger.host("h.test.") == record, "a final dot names the same host"
    assert ledger.host("i.test") is None
    ledger.put_host(HostRecord("i.test", "i.test"))
    step()
    ledger.put_host(HostRecord("i.test", "i.test", pages=7))
    ledger.put_host(HostRecord("j.test", "j.test"))
    assert sorted((host.name, host.pages) for host in ledger.hosts()) == [("h.test", 0), ("i.test", 7), ("j.test", 0)]


def test_domains(ledger: Ledger, step: Step) -> None:
    assert ledger.domain("h.test") is None
    ledger.put_domain(DomainRecord("h.test", pages=1))
    ledger.put_domain(DomainRecord("i.test", pages=1))
    step()
    ledger.put_domain(DomainRecord("h.test", pages=2))
    ledger.put_domain(DomainRecord("j.test", pages=3))
    assert ledger.domain("h.test") == DomainRecord("h.test", pages=2)
    assert sorted((d.name, d.pages) for d in ledger.domains()) == [("h.test", 2), ("i.test", 1), ("j.test", 3)]
    step()
    assert sorted((d.name, d.pages) for d in ledger.domains()) == [("h.test", 2), ("i.test", 1), ("j.test", 3)]


@pytest.mark.parametrize("body", [b"", b"x" * 1024, b"Disallow: /x\n" * 40_000, random.Random(1).randbytes(50_000)])
def test_a_robots_txt_of_any_length_is_returned_as_it_was_stored(ledger: Ledger, step: Step, body: bytes) -> None:
    stored = ContentRecord(b"", "http://h.test/robots.txt", 1.0, b"d" * 20, None)
    record = RobotsRecord("http://h.test", 200, "ok", body, 1.0, 2.0, '"e"', "m", stored)
    ledger.put_robots(record)
    step()
    assert ledger.robots(H) == [record]
    assert record.body == body


def test_robots_of_each_origin_of_a_host(ledger: Ledger, step: Step) -> None:
    def robots(origin: str, body: bytes = b"") -> RobotsRecord:
        return RobotsRecord(origin, 200, "ok", body, 1.0, 2.0)

    ledger.put_robots(robots("http://h.test", b"old"))
    ledger.put_robots(robots("http://i.test"))
    step()
    ledger.put_robots(robots("https://h.test:444"))
    ledger.put_robots(robots("http://h.test", b"new"))
    step()
    assert sorted((record.origin, record.body) for record in ledger.robots(H)) == [
        ("http://h.test", b"new"),
        ("https://h.test:444", b""),
    ]
    assert ledger.robots(host_id("j.test")) == []


def test_swapped_out_hosts_come_back_soonest_first(ledger: Ledger, step: Step) -> None:
    assert ledger.swapped_out() == (0, float("inf"))
    for name, until in [("c.test", 30.0), ("a.test", 10.0)]:
        ledger.swap_out(name, until)
    step()
    for name, until in [("b.test", 20.0), ("d.test", 40.0)]:
        ledger.swap_out(name, until)
    assert ledger.swapped_out() == (4, 10.0)
    assert ledger.swap_in_due(9.0, 10) == []
    assert ledger.swap_in_due(35.0, 2) == ["a.test", "b.test"]
    assert ledger.swapped_out() == (2, 30.0)
    step()
    assert ledger.swap_in_due(35.0, 2) == ["c.test"]
    assert ledger.swap_in_due(35.0, 2) == []
    step()
    assert ledger.swapped_out() == (1, 40.0)
    assert ledger.swap_in_due(40.0, 2) == ["d.test"]
    assert ledger.swapped_out() == (0, float("inf"))


def test_a_host_is_swapped_out_again(ledger: Ledger, step: Step) -> None:
    ledger.swap_out("a.test", 10.0)
    step()
    assert ledger.swap_in_due(10.0, 1) == ["a.test"]
    ledger.swap_out("a.test", 10.0)
    assert ledger.swapped_out() == (1, 10.0)
    step()
    assert ledger.swap_in_due(10.0, 1) == ["a.test"]
    assert ledger.swapped_out() == (0, float("inf"))


def test_swapping_out_twice_for_the_same_time_counts_once(ledger: Ledger, step: Step) -> None:
    ledger.swap_out("a.test", 10.0)
    step()
    ledger.swap_out("a.test", 10.0)
    assert ledger.swapped_out() == (1, 10.0)
    assert ledger.swap_in_due(10.0, 5) == ["a.test"]
    assert ledger.swapped_out() == (0, float("inf"))


@pytest.mark.parametrize("start", [1_700_000_000.0, 0.0])
def test_whoever_waits_until_the_time_named_finds_the_host_due(ledger: Ledger, start: float) -> None:
    for n in range(500):
        ledger.swap_out("a.test", start + n * 0.123_456_7)
        _, until = ledger.swapped_out()
        assert ledger.swap_in_due(until, 1) == ["a.test"]


def test_the_first_page_with_a_content_stays_the_first(ledger: Ledger, step: Step) -> None:
    first = ContentRecord(b"u" * 16, "http://h.test/", 1.0, b"d" * 20)
    assert ledger.first_with_content(b"c" * 16) is None
    assert ledger.put_content(b"c" * 16, first) is None
    step()
    assert ledger.put_content(b"c" * 16, ContentRecord(b"v" * 16, "http://i.test/", 2.0, b"d" * 20)) == first
    step()
    assert ledger.first_with_content(b"c" * 16) == first


def test_archive_ends_only_grow(ledger: Ledger, step: Step) -> None:
    ledger.put_archive_end("a.warc.gz", 100)
    ledger.put_archive_end("b.warc.gz", 7)
    step()
    ledger.put_archive_end("a.warc.gz", 90)
    assert ledger.archive_ends() == {"a.warc.gz": 100, "b.warc.gz": 7}
    step()
    ledger.put_archive_end("a.warc.gz", 120)
    step()
    assert ledger.archive_ends() == {"a.warc.gz": 120, "b.warc.gz": 7}


def test_the_crawls_state_is_stored_as_it_is_at_that_moment(ledger: Ledger, step: Step) -> None:
    assert ledger.crawl_state() is None
    state = CrawlState(saved_at=1.0, scope=["http://h.test/"])
    state.totals.pages = 7
    ledger.put_crawl_state(state)
    step()
    state.totals.pages = 8
    stored = ledger.crawl_state()
    assert stored is not None
    assert (stored.totals.pages, stored.saved_at, stored.scope) == (7, 1.0, ["http://h.test/"])
    ledger.put_crawl_state(state)
    step()
    assert ledger.crawl_state() == state


def test_two_urls_with_equal_priority_and_seq_are_both_queued(ledger: Ledger, step: Step) -> None:
    ledger.put_host(HostRecord("h.test", "h.test"))
    twins = [queued("a", 1, 5), queued("b", 1, 5)]
    assert ledger.admit(twins) == twins
    step()
    read = ledger.read_queue(H, None, 10)
    assert sorted(paths(read)) == ["a", "b"]
    assert ledger.read_queue(H, None, 1) + ledger.read_queue(H, read[0].position, 1) == read
    ledger.finish(read[0], done(read[0]))
    step()
    assert ledger.read_queue(H, None, 10) == read[1:]


def test_a_shard_has_its_own_numbers_and_an_owner_counts_on_from_the_greatest(ledger: Ledger, step: Step) -> None:
    one, two = queued("a", seq=4), queued("a", seq=9, host="i.test")
    assert ledger.next_seq() == 1
    ledger.admit([one, two])
    ledger.record_change(one.id, ChangeKind.UPSERT)
    step()
    assert ledger.shard_state(shard_of(one.id)) == ShardState(next_seq=5, last_change=1)
    assert ledger.shard_state(shard_of(two.id)) == ShardState(next_seq=10, last_change=0)
    assert ledger.next_seq() == 10


def test_changes_of_many_shards_come_in_the_order_in_which_they_happened(ledger: Ledger, step: Step) -> None:
    ids = [queued(str(n), host=f"h{n % 7}.test").id for n in range(200)]
    for n, url_id in enumerate(ids):
        ledger.record_change(url_id, ChangeKind.UPSERT)
        if n == 99:
            step()
    assert [change.url_id for change in ledger.changes(0, 1000)] == ids
    assert [change.seq for change in ledger.changes(95, 10)] == list(range(96, 106))


def test_records_are_stored_by_key_and_by_shard(ledger: Ledger, step: Step) -> None:
    evidence = HostEvidence("h.test", dated_urls=3, is_probed=True, repeated_texts={b"t" * 8: 2})
    quarantine = Quarantine("h.test", "/x/#", 1.0, 100, 2, ["http://h.test/x/1"], held=4)
    sitemap = queued("sitemap.xml").id
    ledger.put_record(EVIDENCE, HostEvidence("h.test"))
    ledger.put_record(QUARANTINES, quarantine)
    step()
    ledger.put_record(EVIDENCE, evidence)
    ledger.put_record(EVIDENCE, HostEvidence("i.test", dated_urls=1))
    ledger.put_record(SUBMITTERS, Submitters(sitemap, ("a.test", "b.test")))
    quarantine.held = 99
    step()
    shard = shard_of(H)
    assert list(ledger.records(EVIDENCE, shard)) == [evidence]
    assert sorted(each.host for each in ledger.records(EVIDENCE)) == ["h.test", "i.test"]
    assert [(each.name, each.held) for each in ledger.records(QUARANTINES, shard)] == [("h.test/x/#", 4)]
    assert list(ledger.records(QUARANTINES, shard_of(host_id("i.test")))) == []
    assert ledger.record(SUBMITTERS, sitemap) == Submitters(sitemap, ("a.test", "b.test"))
    assert ledger.record(SUBMITTERS, queued("other").id) is None


def held(path: str, rule: HoldRule, host: str = "h.test") -> HeldUrl:
    link = link_to(f"http://{host}/{path}")
    return HeldUrl(link.url, link.id, rule, 1, Source.LINK, FetchKind.PAGE, b"p" * 16)


def test_records_are_read_in_order_by_prefix_and_removed(ledger: Ledger, step: Step) -> None:
    calendar = sorted((held(str(n), HoldRule.CALENDAR) for n in range(20)), key=lambda one: one.id)
    others = [held(str(n), HoldRule.QUARANTINE) for n in range(5)]
    elsewhere = [held(str(n), HoldRule.CALENDAR, "i.test") for n in range(5)]
    for number, one in enumerate([*calendar, *others, *elsewhere]):
        ledger.put_record(HELD, one)
        if number % 7 == 0:
            step()
    prefix = held_prefix(H, HoldRule.CALENDAR)
    assert ledger.first_records(HELD, prefix) == calendar
    assert ledger.first_records(HELD, prefix, count=3) == calendar[:3]
    after = HELD.key(calendar[2])
    assert ledger.first_records(HELD, prefix, after, 4) == calendar[3:7]
    for one in calendar[1::2]:
        ledger.remove_record(HELD, HELD.key(one))
    ledger.remove_record(HELD, HELD.key(held("never", HoldRule.CALENDAR)))
    step()
    assert ledger.first_records(HELD, prefix) == calendar[::2]
    assert ledger.record(HELD, HELD.key(calendar[1])) is None
    assert len(list(ledger.records(HELD, shard_of(H)))) == 15
    assert len(list(ledger.records(HELD))) == 20
    ledger.put_record(HELD, calendar[1])
    step()
    assert ledger.first_records(HELD, prefix, count=2) == calendar[:2]


def test_the_due_index_is_read_by_host_and_by_shard_in_order_of_time(ledger: Ledger, step: Step) -> None:
    times = [5_000_000_000, 70, 300, 65_536, 1 << 24, 256]
    urls = [DueUrl(queued(str(at)).id, at) for at in times]
    elsewhere = [DueUrl(queued(str(at), host="i.test").id, at) for at in times]
    for number, due in enumerate([*urls, *elsewhere]):
        ledger.put_record(DUE, due)
        if number == 3:
            step()
    assert [due.at for due in ledger.first_records(DUE, H)] == sorted(times)
    assert [due.at for due in ledger.first_records(DUE, H, count=2)] == sorted(times)[:2]
    ledger.remove_record(DUE, due_key(queued("70").id, 70))
    ledger.put_record(DUE, DueUrl(queued("70").id, 400))  # put off
    step()
    assert [due.at for due in ledger.first_records(DUE, H, count=2)] == [256, 300]
    assert len(list(ledger.records(DUE, shard_of(H)))) == len(times)

    names = ["h.test", "sub.h.test", "www.h.test", "i.test"]  # the first three are of one shard
    for number, name in enumerate(names):
        ledger.put_record(DUE_HOSTS, DueHost(name, 1000 - number))
    step()
    shard = shard_prefix(shard_of(H))
    assert [due.host for due in ledger.first_records(DUE_HOSTS, shard)] == ["www.h.test", "sub.h.test", "h.test"]
    ledger.remove_record(DUE_HOSTS, due_host_key("www.h.test", 998))
    assert [due.host for due in ledger.first_records(DUE_HOSTS, shard, count=1)] == ["sub.h.test"]
    visits = HostVisits("h.test", due_at=1000)
    visits.hints[0].record(True, True)
    ledger.put_record(HOST_VISITS, visits)
    ledger.put_record(SHARD_VISITS, ShardVisits(shard_of(H), [(1, -2, 3, 40)], is_enrolled=True))
    step()
    assert ledger.record(HOST_VISITS, H) == visits
    assert ledger.record(SHARD_VISITS, shard) == ShardVisits(shard_of(H), [(1, -2, 3, 40)], is_enrolled=True)
    assert [each.shard for each in ledger.records(SHARD_VISITS, shard_of(H))] == [shard_of(H)]
    assert list(ledger.records(SHARD_VISITS, shard_of(H) + 1)) == []


def test_hosts_and_domains_of_one_shard(ledger: Ledger, step: Step) -> None:
    names = [f"h{n}.test" for n in range(40)]
    for n, name in enumerate(names):
        ledger.put_host(HostRecord(name, name))
        ledger.put_domain(DomainRecord(name))
        if n == 20:
            step()
    for name in names:
        shard = shard_of(host_id(name))
        expected = sorted(other for other in names if shard_of(host_id(other)) == shard)
        assert sorted(host.name for host in ledger.hosts(shard)) == expected
        assert sorted(domain.name for domain in ledger.domains(shard)) == expected


def test_swapped_out_hosts_of_a_released_shard_are_not_due_until_it_is_taken_again(ledger: Ledger, step: Step) -> None:
    ledger.swap_out("h.test", 10.0)
    ledger.swap_out("i.test", 20.0)
    step()
    ledger.release_shard(shard_of(H))
    assert ledger.swapped_out() == (1, 20.0)
    assert ledger.swap_in_due(15.0, 5) == []
    ledger.take_shard(shard_of(H))
    assert ledger.swapped_out() == (2, 10.0)
    assert ledger.swap_in_due(30.0, 5) == ["h.test", "i.test"]


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_a_sealed_commit_is_its_rows_by_shard(kind: str, tmp_path: Path) -> None:
    ledger: Ledger = MemoryLedger()
    if kind == "local":
        ledger = LocalLedger(tmp_path / "state")
        ledger.open()
        ledger.commit()
    host, other = HostRecord("h.test", "h.test"), queued("b", seq=2, host="i.test")
    ledger.put_host(host)
    ledger.admit([queued("a", seq=1), other])
    ledger.finish(other, done(other))
    ledger.put_archive_end("a.warc.gz", 5)
    sealed = ledger.seal()
    host.pages = 9
    by_shard = sealed.by_shard()
    assert by_shard[shard_of(H)] == [
        Row("hosts", H, rows.encode(HostRecord("h.test", "h.test"))),
        Row("queue", rows.queue_key(queued("a", seq=1)), b""),
        Row("shards", shard_prefix(shard_of(H)), rows.encode(ShardState(next_seq=2))),
        Row("urls", queued("a").id, rows.encode(record_of(queued("a", seq=1)))),
    ]
    assert by_shard[shard_of(other.id)] == [
        Row("queue", rows.queue_key(other), None),
        Row("shards", shard_prefix(shard_of(other.id)), rows.encode(ShardState(next_seq=3))),
        Row("urls", other.id, rows.encode(done(other))),
    ]
    assert sealed.unsharded() == [Row("archives", b"a.warc.gz", (5).to_bytes(8, "big"))]
    sealed.write()
    assert ledger.seal().by_shard() == {}


def test_the_committed_catalog_in_order_of_id(ledger: Ledger) -> None:
    urls = [queued(str(n), seq=n, host=host) for n in range(30) for host in ("h.test", "i.test")]
    ledger.admit(urls)
    ledger.finish(urls[0], done(urls[0]))
    ledger.commit()
    rows = list(ledger.urls())
    assert [url_id for url_id, _ in rows] == sorted(url.id for url in urls)
    assert dict(rows)[urls[0].id] == done(urls[0])
    assert sorted(url_id for url_id, _ in ledger.urls(H)) == sorted(url.id for url in urls if url.host == "h.test")


def test_a_catalog_of_many_slices_is_whole(ledger: Ledger) -> None:
    urls = [queued(str(n), seq=n, host="h.test" if n % 3 else "i.test") for n in range(4500)]
    ledger.admit(urls)
    ledger.commit()
    assert [url_id for url_id, _ in ledger.urls()] == sorted(url.id for url in urls)
    assert len(list(ledger.urls(H))) == 3000


# -- what only a ledger on disk can show ----------------------------------------------------------


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalLedger]:
    ledger = LocalLedger(tmp_path / "state")
    ledger.open()
    yield ledger
    ledger.close()


def _copy(ledger: LocalLedger, tmp_path: Path) -> LocalLedger:
    """Return a ledger over what is on disk now: what a killed process leaves."""
    target = tmp_path / "copy"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    shutil.copy(tmp_path / "state" / "data.mdb", target)
    copy = LocalLedger(target)
    copy.open()
    return copy


def _fill(ledger: LocalLedger) -> None:
    ledger.put_host(HostRecord("h.test", "h.test", queued=2))
    ledger.put_domain(DomainRecord("h.test", pages=1))
    ledger.put_robots(RobotsRecord("http://h.test", 200, "ok", b"x", 1.0, 2.0))
    ledger.swap_out("h.test", 10.0)
    ledger.put_content(b"c" * 16, ContentRecord(b"u" * 16, "http://h.test/", 1.0, b""))
    ledger.put_archive_end("a", 5)
    ledger.put_crawl_state(CrawlState(saved_at=5.0))
    ledger.record_change(queued("a").id, ChangeKind.UPSERT)
    ledger.admit([queued("a", seq=1), queued("b", seq=2), queued("c", seq=3)])
    ledger.finish(queued("b", seq=2), done(queued("b", seq=2)))


def _answers(ledger: LocalLedger) -> list[object]:
    return [
        ledger.host("h.test"),
        ledger.domain("h.test"),
        ledger.robots(H),
        ledger.swapped_out(),
        ledger.first_with_content(b"c" * 16),
        ledger.archive_ends(),
        ledger.crawl_state(),
        ledger.changes(0, 10),
        ledger.next_seq(),
        ledger.read_queue(H, None, 10) if ledger.host("h.test") else [],
        [ledger.look_up(queued(path).id) for path in "abcd"],
        [ledger.is_seen(queued(path).id) for path in "abcd"],
        list(ledger.hosts()),
        list(ledger.domains()),
    ]


def test_answers_are_the_same_before_during_and_after_a_commit(local: LocalLedger) -> None:
    _fill(local)
    before = _answers(local)
    sealed = local.seal()
    assert _answers(local) == before
    sealed.write()
    assert _answers(local) == before


def test_a_reopened_ledger_gives_the_same_answers(tmp_path: Path) -> None:
    ledger = LocalLedger(tmp_path / "state")
    ledger.open()
    _fill(ledger)
    before = _answers(ledger)
    ledger.close()
    again = LocalLedger(tmp_path / "state")
    again.open()
    assert _answers(again) == before
    assert again.admit([queued("a"), queued("d", seq=4)]) == [queued("d", seq=4)]
    again.close()


def test_a_kill_leaves_only_what_was_committed(local: LocalLedger, tmp_path: Path) -> None:
    local.commit()
    copy = _copy(local, tmp_path)
    empty = _answers(copy)
    copy.close()
    _fill(local)
    sealed = local.seal()
    copy = _copy(local, tmp_path)
    assert _answers(copy) == empty
    copy.close()
    sealed.write()
    committed = _answers(local)
    local.admit([queued("d", seq=4)])
    local.finish(queued("a", seq=1), done(queued("a", seq=1)))
    local.put_host(HostRecord("h.test", "h.test", queued=99))
    local.swap_in_due(99.0, 1)
    copy = _copy(local, tmp_path)
    assert _answers(copy) == committed
    copy.close()


def test_changes_between_sealing_and_writing_are_kept_for_the_next_commit(local: LocalLedger, tmp_path: Path) -> None:
    _fill(local)
    sealed = local.seal()
    local.admit([queued("d", seq=4)])
    local.finish(queued("a", seq=1), done(queued("a", seq=1)))
    local.requeue(replace(queued("c", seq=3), attempt=2))
    assert local.swap_in_due(10.0, 1) == ["h.test"]
    assert paths(local.read_queue(H, None, 10)) == ["c", "d"]
    sealed.write()
    assert paths(local.read_queue(H, None, 10)) == ["c", "d"]
    assert local.swapped_out()[0] == 0
    copy = _copy(local, tmp_path)
    assert paths(copy.read_queue(H, None, 10)) == ["a", "c"]
    assert copy.swapped_out() == (1, 10.0)
    copy.close()
    local.commit()
    copy = _copy(local, tmp_path)
    assert paths(copy.read_queue(H, None, 10)) == ["c", "d"]
    assert [url.attempt for url in copy.read_queue(H, None, 10)] == [2, 0]
    assert copy.swapped_out()[0] == 0
    copy.close()


def test_a_host_is_written_as_it_was_when_the_commit_began(local: LocalLedger, tmp_path: Path) -> None:
    record = HostRecord("h.test", "h.test")
    local.put_host(record)
    record.pages = 1
    sealed = local.seal()
    record.pages = 2
    sealed.write()
    copy = _copy(local, tmp_path)
    stored = copy.host("h.test")
    assert stored is not None
    assert stored.pages == 1
    copy.close()


def test_one_commit_at_a_time(local: LocalLedger) -> None:
    sealed = local.seal()
    with pytest.raises(RuntimeError, match="has not ended"):
        local.seal()
    sealed.write()
    local.commit()


def test_a_reader_beside_the_writer_sees_what_is_committed(local: LocalLedger, tmp_path: Path) -> None:
    _fill(local)
    local.commit()
    local.admit([queued("d", seq=4)])
    copy = _copy(local, tmp_path)
    copy.close()
    reader = LocalLedger(tmp_path / "copy", is_readonly=True)
    reader.open()
    assert reader.look_up(queued("a").id) is not None
    assert reader.look_up(queued("d").id) is None
    assert reader.first_with_content(b"c" * 16) is not None
    reader.close()
