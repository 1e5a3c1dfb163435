"""The ledger on disk, held against the one in memory, whatever is done to both and whenever it is committed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.ledger.catalog import record_of
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import host_id
from gossamer.model.records import (
    ChangeKind,
    ContentRecord,
    DomainRecord,
    HostRecord,
    QueuedUrl,
    RobotsRecord,
    UrlState,
)
from gossamer.model.state import CrawlState
from gossamer.ports import SealedChanges
from tests.amount import amount

HOSTS = ("a.test", "b.test", "c.test")
_hosts = st.sampled_from(HOSTS)
_small = st.integers(0, 6)


class LedgerModel(RuleBasedStateMachine):
    """Does the same to both and compares every answer."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.local = LocalLedger(Path(self._folder.name) / "state")
        self.local.open()
        self.model = MemoryLedger()
        self.queued: dict[bytes, QueuedUrl] = {}
        self.settled: dict[bytes, QueuedUrl] = {}
        self.swapped_out: set[str] = set()
        self.sealed: SealedChanges | None = None
        self.seq = 0
        for name in HOSTS:
            for ledger in (self.local, self.model):
                ledger.put_host(HostRecord(name, name))

    def teardown(self) -> None:
        if self.sealed is not None:
            self.sealed.write()
        self.local.close()
        self._folder.cleanup()

    def _url(self, host: str, path: int, priority: int) -> QueuedUrl:
        self.seq += 1
        link = link_to(f"http://{host}/{path}")
        return QueuedUrl(link.url, link.id, host, priority, self.seq, depth=0)

    @rule(places=st.lists(st.tuples(_hosts, st.integers(0, 12), _small), max_size=6))
    def admit(self, places: list[tuple[str, int, int]]) -> None:
        urls = [self._url(*place) for place in places]
        new = self.local.admit(urls)
        assert new == self.model.admit(urls)
        self.queued.update((url.id, url) for url in new)

    @precondition(lambda self: self.queued)
    @rule(data=st.data(), is_dead=st.booleans())
    def finish(self, data: st.DataObject, is_dead: bool) -> None:
        url = self.queued.pop(data.draw(st.sampled_from(sorted(self.queued))))
        record = replace(record_of(url), state=UrlState.DEAD if is_dead else UrlState.DONE, title="t")
        self.local.finish(url, record)
        self.model.finish(url, replace(record))
        self.settled[url.id] = url

    @precondition(lambda self: self.queued)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        url = self.queued[data.draw(st.sampled_from(sorted(self.queued)))]
        again = replace(url, attempt=url.attempt + 1, not_before=url.not_before + 5.0)
        self.local.requeue(again)
        self.model.requeue(again)
        self.queued[url.id] = again

    @precondition(lambda self: self.settled)
    @rule(data=st.data(), priority=_small)
    def queue_again(self, data: st.DataObject, priority: int) -> None:
        url = self.settled.pop(data.draw(st.sampled_from(sorted(self.settled))))
        self.seq += 1
        again = replace(url, priority=priority, seq=self.seq)
        for ledger in (self.local, self.model):
            record = ledger.look_up(url.id)
            assert record is not None
            ledger.requeue(again, replace(record))
        self.queued[url.id] = again

    @rule(host=_hosts)
    def kill_queue(self, host: str) -> None:
        assert self.local.kill_queue(host_id(host), "dns", "e", 3.0) == self.model.kill_queue(
            host_id(host), "dns", "e", 3.0
        )
        for url in [url for url in self.queued.values() if url.host == host]:
            self.settled[url.id] = self.queued.pop(url.id)

    @rule(host=_hosts, priority=st.integers(-1, 7), seq=st.integers(0, 40), count=st.integers(1, 8))
    def read_queue(self, host: str, priority: int, seq: int, count: int) -> None:
        after = None if priority < 0 else (priority, seq, b"\x80" * 16)
        assert self.local.read_queue(host_id(host), after, count) == self.model.read_queue(host_id(host), after, count)
        assert self.local.last(host_id(host), count) == self.model.last(host_id(host), count)

    @rule(host=_hosts, pages=_small)
    def keep_host(self, host: str, pages: int) -> None:
        for ledger in (self.local, self.model):
            ledger.put_host(HostRecord(host, host, pages=pages))
            ledger.put_domain(DomainRecord(host, pages=pages))
            ledger.put_robots(RobotsRecord(f"http://{host}:{pages + 1}", 200, "ok", b"", 1.0, 2.0))

    @rule(host=_hosts, until=st.floats(1, 50))
    def swap_out(self, host: str, until: float) -> None:
        if host in self.swapped_out:
            return
        self.swapped_out.add(host)
        until = round(until, 6)
        self.local.swap_out(host, until)
        self.model.swap_out(host, until)

    @rule(now=st.floats(0, 50), count=st.integers(1, 3))
    def swap_in(self, now: float, count: int) -> None:
        now = round(now, 6)
        swapped_in = self.local.swap_in_due(now, count)
        assert swapped_in == self.model.swap_in_due(now, count)
        self.swapped_out -= set(swapped_in)

    @rule(number=_small, end=st.integers(0, 100))
    def keep_values(self, number: int, end: int) -> None:
        for ledger in (self.local, self.model):
            ledger.put_content(bytes([number]) * 16, ContentRecord(bytes(16), str(end), 0.0, b""))
            ledger.put_archive_end(f"{number}.warc.gz", end)
            ledger.put_crawl_state(CrawlState(saved_at=float(end)))
            ledger.record_change(link_to(f"http://{HOSTS[number % 3]}/{number}").id, ChangeKind.UPSERT)

    @precondition(lambda self: self.sealed is None)
    @rule()
    def seal(self) -> None:
        self.sealed = self.local.seal()

    @precondition(lambda self: self.sealed is not None)
    @rule()
    def finish_writing(self) -> None:
        assert self.sealed is not None
        self.sealed.write()
        self.sealed = None

    @precondition(lambda self: self.sealed is None)
    @rule()
    def reopen(self) -> None:
        self.local.close()
        self.local = LocalLedger(Path(self._folder.name) / "state")
        self.local.open()
        assert list(self.local.urls()) == list(self.model.urls())

    @invariant()
    def answers_agree(self) -> None:
        assert self.local.swapped_out() == self.model.swapped_out()
        assert self.local.archive_ends() == self.model.archive_ends()
        assert self.local.crawl_state() == self.model.crawl_state()
        assert self.local.changes(3, 5) == self.model.changes(3, 5)
        assert self.local.next_seq() == self.model.next_seq()
        for name in HOSTS:
            assert self.local.read_queue(host_id(name), None, 99) == self.model.read_queue(host_id(name), None, 99)
            assert self.local.host(name) == self.model.host(name)
            assert self.local.domain(name) == self.model.domain(name)
            assert sorted(record.origin for record in self.local.robots(host_id(name))) == sorted(
                record.origin for record in self.model.robots(host_id(name))
            )
            for path in range(13):
                url_id = link_to(f"http://{name}/{path}").id
                assert self.local.look_up(url_id) == self.model.look_up(url_id)
                assert self.local.is_seen(url_id) is self.model.is_seen(url_id)
        for number in range(7):
            assert self.local.first_with_content(bytes([number]) * 16) == self.model.first_with_content(
                bytes([number]) * 16
            )


LedgerModel.TestCase.settings = settings(max_examples=amount(15, 30), stateful_step_count=30)
TestLedgerModel = LedgerModel.TestCase
