"""The signatures of a ledger whose memory has a limit."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from gossamer.backends.local.ledger import LedgerLimits, LocalLedger
from gossamer.core.dedup.scheme import SCHEMES, NearDup
from gossamer.model.records import Similar

MINHASH = SCHEMES[NearDup.MINHASH].edition


def _page(number: int) -> bytes:
    return number.to_bytes(16, "big")


def _signature(number: int) -> bytes:
    return Random(number).randbytes(512)


def _opened(folder: Path, near_pages: int | None) -> LocalLedger:
    ledger = LocalLedger(folder, limits=LedgerLimits(near_pages=near_pages))
    ledger.open()
    ledger.use_signatures(MINHASH)
    return ledger


def _found(ledger: LocalLedger, count: int) -> list[int]:
    matches = [ledger.most_similar(_signature(number)) for number in range(count)]
    for number, match in enumerate(matches):
        assert match in (None, Similar(_page(number), 1.0))
    return [number for number, match in enumerate(matches) if match is not None]


@pytest.mark.parametrize("commits", [False, True])
def test_over_the_limit_pages_are_compared_with_the_newer_ones_only(tmp_path: Path, commits: bool) -> None:
    ledger = _opened(tmp_path / "state", 20)
    for number in range(20):
        assert not ledger.has_forgotten_signatures
        ledger.put_signature(_page(number), _signature(number))
        if commits:
            ledger.commit()
    assert _found(ledger, 20) == list(range(20))
    ledger.put_signature(_page(20), _signature(20))
    assert ledger.has_forgotten_signatures
    assert _found(ledger, 21) == list(range(10, 21))
    ledger.close()


def test_what_has_left_memory_is_still_on_disk(tmp_path: Path) -> None:
    ledger = _opened(tmp_path / "state", 20)
    for number in range(50):
        ledger.put_signature(_page(number), _signature(number))
    ledger.close()
    ledger = _opened(tmp_path / "state", None)
    assert _found(ledger, 50) == list(range(50))
    assert not ledger.has_forgotten_signatures
    ledger.close()


def test_a_crawl_that_goes_on_takes_up_the_newest(tmp_path: Path) -> None:
    ledger = _opened(tmp_path / "state", None)
    for number in range(50):
        ledger.put_signature(_page(number), _signature(number))
    ledger.close()
    ledger = _opened(tmp_path / "state", 20)
    assert ledger.has_forgotten_signatures
    assert _found(ledger, 50) == list(range(30, 50))
    ledger.put_signature(_page(50), _signature(50))
    assert _found(ledger, 51) == list(range(40, 51))
    ledger.close()


def test_when_memory_is_short_the_older_half_goes(tmp_path: Path) -> None:
    ledger = _opened(tmp_path / "state", 20)
    for number in range(15):
        ledger.put_signature(_page(number), _signature(number))
    ledger.shrink(forgets_pages=True)
    assert _found(ledger, 15) == list(range(10, 15))
    ledger.shrink(forgets_pages=True)
    assert _found(ledger, 15) == list(range(10, 15))
    ledger.close()


def test_changes_are_counted_until_they_are_sealed(tmp_path: Path) -> None:
    ledger = _opened(tmp_path / "state", None)
    ledger.commit()
    assert ledger.pending_count() == 0
    for number in range(5):
        ledger.put_signature(_page(number), _signature(number))
    assert ledger.pending_count() == 5
    sealed = ledger.seal()
    assert ledger.pending_count() == 0
    sealed.write()
    ledger.close()
