"""What every object store must do, run on each of them. See `gossamer.ports.object_store`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.backends.memory.object_store import MemoryObjectStore
from gossamer.backends.s3.store import S3Store
from gossamer.ports.object_store import MIN_PART_BYTES, ObjectStore, Part
from tests.servers import engines
from tests.servers.s3 import BUCKET, running

BIG = bytes(range(256)) * (MIN_PART_BYTES // 256 + 100)


@pytest.fixture(scope="module")
def s3_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = engines.weed()
    with running(program, tmp_path_factory.mktemp("s3")) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment().items():
            patch.setenv(name, value)
        yield f"s3://{BUCKET}/some/prefix"


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "memory":
        return MemoryObjectStore()
    return S3Store(f"{request.getfixturevalue('s3_url')}/{tmp_path.name}")


def test_an_object_is_read_back_whole_and_by_ranges(store: ObjectStore) -> None:
    written = store.put("a/b", b"0123456789", {"sha256": "x"})
    assert store.read("a/b", 0, 10) == b"0123456789"
    assert store.read("a/b", 3, 5) == b"34"
    found = store.find("a/b")
    assert found is not None
    assert (found.size, found.metadata, found.tag) == (10, {"sha256": "x"}, written.tag)


def test_an_object_written_again_is_another_one(store: ObjectStore) -> None:
    first = store.put("a", b"one")
    second = store.put("a", b"two")
    assert first.tag != second.tag
    assert store.read("a", 0, 3) == b"two"


def test_what_is_not_there_is_said_to_be_missing(store: ObjectStore) -> None:
    assert store.find("nothing") is None
    with pytest.raises(FileNotFoundError):
        store.read("nothing", 0, 1)
    store.remove(["nothing"])


def test_keys_are_listed_in_order_below_a_prefix_only(store: ObjectStore) -> None:
    for key in ("s/2", "s/1", "t/1", "s/10"):
        store.put(key, key.encode())
    assert [(found.key, found.size) for found in store.objects("s/")] == [("s/1", 3), ("s/10", 4), ("s/2", 3)]
    store.remove(["s/1", "s/2"])
    assert [found.key for found in store.objects("s/")] == ["s/10"]


def test_an_object_is_composed_of_copies_and_of_what_is_read(store: ObjectStore) -> None:
    store.put("source", BIG)
    local = b"x" * MIN_PART_BYTES
    whole = local + BIG[50:] + b"tail"
    copied_end = len(local) + len(BIG) - 50
    parts = [Part(0, len(local)), Part(len(local), copied_end, "source", 50), Part(copied_end, len(whole))]
    written = store.compose("whole", lambda start, end: whole[start:end], parts, {"sha256": "y"})
    assert store.read("whole", 0, len(whole)) == whole
    found = store.find("whole")
    assert found is not None
    assert (found.size, found.tag, found.metadata) == (len(whole), written.tag, {"sha256": "y"})
    assert store.abort_unfinished("") == 0
