from __future__ import annotations

import resource
import threading
from pathlib import Path

import fastwarc.warc
import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer.archive.cdxj import fold_index
from gossamer.archive.reader import ArchiveReader, read_record
from gossamer.model.errors import DiskFullError

from .oracle import verify_file, verify_index
from .samples import NOW, exchange, odd_exchanges, writer


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "archive").iterdir())


def test_nothing_is_touched_before_the_first_write(tmp_path: Path) -> None:
    archive = writer(tmp_path)
    archive.sync()
    archive.close()
    assert names(tmp_path) == []


def test_a_file_is_open_until_it_is_closed(tmp_path: Path) -> None:
    archive = writer(tmp_path, worker=3)
    archived = archive.write(exchange(), date=NOW)
    assert archived.span.file == "TEST-20231114221320123-03-00000.warc.gz"
    assert names(tmp_path) == [archived.span.file + ".open"]
    archive.sync()
    assert names(tmp_path) == [archived.span.file + ".open"]
    archive.close()
    assert names(tmp_path) == [archived.span.file]


def test_spans_and_ends_are_those_in_the_file(tmp_path: Path) -> None:
    archive = writer(tmp_path)
    for one in odd_exchanges():
        archived = archive.write(one, date=NOW)
        path = tmp_path / "archive" / (archived.span.file + ".open")
        assert path.stat().st_size == archived.end
        record = read_record(path, archived.span.offset)
        assert record is not None
        assert (record.type, record.target, record.length) == ("response", one.url, archived.span.length)
        assert record.payload_digest == archived.payload_digest
    archive.close()


def test_only_pages_count_towards_the_pages_of_a_file(tmp_path: Path) -> None:
    archive = writer(tmp_path, save_interval=2)
    for is_page in (True, False, False, True, False, True):
        archive.write(exchange(), date=NOW, is_page=is_page)
    archive.close()
    first, second = sorted((tmp_path / "archive").iterdir())
    answers = [[record for record in ArchiveReader(path) if record.type == "response"] for path in (first, second)]
    assert [len(found) for found in answers] == [4, 2], "what follows a file's last page opens the next one"


def test_files_rotate_by_pages_and_by_size_and_each_starts_with_warcinfo(tmp_path: Path) -> None:
    archive = writer(tmp_path, save_interval=10)
    for _ in range(25):
        archive.write(exchange(), date=NOW)
    archive.close()
    small = writer(tmp_path, worker=1, max_file_bytes=2000)
    for _ in range(5):
        small.write(exchange(), date=NOW)
    small.close()
    paths = sorted((tmp_path / "archive").iterdir())
    assert len([path for path in paths if "-00-" in path.name]) == 3
    assert len([path for path in paths if "-01-" in path.name]) > 1
    for path in paths:
        records = list(ArchiveReader(path))
        assert records[0].type == "warcinfo"
        assert all(record.fields["warc-warcinfo-id"].strip("<>") == records[0].id for record in records[1:])
        assert verify_file(path) == []


def test_every_tool_reads_everything(tmp_path: Path) -> None:
    archive = writer(tmp_path, save_interval=20)
    for one in odd_exchanges():
        archive.write(one, date=NOW)
    archive.close()
    for path in (tmp_path / "archive").iterdir():
        ours = [record.id for record in ArchiveReader(path)]
        with path.open("rb") as file:
            theirs = []
            for record in ArchiveIterator(file, check_digests="raise", verify_http=True):
                record.content_stream().read()
                theirs.append(record.rec_headers.get_header("WARC-Record-ID").strip("<>"))
        assert theirs == ours
        with path.open("rb") as file:
            quick = [str(record.record_id) for record in fastwarc.warc.ArchiveIterator(file, verify_digests=True)]
        assert [one.strip("<>") for one in quick] == ours


def test_no_name_is_used_twice(tmp_path: Path) -> None:
    for _ in range(3):
        archive = writer(tmp_path)
        archive.write(exchange(), date=NOW)
        archive.close()
    left_open = writer(tmp_path)
    left_open.write(exchange(), date=NOW)
    again = writer(tmp_path)
    again.write(exchange(), date=NOW)
    assert len({name.removesuffix(".open") for name in names(tmp_path)}) == 5


def test_sync_in_another_thread_finishes_full_files_while_others_are_written(tmp_path: Path) -> None:
    archive = writer(tmp_path, save_interval=5)
    is_over = threading.Event()

    def keep_syncing() -> None:
        while not is_over.is_set():
            archive.sync()

    thread = threading.Thread(target=keep_syncing)
    thread.start()
    for _ in range(203):
        archive.write(exchange(), date=NOW)
    is_over.set()
    thread.join()
    archive.close()
    assert len(names(tmp_path)) == 41
    paths = sorted((tmp_path / "archive").iterdir())
    assert [problem for path in paths for problem in verify_file(path)] == []
    assert verify_index(paths, fold_index(tmp_path / "index")) == []


def test_w04_no_room_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    # A limit on the size of files is the kernel's own refusal in mid-write: part of the data is taken, then EFBIG.
    archive = writer(tmp_path)
    archived = archive.write(exchange(), date=NOW)
    path = tmp_path / "archive" / (archived.span.file + ".open")
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 300, hard))
    try:
        with pytest.raises(DiskFullError, match="no room"):
            archive.write(odd_exchanges()[7], date=NOW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    later = archive.write(exchange(), date=NOW)
    archive.close()
    assert later.span.offset > len(before)
    assert verify_file(tmp_path / "archive" / later.span.file) == []


def test_w04_no_room_for_the_first_record_leaves_no_file(tmp_path: Path) -> None:
    archive = writer(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(DiskFullError):
            archive.write(exchange(), date=NOW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    archive.close()
    assert names(tmp_path) == []
