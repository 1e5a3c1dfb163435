"""Archive files on their way to an object store."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.objects import MergedFiles, RemoteArchive, Segment
from gossamer.archive.reader import ArchiveReader
from gossamer.archive.writer import ArchiveWriter
from gossamer.backends.memory.object_store import MemoryObjectStore
from gossamer.model.errors import StoreUnavailableError
from gossamer.ports.object_store import MIN_PART_BYTES
from gossamer.runtime.stores.segment_uploads import PART_BYTES, SegmentUploads, plan_parts
from tests.archive.samples import exchange

LABEL = "1a2b3c4d"


class Spool:
    """A crawl folder whose archive files are uploaded."""

    def __init__(self, path: Path, *, stays_local: bool = False) -> None:
        self.archive, self.index = path / "archive", path / "index"
        self.archive.mkdir(exist_ok=True)
        self.index.mkdir(exist_ok=True)
        self.store = MemoryObjectStore()
        self.stays_local = stays_local
        self.ends: dict[str, int] = {}
        self.writer = ArchiveWriter(self.archive, self.index, prefix=f"g-{LABEL}", worker=0, warcinfo={})
        self.uploads = self.restarted()

    def restarted(self) -> SegmentUploads:
        """Return the uploads of the next run: it knows what the ledger and the folder have."""
        self.uploads = SegmentUploads(
            lambda: self.store,
            self.archive,
            self.index,
            run="r",
            label=LABEL,
            stays_local=self.stays_local,
            ends=lambda: self.ends,
        )
        self.uploads.begin()
        return self.uploads

    def add(self, *bodies: bytes) -> None:
        """Write pages and commit them."""
        for body in bodies:
            written = self.writer.write(exchange("http://h.test/", body=body), date=1e9)
            self.ends[written.span.file] = written.end
        self.writer.sync()
        self.uploads.upload(self.ends)
        self.uploads.commit(self.ends)

    def keys(self, prefix: str) -> list[str]:
        return [found.key for found in self.store.objects(prefix)]

    def remote_bytes(self, name: str) -> bytes:
        with RemoteArchive(self.store).open(name) as file:
            return file.read()


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


def test_a_commit_adds_one_segment_with_exactly_its_bytes(spool: Spool) -> None:
    spool.add(b"one")
    spool.add(b"two", b"three")
    spool.uploads.upload(spool.ends)
    (name,) = spool.ends
    local = (spool.archive / f"{name}.open").read_bytes()
    assert len(spool.keys("segments/")) == 2, "nothing was added since"
    assert spool.remote_bytes(name) == local
    assert [key.rpartition(".")[2] for key in spool.keys("segments/")] == ["r-00000001", "r-00000002"]


def test_what_is_not_committed_is_not_uploaded(spool: Spool) -> None:
    spool.add(b"one")
    ((name, end),) = spool.ends.items()
    spool.writer.write(exchange("http://h.test/2", body=b"later"), date=1e9)
    spool.uploads.upload(spool.ends)
    assert len(spool.remote_bytes(name)) == end


def test_an_open_file_is_not_merged_and_a_closed_one_is_with_its_index(spool: Spool) -> None:
    spool.add(b"one")
    assert not spool.uploads.tidy()
    assert spool.uploads.spool_bytes() == spool.ends[next(iter(spool.ends))]
    spool.writer.close()
    (name,) = spool.ends
    local = (spool.archive / name).read_bytes()
    assert spool.uploads.tidy()
    assert not spool.uploads.tidy()
    assert spool.keys("") == [f"archive/{name}", f"index/{name}.cdxj"]
    assert spool.remote_bytes(name) == local
    assert not (spool.archive / name).exists()
    assert spool.uploads.spool_bytes() == 0
    assert name in spool.store.read(f"index/{name}.cdxj", 0, 10_000).decode()


def test_the_local_file_stays_if_the_archive_is_a_store_of_its_own(tmp_path: Path) -> None:
    spool = Spool(tmp_path, stays_local=True)
    spool.add(b"one")
    spool.writer.close()
    assert spool.uploads.tidy()
    assert not spool.uploads.tidy()
    (name,) = spool.ends
    assert (spool.archive / name).read_bytes() == spool.remote_bytes(name)
    assert spool.keys("segments/") == []
    assert not spool.restarted().tidy()


def test_a_file_with_more_than_is_committed_stays_and_keeps_its_segments(spool: Spool) -> None:
    spool.add(b"one")
    spool.writer.write(exchange("http://h.test/2", body=b"not reported"), date=1e9)
    spool.writer.close()
    assert not spool.uploads.tidy()
    (name,) = spool.ends
    assert (spool.archive / name).exists()
    assert len(spool.remote_bytes(name)) == spool.ends[name]


def test_an_outage_loses_nothing_and_the_same_commit_is_uploaded_later(spool: Spool) -> None:
    spool.add(b"one")
    spool.store.is_away = True
    with pytest.raises(StoreUnavailableError):
        spool.add(b"two")
    with pytest.raises(StoreUnavailableError):
        spool.add(b"three")
    spool.store.is_away = False
    spool.add()
    (name,) = spool.ends
    assert spool.remote_bytes(name) == (spool.archive / f"{name}.open").read_bytes()


@pytest.mark.parametrize("step", ["merged", "listed", "cleared"])
def test_a_death_during_a_merge_is_made_good_by_the_next_run(spool: Spool, step: str) -> None:
    spool.add(b"one", b"two")
    spool.writer.close()
    (name,) = spool.ends
    local = (spool.archive / name).read_bytes()
    uploads = spool.uploads
    if step == "merged":
        spool.store.put(f"archive/{name}", b"whatever was there")
    else:
        uploads.merge(spool.archive / name)
    if step == "cleared":
        spool.store.remove(spool.keys("segments/"))
    assert spool.restarted().tidy()
    assert not spool.uploads.tidy()
    assert spool.keys("") == [f"archive/{name}", f"index/{name}.cdxj"]
    assert spool.remote_bytes(name) == local
    assert list(spool.archive.glob("*.warc.gz*")) == []


def test_a_line_of_the_list_that_was_not_finished_does_not_count(spool: Spool) -> None:
    spool.add(b"one")
    spool.writer.close()
    spool.uploads.tidy()
    (name,) = spool.ends
    path = spool.archive / "objects.jsonl"
    path.write_bytes(path.read_bytes() + b'{"name": "torn')
    merged = MergedFiles(spool.archive)
    assert list(merged.all()) == [name]
    merged.add(merged.all()[name])
    assert len(MergedFiles(spool.archive).all()) == 1
    assert path.read_bytes().count(b"\n") == 2


def test_records_are_read_from_the_store_when_the_local_file_is_gone(spool: Spool) -> None:
    spool.add(*(b"page %d" % number for number in range(50)))
    spool.writer.close()
    (name,) = spool.ends
    local = list(ArchiveReader(spool.archive / name))
    files = ArchiveFiles(spool.archive, lambda: RemoteArchive(spool.store))
    (spool.archive / name).rename(spool.archive / "elsewhere")
    assert list(files.records(name)) == local, "from the segments"
    (spool.archive / "elsewhere").rename(spool.archive / name)
    spool.uploads.tidy()
    assert list(files.records(name)) == local, "from the merged file"
    with pytest.raises(FileNotFoundError):
        list(files.records("another.warc.gz"))


def test_large_segments_are_copied_within_the_store(spool: Spool) -> None:
    noise = random.Random(1)
    for _ in range(3):
        spool.add(noise.randbytes(MIN_PART_BYTES + 1000))
    spool.add(b"small")
    spool.writer.close()
    (name,) = spool.ends
    local = (spool.archive / name).read_bytes()
    spool.uploads.tidy()
    assert spool.remote_bytes(name) == local
    assert spool.store.copied_bytes > 3 * MIN_PART_BYTES


def test_a_segment_that_somebody_has_removed_is_not_needed_for_the_merge(spool: Spool) -> None:
    spool.add(random.Random(2).randbytes(2 * MIN_PART_BYTES))
    spool.writer.close()
    (name,) = spool.ends
    local = (spool.archive / name).read_bytes()
    spool.store.remove(spool.keys("segments/"))
    assert spool.uploads.tidy()
    assert spool.remote_bytes(name) == local


def test_a_file_that_is_merged_is_not_uploaded_again(spool: Spool) -> None:
    spool.add(b"one")
    spool.writer.close()
    spool.uploads.tidy()
    spool.uploads.upload(spool.ends)
    assert spool.keys("segments/") == []


SIZES = st.lists(st.integers(1, 3 * MIN_PART_BYTES), max_size=12)


@given(SIZES, st.sets(st.integers(0, 11)), st.integers(0, 3 * PART_BYTES))
def test_parts_cover_a_file_once_and_are_large_enough(sizes: list[int], lost: set[int], rest: int) -> None:
    segments, at = [], 0
    for number, size in enumerate(sizes):
        if number not in lost:
            segments.append(Segment(at, at + size, f"k{number}"))
        at += size
    parts = plan_parts(segments, at + rest)
    end = 0
    for part in parts:
        assert part.start == end
        end = part.end
        if part.source:
            (source,) = [segment for segment in segments if segment.key == part.source]
            assert part.start == source.start + part.source_start
            assert part.end <= source.end
    assert end == at + rest
    assert all(part.end - part.start >= MIN_PART_BYTES for part in parts[:-1])
    assert all(part.end - part.start <= max(2 * PART_BYTES, 3 * MIN_PART_BYTES) for part in parts)
