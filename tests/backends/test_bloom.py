"""The filter of seen URLs: how large, how often wrong, and never wrong about what it has."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from pathlib import Path

import pytest

from gossamer.backends.local.bloom import PARTITIONS, SeenFilter
from gossamer.backends.local.digest_log import GROUP_BYTES, TABLE, DigestLog
from gossamer.backends.local.ledger import LedgerLimits, LocalLedger
from gossamer.backends.local.store import Store
from gossamer.core.url.forms import link_to
from gossamer.model.records import HostRecord, QueuedUrl, UrlState

FALSE_POSITIVES = 0.001
_STRANGERS = 1 << 40


def _ids(start: int, stop: int) -> list[bytes]:
    return [n.to_bytes(16, "big") for n in range(start, stop)]


def _wrong(seen: SeenFilter, strangers: int = 200_000) -> float:
    return sum(url_id in seen.partitions for url_id in _ids(_STRANGERS, _STRANGERS + strangers)) / strangers


def _theory(urls: int, wrong: float = FALSE_POSITIVES) -> float:
    return -urls * log(wrong) / log(2) ** 2 / 8


def _no_keys() -> Iterator[bytes]:
    raise AssertionError("the keys were read")
    yield b""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path, ("urls", TABLE), {TABLE: GROUP_BYTES}, is_readonly=False)
    store.open()
    store.create_tables()
    yield store
    store.close()


def _filter(store: Store, max_bytes: int | None = None) -> SeenFilter:
    return SeenFilter(DigestLog(store, b"u"), max_bytes)


def _add(store: Store, seen: SeenFilter, start: int, stop: int, per_commit: int = 2500) -> None:
    """Add URLs as a crawl does."""
    for number, url_id in enumerate(_ids(start, stop), 1):
        seen.add(url_id)
        store.put("urls", url_id, b"")
        if number % per_commit == 0:
            seen.seal()
            store.write_now()
    seen.seal()
    store.write_now()


def test_at_every_size_it_is_as_small_as_theory_allows_and_as_right(store: Store) -> None:
    seen = _filter(store)
    _add(store, seen, 0, 100_000)
    largest = 0.0
    for start in range(100_000, 300_000, 500):
        _add(store, seen, start, start + 500)
        largest = max(largest, seen.size_in_bytes / _theory(start + 500))
        if start % 50_000 == 0:
            assert _wrong(seen) < 1.2 * FALSE_POSITIVES
    assert 0.95 < largest < 1.1
    assert all(url_id in seen.partitions for url_id in _ids(0, 300_000))
    assert seen.count == 300_000


def test_one_partition_grows_at_a_time_and_in_slices(store: Store) -> None:
    seen = _filter(store)
    _add(store, seen, 0, 100_000)
    sizes = []
    growing = set()
    for url_id in _ids(100_000, 180_000):
        before = seen.size_in_bytes
        seen.add(url_id)
        growing.add(seen.partitions.growing)
        sizes.append(seen.size_in_bytes - before)
        store.put("urls", url_id, b"")
    assert growing == {-1, *range(PARTITIONS)}, "every partition grew, and not within one addition"
    assert max(sizes) < 1.5 * seen.size_in_bytes / PARTITIONS


def test_it_is_opened_from_its_log_without_a_look_at_the_keys(store: Store) -> None:
    _add(store, _filter(store), 0, 150_000)
    again = _filter(store)
    again.open(150_000, _no_keys())
    assert again.count == 150_000
    assert all(url_id in again.partitions for url_id in _ids(0, 150_000))
    assert again.size_in_bytes < 1.1 * _theory(150_000)
    assert _wrong(again) < 1.2 * FALSE_POSITIVES
    _add(store, again, 150_000, 200_000)
    third = _filter(store)
    third.open(200_000, _no_keys())
    assert all(url_id in third.partitions for url_id in _ids(0, 200_000))


@pytest.mark.parametrize("logged", [0, 700, 70_000])
def test_a_log_that_lacks_urls_is_written_anew_once(store: Store, logged: int) -> None:
    _add(store, _filter(store), 0, logged)
    for url_id in _ids(logged, logged + 5000):  # by a version without the log
        store.put("urls", url_id, b"")
    store.write_now()
    count = store.committed_count("urls")
    _filter(store).open(count, store.committed_keys("urls"))
    again = _filter(store)
    again.open(count, _no_keys())
    assert again.count == logged + 5000
    assert all(url_id in again.partitions for url_id in _ids(0, logged + 5000))


def test_a_url_takes_nine_bytes_of_the_log_however_few_a_commit_has(store: Store) -> None:
    seen = _filter(store)
    _add(store, seen, 0, 3000, per_commit=3)
    assert store.committed_count(TABLE) < 10
    _add(store, seen, 3000, 130_000)
    entries = list(store.committed_views(TABLE))
    pages = sum(-(-(len(value) + 16) // 4096) for _, value in entries)
    assert pages * 4096 < 9.5 * 130_000
    assert len(entries) < 200


@pytest.mark.parametrize("max_bytes", [0, 100, 2000, 20_000])
def test_at_its_limit_it_grows_no_more_and_still_denies_nothing_it_has(store: Store, max_bytes: int) -> None:
    seen = _filter(store, max_bytes)
    for start in range(0, 30_000, 1000):
        _add(store, seen, start, start + 1000)
        assert seen.size_in_bytes <= max(max_bytes, PARTITIONS + 1)
    assert all(url_id in seen.partitions for url_id in _ids(0, 30_000))
    assert seen.size_in_bytes >= 0.95 * max_bytes - PARTITIONS, "what it may have it uses"
    again = _filter(store, max_bytes)
    again.open(30_000, _no_keys())
    again.add(b"x" * 16)
    assert all(url_id in again.partitions for url_id in [*_ids(0, 30_000), b"x" * 16])
    assert again.size_in_bytes <= max(max_bytes, PARTITIONS + 1)


@pytest.mark.parametrize(("max_bytes", "bits_per_url"), [(40_000, 10.7), (20_000, 5.3), (10_000, 2.7)])
def test_at_its_limit_it_is_as_right_as_its_bits_allow(store: Store, max_bytes: int, bits_per_url: float) -> None:
    seen = _filter(store, max_bytes)
    _add(store, seen, 0, 30_000)
    possible = 2 ** (-bits_per_url * log(2))
    assert possible * 0.9 < _wrong(seen, 50_000) < possible * 1.4


def test_a_limit_that_is_not_reached_changes_nothing(tmp_path: Path) -> None:
    sizes = []
    for max_bytes in (None, 1_000_000):
        folder = tmp_path / str(max_bytes)
        folder.mkdir()
        store = Store(folder, ("urls", TABLE), {TABLE: GROUP_BYTES}, is_readonly=False)
        store.open()
        store.create_tables()
        seen = _filter(store, max_bytes)
        _add(store, seen, 0, 60_000)
        sizes.append(seen.size_in_bytes)
        store.close()
    assert sizes[0] == sizes[1]


# -- in the ledger ------------------------------------------------------------------------------------


def _urls(count: int) -> list[QueuedUrl]:
    links = [link_to(f"http://h.test/{number}") for number in range(count)]
    return [QueuedUrl(link.url, link.id, link.host, 0, seq, 1) for seq, link in enumerate(links)]


def test_at_its_limit_no_url_is_lost_and_none_is_new_twice(tmp_path: Path) -> None:
    urls = _urls(6000)
    for start in (0, 2000, 4000):  # three runs, each opened anew
        ledger = LocalLedger(tmp_path / "state", limits=LedgerLimits(seen_bytes=100))
        ledger.open()
        ledger.put_host(HostRecord("h.test", "h.test"))
        assert ledger.admit(urls[: start + 2000]) == urls[start : start + 2000]
        assert sum(url.id in ledger._seen.partitions for url in urls[5000:]) > 500, "it is wrong about many of them"
        ledger.commit()
        assert ledger.admit(urls[: start + 2000]) == []
        ledger.close()


def test_what_is_queued_again_is_logged_once(tmp_path: Path) -> None:
    urls = _urls(1000)
    ledger = LocalLedger(tmp_path / "state")
    ledger.open()
    ledger.put_host(HostRecord("h.test", "h.test"))
    ledger.admit(urls[:900])
    for url in urls:  # the last hundred were never admitted
        ledger.requeue(url)
        ledger.commit()
    record = ledger.look_up(urls[0].id)
    assert record is not None
    record.state = UrlState.DONE
    ledger.finish(urls[0], record)
    ledger.close()
    again = LocalLedger(tmp_path / "state")
    again.open()
    again._seen.partitions.clear()
    again._seen.open(1000, _no_keys())
    assert again.admit(urls) == []
    again.close()
