"""A crawl as WACZ: every part is what the specification says, and what the package says of itself."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer.archive.recovery import seal
from gossamer.handover.export import wacz
from gossamer.handover.export.export import export
from gossamer.handover.search import index
from gossamer.handover.where import ANYTHING, selection_from
from gossamer.model.errors import CorruptFolderError
from gossamer.reading.folder import CrawlReader
from gossamer.reading.view import CrawlView
from tests.reading.folders import Crawled, finished, is_one_line, owned, said, small_web

__all__ = ["finished", "small_web"]
Output = pytest.CaptureFixture[str]


def packed(folder: Path, out: Path, *conditions: str, **options: Any) -> ZipFile:
    with CrawlReader(folder) as crawl:
        export(crawl, "wacz", out, selection_from(conditions) if conditions else ANYTHING, **options)
    return ZipFile(out)


def listed(package: ZipFile, name: str = "pages.jsonl") -> list[dict[str, Any]]:
    head, *pages = (json.loads(line) for line in package.read(f"pages/{name}").splitlines())
    assert head["format"] == "json-pages-1.0"
    return pages


def index_of(package: ZipFile) -> list[bytes]:
    return gzip.decompress(package.read("indexes/index.cdx.gz")).splitlines(keepends=True)


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_the_package_lists_every_file_with_its_size_and_hash(finished: Crawled, tmp_path: Path) -> None:
    package = packed(finished.path, tmp_path / "c.wacz")
    about = json.loads(package.read("datapackage.json"))
    resources = {each["path"]: each for each in about["resources"]}
    descriptions = {"datapackage.json", "datapackage-digest.json"}
    assert resources.keys() == set(package.namelist()) - descriptions
    for path, resource in resources.items():
        content = package.read(path)
        assert (resource["bytes"], resource["hash"]) == (len(content), sha256(content))
        assert resource["name"] == path.rpartition("/")[2]
    assert (about["profile"], about["wacz_version"]) == ("data-package", "1.1.1")
    digest = json.loads(package.read("datapackage-digest.json"))
    assert digest == {"path": "datapackage.json", "hash": sha256(package.read("datapackage.json"))}
    assert package.testzip() is None


def test_the_archive_is_that_of_the_crawl_and_not_compressed_again(finished: Crawled, tmp_path: Path) -> None:
    package = packed(finished.path, tmp_path / "c.wacz")
    files = sorted((finished.path / "archive").glob("*.warc.gz"))
    assert files
    for path in files:
        assert package.getinfo(f"archive/{path.name}").compress_type == ZIP_STORED
        assert package.read(f"archive/{path.name}") == path.read_bytes()
    assert package.getinfo("indexes/index.cdx.gz").compress_type == ZIP_STORED


def test_every_block_of_the_index_is_where_it_should_be(
    finished: Crawled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wacz, "LINES_PER_BLOCK", 25)
    package = packed(finished.path, tmp_path / "c.wacz")
    blocks = package.read("indexes/index.cdx.gz")
    head, *entries = package.read("indexes/index.idx").decode().splitlines()
    assert head == '!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}'
    lines = b""
    for entry in entries:
        key, _, fields = entry.partition(" {")
        place = json.loads("{" + fields)
        block = blocks[place["offset"] : place["offset"] + place["length"]]
        assert place["digest"] == sha256(block)
        text = gzip.decompress(block)
        assert text.startswith(f"{key} {{".encode())
        assert text.count(b"\n") <= 25
        lines += text
    assert len(entries) > 5
    assert lines == (finished.path / "index" / "index.cdxj").read_bytes()


def test_every_page_is_listed_once_with_its_capture_and_seeds_come_first(finished: Crawled, tmp_path: Path) -> None:
    package = packed(finished.path, tmp_path / "c.wacz")
    pages = listed(package)
    rows = finished.rows()
    assert len({page["url"] for page in pages}) == len({page["id"] for page in pages}) == len(pages)
    assert len(pages) == finished.summary.pages
    seeds = [page["url"] for page in pages if page.get("seed")]
    assert seeds
    assert seeds == [page["url"] for page in pages[: len(seeds)]]
    assert all(rows[url].depth == 0 for url in seeds)
    captures = {(line.split()[1].decode(), json.loads(line.split(b" ", 2)[2])["url"]) for line in index_of(package)}
    for page in pages:
        stamp = "".join(filter(str.isdigit, page["ts"]))[:14]
        assert (stamp, page["url"]) in captures
        assert page["title"] == (rows[page["url"]].title or page["url"])
        assert "text" not in page
    main = json.loads(package.read("datapackage.json"))
    assert (main["mainPageUrl"], main["mainPageDate"]) == (pages[0]["url"], pages[0]["ts"])


def test_texts_are_listed_on_request(finished: Crawled, tmp_path: Path) -> None:
    package = packed(finished.path, tmp_path / "c.wacz", with_text=True)
    assert json.loads(package.read("pages/pages.jsonl").splitlines()[0])["hasText"] is True
    assert all(page["text"] for page in listed(package))


def test_many_pages_are_in_a_second_list(finished: Crawled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wacz, "MAX_LISTED", 2)
    package = packed(finished.path, tmp_path / "c.wacz")
    first, more = listed(package), listed(package, "extraPages.jsonl")
    assert [page.get("seed", False) for page in first] == [True, True, False, False]
    assert len(first) + len(more) == finished.summary.pages
    assert "pages/extraPages.jsonl" in {
        each["path"] for each in json.loads(package.read("datapackage.json"))["resources"]
    }


def test_a_condition_selects_listed_pages_and_the_archive_is_whole(
    finished: Crawled, tmp_path: Path, capsys: Output
) -> None:
    status, out, err = said(
        capsys,
        "export",
        finished.path,
        "--format",
        "wacz",
        "-o",
        tmp_path,
        "--where",
        "depth=1",
        "--where",
        "language=en",
    )
    package = ZipFile(tmp_path / "crawl.wacz")
    rows = finished.rows()
    pages = listed(package)
    assert (status, out) == (0, "")
    assert f"{len(pages)} pages written to" in err
    assert "note: --where selects the pages that are listed; archive and index are whole" in err
    assert 0 < len(pages) < finished.summary.pages
    assert {rows[page["url"]].depth for page in pages} == {1}
    assert b"".join(index_of(package)) == (finished.path / "index" / "index.cdxj").read_bytes()


def test_of_a_crawl_that_runs_only_what_is_committed_is_in_the_file(finished: Crawled, tmp_path: Path) -> None:
    """A file that is being written has records that are not committed yet, whole ones and a torn one."""
    folder = finished.copied(tmp_path / "copy")
    (folder / "index" / "index.cdxj").unlink()
    path = max((folder / "archive").glob("*.warc.gz"))
    committed = path.read_bytes()
    first = next(iter(sorted((folder / "archive").glob("*.warc.gz")))).read_bytes()
    for each in (folder / "archive").glob("*.warc.gz"):
        each.rename(each.with_name(each.name + ".open"))
    path.with_name(path.name + ".open").write_bytes(committed + first[: len(first) - 5])
    with owned(folder):
        package = packed(folder, tmp_path / "c.wacz")
    assert package.read(f"archive/{path.name}") == committed
    assert b"".join(index_of(package)) == (finished.path / "index" / "index.cdxj").read_bytes()
    assert len(listed(package)) == finished.summary.pages
    records = sum(1 for _ in ArchiveIterator(io.BytesIO(package.read(f"archive/{path.name}"))))
    assert records > 0


def test_lines_of_an_index_beyond_the_committed_part_are_left_out(finished: Crawled, tmp_path: Path) -> None:
    folder = finished.copied(tmp_path / "copy")
    with CrawlReader(folder) as crawl:
        name, end = max(crawl.ledger.archive_ends().items())
    whole = (folder / "index" / "index.cdxj").read_bytes()
    extra = b'zz)/ 20260101000000 {"url": "http://zz/", "status": "200", "digest": "", "length": "9", "offset": "%d", '
    late = extra % end + b'"filename": "%s"}\n' % name.encode()
    (folder / "index" / "index.cdxj").write_bytes(whole + late)
    assert b"".join(index_of(packed(folder, tmp_path / "c.wacz"))) == whole


def test_an_archive_file_that_is_too_short_is_named_and_nothing_is_written(
    finished: Crawled, tmp_path: Path, capsys: Output
) -> None:
    folder = finished.copied(tmp_path / "copy")
    path = max((folder / "archive").glob("*.warc.gz"))
    path.write_bytes(path.read_bytes()[:-100])
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(CorruptFolderError, match=f"archive/{path.name}: has .* bytes, and .* are committed"):
        packed(folder, out / "c.wacz")
    assert list(out.iterdir()) == []
    status, _, err = said(capsys, "export", folder, "--format", "wacz", "-o", out)
    assert status != 0
    assert is_one_line(err)


def test_an_interrupted_export_leaves_nothing(
    finished: Crawled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(wacz, "list_pages", interrupted)
    with pytest.raises(KeyboardInterrupt):
        packed(finished.path, tmp_path / "c.wacz")
    assert list(tmp_path.iterdir()) == []


def test_an_archive_file_that_is_missing_is_an_error(finished: Crawled, tmp_path: Path, capsys: Output) -> None:
    folder = finished.copied(tmp_path / "copy")
    path = max((folder / "archive").glob("*.warc.gz"))
    shutil.move(path, tmp_path)
    status, _, err = said(capsys, "export", folder, "--format", "wacz", "-o", tmp_path / "c.wacz")
    assert status != 0
    assert path.name in err
    assert is_one_line(err)


def test_files_without_an_index_are_indexed(finished: Crawled, tmp_path: Path) -> None:
    folder = finished.copied(tmp_path / "copy")
    (folder / "index" / "index.cdxj").unlink()
    package = packed(folder, tmp_path / "c.wacz")
    assert b"".join(index_of(package)) == (finished.path / "index" / "index.cdxj").read_bytes()


def test_a_crawl_without_an_archive_is_refused_before_anything_is_written(
    finished: Crawled, tmp_path: Path, capsys: Output
) -> None:
    folder = finished.copied(tmp_path / "copy")
    settings = (folder / "crawl.toml").read_text("utf-8")
    (folder / "crawl.toml").write_text(settings.replace('store = ["warc"]', 'store = ["files"]'), "utf-8")
    assert settings != (folder / "crawl.toml").read_text("utf-8")
    status, _, err = said(capsys, "export", folder, "--format", "wacz", "-o", tmp_path / "c.wacz")
    assert status == 2
    assert "has no WARC archive" in err
    assert is_one_line(err)
    assert not (tmp_path / "c.wacz").exists()


def test_large_files_have_large_entries(finished: Crawled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wacz, "_ZIP64_BYTES", 10)
    package = packed(finished.path, tmp_path / "c.wacz")
    assert package.testzip() is None
    path = min((finished.path / "archive").glob("*.warc.gz"))
    assert package.read(f"archive/{path.name}") == path.read_bytes()
    head = (tmp_path / "c.wacz").read_bytes()[:30]
    assert int.from_bytes(head[28:30], "little") >= 20  # an extra field with room for sizes of 8 bytes each


def test_nothing_is_missed_if_a_file_is_finished_meanwhile(
    finished: Crawled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished.copied(tmp_path / "copy")
    (folder / "index" / "index.cdxj").unlink()
    for path in (folder / "archive").glob("*.warc.gz"):
        path.rename(path.with_name(path.name + ".open"))
    read_unfinished = index._unfinished

    def sealed_before(crawl: CrawlView) -> list[list[bytes]]:
        for path in (folder / "archive").glob("*.open"):
            seal(path, folder / "index")
        return read_unfinished(crawl)

    monkeypatch.setattr(index, "_unfinished", sealed_before)
    with owned(folder), CrawlReader(folder) as crawl:
        lines = b"".join(index.index_lines(crawl))
    assert lines == (finished.path / "index" / "index.cdxj").read_bytes()
