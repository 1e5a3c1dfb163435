from __future__ import annotations

import random
import zlib
from pathlib import Path

import pytest

from gossamer.archive.cdxj import INDEX_NAME, fold_index
from gossamer.archive.reader import ArchiveReader, exchange_of
from gossamer.archive.recovery import recover, seal
from gossamer.archive.warc import RefersTo
from gossamer.model.errors import CorruptFolderError
from gossamer.model.records import Truncation

from .oracle import verify_file, verify_index
from .samples import NOW, exchange, odd_exchanges, writer


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[int]]:
    """Return the bytes of a file and its length after each task."""
    folder = tmp_path_factory.mktemp("whole")
    archive = writer(folder)
    ends = [archive.write(one, date=NOW).end for one in odd_exchanges()]
    (path,) = (folder / "archive").iterdir()
    return path.read_bytes(), ends


@pytest.mark.parametrize("seed", range(200))
def test_a_file_cut_anywhere_is_recovered_to_its_last_whole_task(
    seed: int, archived: tuple[bytes, list[int]], tmp_path: Path
) -> None:
    data, ends = archived
    source = random.Random(seed)
    cut = source.randrange(len(data) + 1)
    committed = source.choice([0, *(end for end in ends if end <= cut)])
    path = tmp_path / "TEST-1.warc.gz.open"
    content = data[:cut] + source.choice([b"", b"\0" * 100, source.randbytes(50), b"\x1f\x8b"])
    path.write_bytes(content)
    size = len(content)
    tail = recover(path, committed)
    # A member ends in zeros: where only those were cut off, the junk may make it whole again.
    whole = [end for end in ends if content[:end] == data[:end]]
    assert tail.end == path.stat().st_size == (whole[-1] if whole else 0)
    assert tail.cut_bytes == size - tail.end
    assert bool(tail.problem) == (tail.cut_bytes > 0)
    recovered = [response.target for _, response in tail.tasks()]
    assert len(recovered) == len([end for end in whole if end > committed])
    assert recover(path, committed).cut_bytes == 0
    if tail.end:
        assert verify_file(path) == []


def test_a_request_without_its_response_is_part_of_a_torn_task(
    archived: tuple[bytes, list[int]], tmp_path: Path
) -> None:
    data, ends = archived
    path = tmp_path / "x.warc.gz.open"
    path.write_bytes(data)
    request = next(record for record in ArchiveReader(path, ends[9]) if record.type == "request")
    path.write_bytes(data[: request.offset + request.length])
    tail = recover(path, ends[5])
    assert tail.end == ends[9]
    assert tail.problem == "request without a response"
    assert len(list(tail.tasks())) == 4


def _inflated(member: bytes) -> bytes | None:
    """Return what a gzip member holds, by zlib; None if it is broken."""
    try:
        return zlib.decompress(member, wbits=31)
    except zlib.error:
        return None


def test_a_bit_that_flipped_is_noticed_and_ends_what_is_whole(
    archived: tuple[bytes, list[int]], tmp_path: Path
) -> None:
    data, ends = archived
    path = tmp_path / "x.warc.gz"
    path.write_bytes(data)
    offsets = [record.offset for record in ArchiveReader(path)]
    noticed = 0
    for seed in range(60):
        at = random.Random(seed).randrange(ends[0], len(data))
        member = max(offset for offset in offsets if offset <= at)
        end = next(offset for offset in (*offsets, len(data)) if offset > at)
        flipped = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
        if _inflated(flipped[member:end]) == _inflated(data[member:end]):
            continue  # some bits carry nothing: time and system in the gzip header, padding behind a block
        path.write_bytes(flipped)
        reader = ArchiveReader(path)
        assert [record.offset for record in reader] == [offset for offset in offsets if offset < member]
        assert reader.end == member
        assert reader.problem
        assert verify_file(path)
        noticed += 1
    assert noticed > 50


def test_less_than_was_committed_is_corruption(archived: tuple[bytes, list[int]], tmp_path: Path) -> None:
    data, ends = archived
    path = tmp_path / "x.warc.gz.open"
    path.write_bytes(data[: ends[3]])
    with pytest.raises(CorruptFolderError, match="committed"):
        recover(path, ends[4])


def test_the_exchange_comes_back(tmp_path: Path) -> None:
    archive = writer(tmp_path)
    sent = exchange(status=404, truncated=Truncation.LENGTH)
    first = archive.write(sent, date=NOW)
    again = exchange("http://www.example.com/again")
    archive.write(again, date=NOW, duplicate_of=RefersTo(sent.url, NOW, first.payload_digest))
    (path,) = (tmp_path / "archive").iterdir()
    (request, response), (_, revisit) = recover(path, 0).tasks()
    back = exchange_of(response, request)
    assert (back.url, back.status, back.body, back.address) == (sent.url, 404, sent.body, "192.0.2.1")
    assert (back.request_head, back.response_head) == (sent.request_head, sent.response_head)
    assert back.headers == [("content-type", "text/html; charset=utf-8")]
    assert back.truncated is Truncation.LENGTH
    assert back.sent_at == pytest.approx(NOW)
    assert revisit.type == "revisit"
    assert exchange_of(revisit).body == b""
    assert exchange_of(revisit, original=response).body == sent.body


def test_seal_gives_index_and_name_and_removes_what_is_empty(archived: tuple[bytes, list[int]], tmp_path: Path) -> None:
    data, ends = archived
    path = tmp_path / "archive" / "TEST-1.warc.gz.open"
    path.parent.mkdir()
    path.write_bytes(data[: ends[20] + 9])
    recover(path, ends[7])
    sealed = seal(path, tmp_path / "index")
    assert sealed is not None
    assert sealed.name == "TEST-1.warc.gz"
    assert not path.exists()
    whole = fold_index(tmp_path / "index")
    assert whole.name == INDEX_NAME
    assert len(whole.read_text().splitlines()) == 21
    assert verify_index([sealed], whole) == []
    path.write_bytes(b"")
    assert seal(path, tmp_path / "index") is None
    assert not path.exists()
