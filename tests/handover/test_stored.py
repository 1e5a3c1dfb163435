"""Looking a URL up in the sorted index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gossamer.archive.surt import surt
from gossamer.handover.export.stored import _lines_with, captures

NAMES = st.lists(st.text(alphabet="abc", min_size=1, max_size=4), max_size=30)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=NAMES, wanted=st.text(alphabet="abc", min_size=1, max_size=4), ends_whole=st.booleans())
def test_lines_are_found_as_a_scan_finds_them(tmp_path: Path, names: list[str], wanted: str, ends_whole: bool) -> None:
    lines = sorted(f"{name} {number}".encode() for number, name in enumerate(names))
    text = b"\n".join(lines) + (b"\n" if ends_whole and lines else b"")
    path = tmp_path / "index.cdxj"
    path.write_bytes(text)
    prefix = f"{wanted} ".encode()
    assert _lines_with(path, prefix) == [line for line in lines if line.startswith(prefix)]


@pytest.mark.parametrize("folder", ["", "parts"])
def test_captures_of_a_url_come_from_whole_and_parts_oldest_first(tmp_path: Path, folder: str) -> None:
    url = "http://h.test/a"
    place = tmp_path / folder
    place.mkdir(exist_ok=True)
    lines = [
        f"{surt(each)} {stamp} {json.dumps({'url': each, 'offset': str(stamp)})}"
        for each in (url, "http://h.test/ab", "http://www.h.test/a")
        for stamp in (20260102000000, 20260101000000)
    ]
    name = "x.warc.gz.cdxj" if folder else "index.cdxj"
    (place / name).write_text("".join(line + "\n" for line in sorted(lines)))
    assert [line["offset"] for line in captures(tmp_path, url)] == ["20260101000000", "20260102000000"]
    assert captures(tmp_path, "http://h.test/none") == []


def test_no_index_has_no_captures(tmp_path: Path) -> None:
    assert captures(tmp_path, "http://h.test/") == []
