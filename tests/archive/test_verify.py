from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gossamer.archive.reader import ArchiveReader

from .oracle import verify_file
from .samples import NOW, exchange, writer


@pytest.fixture
def members(tmp_path: Path) -> list[bytes]:
    archive = writer(tmp_path)
    for number in range(3):
        archive.write(exchange(f"http://a.test/{number}"), date=NOW)
    archive.close()
    (path,) = (tmp_path / "archive").iterdir()
    data = path.read_bytes()
    return [data[record.offset : record.offset + record.length] for record in ArchiveReader(path)]


def problems_of(path: Path, members: list[bytes]) -> list[str]:
    path.write_bytes(b"".join(members))
    return verify_file(path)


def changed(member: bytes, old: bytes, new: bytes) -> bytes:
    record = gzip.decompress(member)
    assert old in record
    return gzip.compress(record.replace(old, new))


def test_a_sound_file_has_no_problems(tmp_path: Path, members: list[bytes]) -> None:
    assert problems_of(tmp_path / "x.warc.gz", members) == []


def test_each_kind_of_damage_is_named(tmp_path: Path, members: list[bytes]) -> None:
    path = tmp_path / "x.warc.gz"
    body = changed(members[2], b"<p>body", b"<p>BODY")
    assert problems_of(path, [*members[:2], body]) == ["the block digest is wrong", "the payload digest is wrong"]
    assert problems_of(path, members[1:])[0] == "the first record is not a warcinfo"
    assert "is used twice" in problems_of(path, [*members, members[-1]])[0]
    assert problems_of(path, [*members, b"garbage"]) == ["no gzip member starts here"]
    assert problems_of(path, [*members, b"\x1f"]) == ["no gzip member starts here"]
    assert problems_of(path, [*members[:-1], members[-1][:-3]]) == ["the gzip member is cut off"]
    assert problems_of(path, [*members, gzip.compress(b"no record")]) == ["not a WARC record"]
    short = changed(members[2], b"Content-Length: ", b"Content-Length: 1")
    assert problems_of(path, [*members[:2], short]) == ["not a WARC record"]
    no_date = changed(members[2], b"WARC-Date", b"WARC-Late")
    assert problems_of(path, [*members[:2], no_date]) == ["warc-date is missing"]


def test_a_damaged_member_says_so(tmp_path: Path, members: list[bytes]) -> None:
    broken = members[2][:-6] + bytes([members[2][-6] ^ 1]) + members[2][-5:]
    assert "damaged" in problems_of(tmp_path / "x.warc.gz", [*members[:2], broken, *members[3:]])[0]
