from __future__ import annotations

from pathlib import Path

import pytest
from rbloom import Bloom

from gossamer.backends.local.bloom import SeenFilter
from gossamer.backends.local.ledger import LedgerLimits, LocalLedger
from gossamer.core.url import link_to
from gossamer.records import HostRecord, QueuedUrl


def _ids(start: int, stop: int) -> list[bytes]:
    return [n.to_bytes(16, "big") for n in range(start, stop)]


def test_what_was_added_is_never_denied_however_many_layers() -> None:
    seen = SeenFilter(first_layer_urls=100)
    ids = _ids(0, 5000)
    for url_id in ids:
        seen.add(url_id)
    assert all(url_id in seen for url_id in ids)


def test_strangers_are_rarely_taken_for_known() -> None:
    seen = SeenFilter(first_layer_urls=1000)
    for url_id in _ids(0, 20_000):
        seen.add(url_id)
    wrong = sum(url_id in seen for url_id in _ids(1_000_000, 1_050_000))
    assert wrong / 50_000 < 0.001


def test_it_is_filled_at_once_from_what_is_known() -> None:
    seen = SeenFilter(first_layer_urls=10)
    seen.fill(30_000, iter(_ids(0, 30_000)))
    assert all(url_id in seen for url_id in _ids(0, 30_000))
    wrong = sum(url_id in seen for url_id in _ids(1_000_000, 1_050_000))
    assert wrong / 50_000 < 0.002


def test_ten_million_urls_take_eighteen_megabytes() -> None:
    assert 17e6 < SeenFilter(first_layer_urls=10_000_000).size_in_bytes < 18.5e6


@pytest.mark.parametrize("capacity", [1, 300])
def test_no_new_url_is_lost_to_a_filter_that_calls_strangers_known(tmp_path: Path, capacity: int) -> None:
    ledger = LocalLedger(tmp_path / "state")
    ledger.open()
    ledger.put_host(HostRecord("h.test", "h.test"))
    ledger._seen._layers = [Bloom(capacity, 0.001)]
    links = [link_to(f"http://h.test/{number}") for number in range(3000)]
    urls = [QueuedUrl(link.url, link.id, link.host, 0, seq, 1) for seq, link in enumerate(links)]
    assert ledger.admit(urls[:1500]) == urls[:1500]
    assert sum(url.id in ledger._seen for url in urls[1500:]) > 500, "the filter is wrong about many of them"
    ledger.commit()
    assert ledger.admit(urls) == urls[1500:]
    assert ledger.admit(urls) == []
    ledger.close()


@pytest.mark.parametrize("max_bytes", [0, 100, 2000, 20_000])
def test_at_its_limit_it_grows_no_more_and_still_denies_nothing_it_has(max_bytes: int) -> None:
    seen = SeenFilter(first_layer_urls=1000, max_bytes=max_bytes)
    ids = _ids(0, 30_000)
    for url_id in ids:
        seen.add(url_id)
    assert all(url_id in seen for url_id in ids)
    assert seen.size_in_bytes <= max(max_bytes, 100)
    assert seen.size_in_bytes >= 0.5 * max_bytes, "what it may have it uses"


@pytest.mark.parametrize("max_bytes", [100, 2000, 20_000])
def test_what_is_known_is_filled_into_what_the_limit_allows(max_bytes: int) -> None:
    seen = SeenFilter(first_layer_urls=1000, max_bytes=max_bytes)
    seen.fill(30_000, iter(_ids(0, 30_000)))
    seen.add(b"x" * 16)
    assert all(url_id in seen for url_id in [*_ids(0, 30_000), b"x" * 16])
    assert seen.size_in_bytes <= max(max_bytes, 200)


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    free, limited = SeenFilter(1000), SeenFilter(1000, max_bytes=1_000_000)
    for url_id in _ids(0, 20_000):
        free.add(url_id)
        limited.add(url_id)
    assert free.size_in_bytes == limited.size_in_bytes


def test_up_to_its_limit_it_is_as_good_as_its_bytes_allow() -> None:
    seen = SeenFilter(first_layer_urls=1000, max_bytes=40_000)  # 10.7 bits each: wrong once in 170 at best
    for url_id in _ids(0, 30_000):
        seen.add(url_id)
    wrong = sum(url_id in seen for url_id in _ids(1_000_000, 1_020_000)) / 20_000
    assert wrong < 0.1


def test_at_its_limit_no_url_is_lost_and_none_is_new_twice(tmp_path: Path) -> None:
    links = [link_to(f"http://h.test/{number}") for number in range(6000)]
    urls = [QueuedUrl(link.url, link.id, link.host, 0, seq, 1) for seq, link in enumerate(links)]
    for start in (0, 2000, 4000):  # three runs, each opened anew
        ledger = LocalLedger(tmp_path / "state", limits=LedgerLimits(seen_bytes=100))
        ledger.open()
        ledger.put_host(HostRecord("h.test", "h.test"))
        assert ledger.admit(urls[: start + 2000]) == urls[start : start + 2000]
        assert sum(url.id in ledger._seen for url in urls[5000:]) > 500, "the filter is wrong about many of them"
        ledger.commit()
        assert ledger.admit(urls[: start + 2000]) == []
        ledger.close()
