"""No interleaving of additions, growth, commits, deaths and openings makes the filter deny what it has."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gossamer.backends.local import bloom_python, partitions
from gossamer.backends.local.bloom import PARTITIONS, SeenFilter
from gossamer.backends.local.digest_log import GROUP_BYTES, TABLE, DigestLog
from gossamer.backends.local.store import SealedStore, Store
from tests.amount import amount

_id = st.binary(min_size=16, max_size=16)
_shapes = st.tuples(st.integers(1, 5000), st.integers(1, 10), st.integers(0, 50))


class FilterModel(RuleBasedStateMachine):
    """A filter whose partitions, rows and slices are tiny, beside a set."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.number = 0
        self.added: set[bytes] = set()
        self.sealed_ids: set[bytes] = set()
        self.committed: set[bytes] = set()
        self.sealed: SealedStore | None = None
        self._open()

    def _open(self) -> None:
        self.store = Store(Path(self._folder.name), ("urls", TABLE), {TABLE: GROUP_BYTES}, is_readonly=False)
        self.store.open()
        self.store.create_tables()
        log = DigestLog(self.store, b"u", max_new_bytes=8 * 64, part_bytes=8 * 3)
        self.seen = SeenFilter(log, first_capacity=2)
        self.seen.open(self.store.committed_count("urls"), self.store.committed_keys("urls"))

    def teardown(self) -> None:
        self.store.close()
        self._folder.cleanup()

    @rule(count=st.integers(1, 120))
    def add(self, count: int) -> None:
        for _ in range(count):
            self.number += 1
            url_id = self.number.to_bytes(16, "big")
            self.seen.add(url_id)
            self.store.put("urls", url_id, b"")
            self.added.add(url_id)

    @precondition(lambda self: self.sealed is None)
    @rule()
    def seal(self) -> None:
        self.seen.seal()
        self.sealed = self.store.seal()
        self.sealed_ids = set(self.added)

    @precondition(lambda self: self.sealed is not None)
    @rule()
    def write(self) -> None:
        assert self.sealed is not None
        self.sealed.write()
        self.sealed = None
        self.committed = self.sealed_ids

    @rule()
    def die_and_open(self) -> None:
        self.store.close()
        self.sealed = None
        self.added = set(self.committed)
        self._open()
        assert self.seen.count == len(self.added)

    @rule(count=st.integers(1, 40))
    def go_on_with_a_version_without_the_log(self, count: int) -> None:
        self.store.close()
        self.sealed = None
        old = Store(Path(self._folder.name), ("urls",), {}, is_readonly=False)
        old.open()
        for _ in range(count):
            self.number += 1
            self.committed.add(self.number.to_bytes(16, "big"))
            old.put("urls", self.number.to_bytes(16, "big"), b"")
        old.write_now()
        old.close()
        self.added = set(self.committed)
        self._open()

    @invariant()
    def nothing_is_denied(self) -> None:
        partitions = self.seen.partitions
        assert all(url_id in partitions for url_id in self.added)
        assert self.seen.count == len(self.added)


FilterModel.TestCase.settings = settings(max_examples=amount(15, 60), stateful_step_count=30, deadline=None)
TestFilter = FilterModel.TestCase


@pytest.mark.skipif(
    not partitions.IS_COMPILED, reason="need compiled parts: install a C compiler, then make clean test"
)
@settings(deadline=None)
@given(
    first=st.lists(_id, max_size=60),
    meanwhile=st.lists(_id, max_size=60),
    last=st.lists(_id, max_size=30),
    shapes=st.lists(st.tuples(st.integers(0, PARTITIONS - 1), _shapes), min_size=1, max_size=8),
    wait=st.integers(-1, 5),
)
def test_compiled_and_in_python_it_has_the_same_bits(
    first: list[bytes],
    meanwhile: list[bytes],
    last: list[bytes],
    shapes: list[tuple[int, tuple[int, int, int]]],
    wait: int,
) -> None:
    both = (partitions.Partitions(), cast(partitions.Partitions, bloom_python.Partitions()))
    seen: list[list[object]] = [[], []]
    for one, results in zip(both, seen, strict=True):
        for number in range(PARTITIONS):
            one.start(number, 200 + 8 * number, 7, 3)
            one.finish()
        results.append([one.add(url_id) for url_id in first])
        results.append(one.overfull())
        one.load(memoryview(partitions.digests(b"".join(last))))
        for partition, (bits, probes, capacity) in shapes:
            one.start(partition, bits, probes, capacity)
            one.set_wait(wait)
            results.append((one.growing, one.size_in_bytes, one.peek_new()))
            results.append([one.add(url_id) for url_id in meanwhile])
            one.fill(bloom_python.digests(b"".join(first + last)))
            one.finish()
        one.set_capacity(0, 1)
        results.append(one.take_new())
        results.append([url_id in one for url_id in [*first, *meanwhile, *last]])
        results.append([(one.shape(number), one.contents(number)) for number in range(PARTITIONS)])
        one.clear()
        results.append([(one.shape(number), one.contents(number), one.overfull()) for number in range(PARTITIONS)])
        results.append(one.take_new())
    assert seen[0] == seen[1]


@pytest.mark.skipif(
    not partitions.IS_COMPILED, reason="need compiled parts: install a C compiler, then make clean test"
)
@given(ids=st.lists(_id, max_size=200))
def test_compiled_and_in_python_digests_are_the_same(ids: list[bytes]) -> None:
    found = partitions.digests(b"".join(ids))
    assert found == bloom_python.digests(b"".join(ids))
    assert partitions.split(found) == bloom_python.split(found)
    assert sorted(b"".join(partitions.split(found))) == sorted(found)


@pytest.mark.parametrize("kind", [partitions.Partitions, bloom_python.Partitions])
def test_what_cannot_be_is_refused(kind: Callable[[], partitions.Partitions]) -> None:
    one = kind()
    for wrong in (b"", b"x" * 15, b"x" * 17):
        with pytest.raises(ValueError, match="16 bytes"):
            one.add(wrong)
        with pytest.raises(ValueError, match="16 bytes"):
            _ = wrong in one
    for partition in (-1, PARTITIONS):
        with pytest.raises(IndexError, match=f"{PARTITIONS} partitions"):
            one.start(partition, 8, 1, 0)
    for bits, probes in ((0, 1), (1 << 32, 1), (8, 0), (8, 11)):
        with pytest.raises(ValueError, match="probes"):
            one.start(0, bits, probes, 0)
    with pytest.raises(RuntimeError, match="no partition"):
        one.finish()
    one.start(0, 8, 1, 0)
    with pytest.raises(RuntimeError, match="not finished"):
        one.start(1, 8, 1, 0)
