from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from cdxj_indexer.main import CDXJIndexer
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.archive.cdxj import fold_index, index_file, merge_index, part_path, write_index
from gossamer.archive.warc import Identified, RefersTo
from gossamer.core.url.forms import canonical
from gossamer.model.records import Outcome, Truncation
from tests.amount import amount

from .oracle import verify_index
from .samples import NOW, exchange, odd_exchanges, writer


def reference(*paths: Path) -> list[str]:
    """Return what cdxj-indexer makes of the files, sorted."""
    out = io.StringIO()
    out.close = lambda: None  # type: ignore[method-assign]
    CDXJIndexer(out, [str(path) for path in paths]).process_all()
    return sorted(out.getvalue().splitlines(), key=str.encode)


def without_details(lines: list[str]) -> list[str]:
    """Return lines without the fields that cdxj-indexer does not know."""
    return [re.sub(r'("filename": "[^"]*").*', r"\1}", line) for line in lines]


def archive_all(folder: Path) -> list[Path]:
    archive = writer(folder, save_interval=20)
    for number, one in enumerate(odd_exchanges()):
        one.url = canonical(one.url) or one.url
        archive.write(one, date=NOW + number * 0.7)
    first = archive.write(exchange(), date=NOW)
    refers = RefersTo(exchange().url, NOW, first.payload_digest)
    archive.write(exchange("http://www.example.com/copy"), date=NOW + 3, duplicate_of=refers)
    not_modified = exchange(status=304, body=b"", outcome=Outcome.NOT_MODIFIED)
    archive.write(not_modified, date=NOW + 4, duplicate_of=refers)
    archive.write(exchange("http://www.example.com/r", status=302, headers=b"Location: /x\r\n", body=b""), date=NOW)
    archive.write(exchange("http://x/\r\n\u00e9 space"), date=NOW)
    archive.close()
    return sorted((folder / "archive").iterdir())


def test_the_index_is_that_of_cdxj_indexer(tmp_path: Path) -> None:
    paths = archive_all(tmp_path)
    expected = reference(*paths)
    written = fold_index(tmp_path / "index").read_text().splitlines()
    assert without_details(written) == expected
    assert len(written) == 56
    for path in paths:
        assert without_details(index_file(path)) == reference(path)
    assert verify_index(paths, tmp_path / "index" / "index.cdxj") == []


@settings(max_examples=amount(15, 40), deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=60), st.integers(100, 599)), min_size=1, max_size=12))
def test_any_headers_give_the_line_of_cdxj_indexer(
    tmp_path_factory: pytest.TempPathFactory, heads: list[tuple[bytes, int]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    archive = writer(folder)
    for junk, status in heads:
        archive.write(exchange(status=status, headers=b"Content-Type: " + junk + b"\r\n" + junk + b"\r\n"), date=NOW)
    archive.close()
    (path,) = (folder / "archive").iterdir()
    assert without_details(index_file(path)) == reference(path)
    assert fold_index(folder / "index").read_text().splitlines() == index_file(path)


def test_folding_may_be_repeated_and_goes_on(tmp_path: Path) -> None:
    archive = writer(tmp_path, save_interval=2)
    for number in range(5):
        archive.write(exchange(f"http://a.test/{number}"), date=NOW)
    archive.close()
    first = fold_index(tmp_path / "index").read_text()
    assert fold_index(tmp_path / "index").read_text() == first
    paths = sorted((tmp_path / "archive").iterdir())
    # As after a crash between the fold and the removal of the parts.
    write_index(part_path(tmp_path / "index", paths[0].name), index_file(paths[0]))
    assert fold_index(tmp_path / "index").read_text() == first
    more = writer(tmp_path, worker=1)
    more.write(exchange("http://a.test/0"), date=NOW + 9)
    more.close()
    fold_index(tmp_path / "index")
    assert [path.name for path in (tmp_path / "index").glob("*.cdxj")] == ["index.cdxj"]
    assert list((tmp_path / "index" / "parts").iterdir()) == []
    assert verify_index(sorted((tmp_path / "archive").iterdir()), tmp_path / "index" / "index.cdxj") == []


def test_an_index_without_captures_is_an_empty_file(tmp_path: Path) -> None:
    assert fold_index(tmp_path / "index").read_bytes() == b""


def test_many_files_are_merged_in_rounds(tmp_path: Path) -> None:
    paths = []
    for number in range(300):
        paths.append(tmp_path / f"{number}.cdxj")
        write_index(paths[-1], [f"com,a)/{number:04d} 2023 {{}}", "z,same)/ 2023 {}"])
    merge_index(paths, tmp_path / "out.cdxj")
    lines = (tmp_path / "out.cdxj").read_text().splitlines()
    assert lines == [*(f"com,a)/{number:04d} 2023 {{}}" for number in range(300)), "z,same)/ 2023 {}"]
    assert list(tmp_path.glob("*.part")) == []


def test_a_wrong_index_is_noticed(tmp_path: Path) -> None:
    paths = archive_all(tmp_path)
    index = fold_index(tmp_path / "index")
    lines = index.read_text().splitlines()
    for changed in (lines[1:], [*lines, lines[-1]], lines[::-1], [lines[0].replace("200", "201"), *lines[1:]]):
        write_index(index, changed)
        assert verify_index(paths, index)
    write_index(index, lines)
    assert verify_index(paths[1:], index)


def _details(line: str) -> dict[str, str]:
    fields = json.loads(line.split(" ", 2)[2])
    return {name: fields[name] for name in fields if name in DETAILS}


DETAILS = ("mime-detected", "charset", "languages", "truncated", "redirect")


def test_a_line_says_what_the_content_is_and_where_a_redirect_leads(tmp_path: Path) -> None:
    archive = writer(tmp_path)
    cut = exchange("http://a.test/page")
    cut.truncated = Truncation.LENGTH
    archive.write(cut, date=NOW, identified=Identified("text/html", "shift_jis", "ja"))
    moved = exchange("http://a.test/r", status=301, headers=b"Location: ../caf\xe9\r\n", body=b"")
    archive.write(moved, date=NOW, is_page=False)
    archive.write(exchange("http://a.test/x"), date=NOW)
    archive.close()
    (path,) = (tmp_path / "archive").iterdir()
    page, redirect, plain = fold_index(tmp_path / "index").read_text().splitlines()
    identified = {"mime-detected": "text/html", "charset": "shift_jis", "languages": "ja", "truncated": "length"}
    assert _details(page) == identified
    assert _details(redirect) == {"redirect": "http://a.test/caf%E9"}
    assert _details(plain) == {}
    assert index_file(path) == [page, redirect, plain], "the index can be rebuilt from the archive alone"
