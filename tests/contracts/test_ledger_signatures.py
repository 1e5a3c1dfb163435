"""What every ledger must do with the signatures of pages, run on each of them. See `gossamer.ports.Ledger`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.dedup.scheme import SCHEMES, NearDup
from gossamer.model.records import Similar
from gossamer.ports import Ledger, SealedChanges

MINHASH, SIMHASH = SCHEMES[NearDup.MINHASH].edition, SCHEMES[NearDup.SIMHASH].edition
Step: TypeAlias = Callable[[], None]


def page(number: int) -> bytes:
    return number.to_bytes(16, "big")


def signature(number: int) -> bytes:
    return Random(number).randbytes(512)


def like(number: int, changed_lanes: int) -> bytes:
    """Return a signature that differs from another in its last lanes."""
    kept = 512 - 4 * changed_lanes
    return signature(number)[:kept] + signature(10_000 + number)[kept:]


@pytest.fixture(params=["memory", "local", "local_committed", "local_sealed"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ledger(kind: str, tmp_path: Path) -> Iterator[Ledger]:
    if kind == "memory":
        yield MemoryLedger()
        return
    local = LocalLedger(tmp_path / "state")
    local.open()
    yield local
    local.close()


@pytest.fixture
def step(kind: str, ledger: Ledger) -> Iterator[Step]:
    """Return what is done between a change and a read: nothing, a commit, or half of one."""
    sealed: list[SealedChanges] = []

    def go() -> None:
        while sealed:
            sealed.pop().write()
        if kind == "local_committed":
            ledger.commit()
        elif kind == "local_sealed" and isinstance(ledger, LocalLedger):
            sealed.append(ledger.seal())

    yield go
    while sealed:
        sealed.pop().write()


def test_a_signature_that_differs_a_little_is_found_with_its_similarity(ledger: Ledger, step: Step) -> None:
    ledger.use_signatures(MINHASH)
    for number in range(20):
        ledger.put_signature(page(number), signature(number))
    step()
    assert ledger.most_similar(signature(3)) == Similar(page(3), 1.0)
    assert ledger.most_similar(like(7, 8)) == Similar(page(7), 120 / 128)
    assert ledger.most_similar(like(7, 12)) == Similar(page(7), 116 / 128), "0.906 is near enough"
    assert ledger.most_similar(like(7, 13)) is None, "0.898 is not"
    assert ledger.most_similar(signature(99)) is None


def test_nothing_is_similar_if_nothing_is_kept(ledger: Ledger) -> None:
    ledger.use_signatures(MINHASH)
    assert ledger.most_similar(signature(1)) is None


def test_what_was_asked_for_is_not_kept_by_that(ledger: Ledger, step: Step) -> None:
    ledger.use_signatures(MINHASH)
    assert ledger.most_similar(signature(1)) is None
    step()
    assert ledger.most_similar(signature(1)) is None


def test_of_equal_ones_the_first_counts(ledger: Ledger, step: Step) -> None:
    ledger.use_signatures(MINHASH)
    ledger.put_signature(page(1), signature(1))
    step()
    ledger.put_signature(page(2), signature(1))
    assert ledger.most_similar(signature(1)) == Similar(page(1), 1.0)


def test_the_same_edition_goes_on_with_what_was_kept(ledger: Ledger, step: Step) -> None:
    ledger.use_signatures(MINHASH)
    ledger.put_signature(page(1), signature(1))
    step()
    ledger.use_signatures(MINHASH)
    assert ledger.most_similar(like(1, 3)) == Similar(page(1), 125 / 128)


def test_signatures_of_another_edition_are_never_compared(ledger: Ledger, step: Step) -> None:
    ledger.use_signatures("minhash 0")
    ledger.put_signature(page(1), signature(1))
    step()
    ledger.use_signatures(MINHASH)
    assert ledger.most_similar(signature(1)) is None
    ledger.put_signature(page(2), signature(2))
    step()
    ledger.use_signatures(MINHASH)
    assert ledger.most_similar(signature(1)) is None
    assert ledger.most_similar(signature(2)) == Similar(page(2), 1.0)


def test_simhashes_within_distance_3_are_found(ledger: Ledger, step: Step) -> None:
    ledger.use_signatures(SIMHASH)
    ledger.put_signature(page(1), b"\x0f" * 8)
    step()
    assert ledger.most_similar(b"\x0f" * 7 + b"\x08") == Similar(page(1), 61 / 64)
    assert ledger.most_similar(b"\x0f" * 7 + b"\x00") is None


# -- what only a ledger on disk must do -----------------------------------------------------------


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalLedger]:
    opened = LocalLedger(tmp_path / "state")
    opened.open()
    opened.use_signatures(MINHASH)
    yield opened
    opened.close()


def reopened(tmp_path: Path, name: str) -> LocalLedger:
    """Return a ledger on a copy of the files as they are: what a killed process leaves."""
    shutil.copytree(tmp_path / "state", tmp_path / name)
    ledger = LocalLedger(tmp_path / name)
    ledger.open()
    ledger.use_signatures(MINHASH)
    return ledger


def test_exactly_the_committed_signatures_survive(local: LocalLedger, tmp_path: Path) -> None:
    for number in range(5000):
        local.put_signature(page(number), signature(number))
    local.commit()
    local.put_signature(page(5000), signature(5000))
    sealed = local.seal()
    local.put_signature(page(5001), signature(5001))
    copy = reopened(tmp_path, "killed")
    assert copy.most_similar(like(4999, 4)) == Similar(page(4999), 124 / 128)
    assert copy.most_similar(signature(5000)) is None
    copy.put_signature(page(7), signature(7000))
    assert copy.most_similar(signature(7000)) == Similar(page(7), 1.0)
    copy.close()
    sealed.write()
    copy = reopened(tmp_path, "killed later")
    assert copy.most_similar(signature(5000)) == Similar(page(5000), 1.0)
    assert copy.most_similar(signature(5001)) is None
    copy.close()


def test_after_a_change_of_edition_only_the_new_ones_are_read_back(local: LocalLedger, tmp_path: Path) -> None:
    local.put_signature(page(0), signature(0))
    local.use_signatures(SIMHASH)
    for number in range(3):
        local.put_signature(page(number), bytes([number * 85] * 8))
    local.commit()
    copy = LocalLedger(tmp_path / "copy")
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    copy.open()
    copy.use_signatures(SIMHASH)
    assert copy.most_similar(b"\xaa" * 8) == Similar(page(2), 1.0)
    copy.close()
