"""A real crawl in every form, read back by the tools that people use."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from gossamer.archive.reader import read_record
from gossamer.core.url.forms import host_of
from gossamer.handover.export import parquet
from gossamer.handover.export.columns import COMMON_CRAWL
from gossamer.handover.export.documents import documents
from gossamer.handover.export.export import export, page_lines
from gossamer.handover.export.output import write_lines
from gossamer.handover.findings.links import GraphLink
from gossamer.handover.where import ANYTHING, selection_from
from gossamer.model.errors import DiskFullError
from gossamer.reading.folder import CrawlReader
from tests.reading.folders import Crawled, finished, owned, small_web, stopped

__all__ = ["finished", "small_web", "stopped"]


def exported(crawled: Crawled, form: str, out: Path, *conditions: str, **options: Any) -> Path:
    with CrawlReader(crawled.path) as crawl:
        export(crawl, form, out, selection_from(conditions) if conditions else ANYTHING, **options)
    return out


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def pages_of(crawled: Crawled) -> dict[str, Any]:
    return {
        url: row for url, row in crawled.rows().items() if row.outcome == "ok" and row.kind == 0 and row.source != 5
    }


def test_jsonl_holds_every_page_once(finished: Crawled, tmp_path: Path) -> None:
    lines = json_lines(exported(finished, "jsonl", tmp_path / "pages.jsonl"))
    assert Counter(line["url"] for line in lines) == Counter(pages_of(finished).keys())
    assert len(lines) == finished.summary.pages
    assert all(line["text"] and line["title"] and line["links"] for line in lines)


def test_a_document_agrees_with_the_catalog_and_the_archive(finished: Crawled, tmp_path: Path) -> None:
    rows = finished.rows()
    for line in json_lines(exported(finished, "jsonl", tmp_path / "pages.jsonl")):
        row = rows[line["url"]]
        assert (line["status"], line["depth"], line["bytes"]) == (row.status, row.depth, row.content_bytes)
        assert line["content_hash"] == row.content_hash.hex()
        assert line["parent"] == "" if line["found_via"] == "seed" else line["parent"] in rows
        place = line["storage"]
        record = read_record(finished.path / "archive" / place["file"], place["offset"])
        assert record is not None
        assert (record.id, record.length, record.target) == (place["record_id"], place["length"], line["url"])
        assert record.fields["warc-payload-digest"] == line["payload_digest"]


def test_the_date_of_a_sitemap_is_exported(finished: Crawled, tmp_path: Path) -> None:
    pages = json_lines(exported(finished, "jsonl", tmp_path / "pages.jsonl"))
    listed = [page for page in pages if page["found_via"] == "sitemap"]
    assert listed
    assert {page["lastmod"] for page in listed} == {"2024-05-01"}
    assert {page["lastmod"] for page in pages if page["found_via"] == "seed"} == {""}


def test_a_copy_has_the_text_of_its_original(finished: Crawled, tmp_path: Path) -> None:
    lines = {line["url"]: line for line in json_lines(exported(finished, "jsonl", tmp_path / "pages.jsonl"))}
    copies = [line for line in lines.values() if line["duplicate_of"]]
    assert copies
    for copy in copies:
        assert copy["text"] == lines[copy["duplicate_of"]]["text"] != ""
        assert copy["similarity"] == 1.0


def test_near_copies_name_their_page_and_likeness(finished: Crawled, tmp_path: Path) -> None:
    lines = json_lines(exported(finished, "jsonl", tmp_path / "pages.jsonl"))
    near = [line for line in lines if line["near_duplicate_of"]]
    assert len(near) == finished.summary.near_duplicates
    assert all(0.5 < line["similarity"] <= 1 for line in near)


def test_conditions_take_a_part(finished: Crawled, tmp_path: Path) -> None:
    host = json_lines(exported(finished, "jsonl", tmp_path / "all.jsonl"))[0]["url"].split("/")[2].split(":")[0]
    some = json_lines(exported(finished, "jsonl", tmp_path / "some.jsonl", f"host={host}", "duplicates=no"))
    assert 0 < len(some) < finished.summary.pages
    assert all(f"//{host}:" in line["url"] and not line["duplicate_of"] for line in some)


def test_hosts_by_name_give_what_a_pattern_gives(finished: Crawled, tmp_path: Path) -> None:
    urls = [line["url"] for line in json_lines(exported(finished, "jsonl", tmp_path / "all.jsonl"))]
    hosts = sorted({host_of(url) for url in urls})[:2]
    named = exported(finished, "jsonl", tmp_path / "named.jsonl", f"host={','.join(hosts)}", "depth<=2")
    patterns = exported(finished, "jsonl", tmp_path / "patterns.jsonl", f"host={','.join(hosts)},*.none", "depth<=2")
    assert named.read_bytes() == patterns.read_bytes() != b""


def test_a_condition_on_the_status_asks_for_errors_too(finished: Crawled, tmp_path: Path) -> None:
    lines = json_lines(exported(finished, "jsonl", tmp_path / "errors.jsonl", "status>=400"))
    assert lines
    assert {line["status"] for line in lines} <= {404, 410}


def test_languages_are_counted_by_page(finished: Crawled, tmp_path: Path) -> None:
    everything = json_lines(exported(finished, "jsonl", tmp_path / "all.jsonl"))
    code = everything[0]["language"]
    some = json_lines(exported(finished, "jsonl", tmp_path / "some.jsonl", f"language={code}"))
    assert len(some) == sum((line["language"] or line["language_declared"]) == code for line in everything)


def test_a_file_named_gz_is_compressed(finished: Crawled, tmp_path: Path) -> None:
    plain = exported(finished, "jsonl", tmp_path / "pages.jsonl").read_bytes()
    assert gzip.decompress(exported(finished, "jsonl", tmp_path / "pages.jsonl.gz").read_bytes()) == plain


def test_wet_is_read_by_warcio_and_fastwarc(finished: Crawled, tmp_path: Path) -> None:
    path = exported(finished, "wet", tmp_path / "text.warc.wet.gz")
    lines = {line["url"]: line for line in json_lines(exported(finished, "jsonl", tmp_path / "pages.jsonl"))}
    with path.open("rb") as file:
        seen = 0
        for record in ArchiveIterator(file, check_digests=True):
            if record.rec_type == "warcinfo":
                continue
            page = lines[record.rec_headers["WARC-Target-URI"]]
            assert record.rec_type == "conversion"
            assert record.rec_headers["WARC-Refers-To"] == f"<{page['storage']['record_id']}>"
            assert record.content_stream().read().decode() == page["text"] + "\n"
            seen += 1
    assert seen == len(lines)
    with path.open("rb") as file:
        assert sum(record.verify_block_digest() for record in FastIterator(file)) == seen + 1


def test_cdxj_is_the_index(finished: Crawled, tmp_path: Path) -> None:
    whole = (finished.path / "index" / "index.cdxj").read_bytes()
    assert exported(finished, "cdxj", tmp_path / "index.cdxj").read_bytes() == whole
    some = exported(finished, "cdxj", tmp_path / "some.cdxj", "status>=300").read_bytes().splitlines()
    assert some == sorted(some)
    assert {json.loads(line.split(b" ", 2)[2])["status"][0] for line in some} <= {"3", "4", "5"}


def test_cdxj_of_a_crawl_that_runs_has_what_is_committed(finished: Crawled, tmp_path: Path) -> None:
    """An archive file that is still open, and an index that does not have it yet."""
    folder = finished.copied(tmp_path / "copy")
    whole = (folder / "index" / "index.cdxj").read_bytes()
    (folder / "index" / "index.cdxj").unlink()
    for path in (folder / "archive").glob("*.warc.gz"):
        path.rename(path.with_name(path.name + ".open"))
    with owned(folder), CrawlReader(folder) as crawl:
        export(crawl, "cdxj", tmp_path / "index.cdxj")
        assert sum(1 for _ in documents(crawl)) == finished.summary.pages
    assert (tmp_path / "index.cdxj").read_bytes() == whole


def test_links_are_the_links_of_the_documents(finished: Crawled, tmp_path: Path) -> None:
    lines = json_lines(exported(finished, "jsonl", tmp_path / "pages.jsonl"))
    links = json_lines(exported(finished, "links", tmp_path / "links.jsonl"))
    assert len(links) == sum(len(line["links"]) for line in lines)
    assert list(links[0]) == ["from", "to", "text", "rel", "nofollow"]
    with exported(finished, "links", tmp_path / "links.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["to"] for row in rows] == [link["to"] for link in links]
    tsv = exported(finished, "links", tmp_path / "links.tsv").read_text().splitlines()
    assert len(tsv) == len(links) + 1
    assert all(line.count("\t") == 4 for line in tsv)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx"])
def test_a_cell_cannot_be_a_formula(text: str) -> None:
    assert GraphLink("http://a/", "http://b/", text, "", False).cells()[2] == "'" + text


def test_parquet_has_the_columns_of_common_crawl_and_ours(finished: Crawled, tmp_path: Path) -> None:
    table = pq.read_table(exported(finished, "parquet", tmp_path / "pages.parquet"))
    names = [column.name for column in COMMON_CRAWL]
    assert table.column_names[: len(names)] == names
    assert "text" not in table.column_names
    rows = table.to_pylist()
    pages = {line["url"]: line for line in json_lines(exported(finished, "jsonl", tmp_path / "pages.jsonl"))}
    assert len(rows) == len(pages)
    for row in rows:
        page = pages[row["url"]]
        assert f"sha1:{row['content_digest']}" == page["payload_digest"]
        assert row["warc_filename"] == f"archive/{page['storage']['file']}"
        assert row["url_host_tld"] == "test"
        assert row["url_host_registered_domain"].endswith(".test")
        assert (row["title"], row["words"], row["fetch_status"]) == (page["title"], page["words"], 200)
        assert (f"{row['lastmod']:%Y-%m-%d}" if row["lastmod"] else "") == page["lastmod"]


def test_csv_has_the_columns_and_values_of_parquet(finished: Crawled, tmp_path: Path) -> None:
    table = pq.read_table(exported(finished, "parquet", tmp_path / "pages.parquet", with_text=True))
    packed = exported(finished, "csv", tmp_path / "pages.csv.gz", with_text=True)
    with gzip.open(packed, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = table.to_pylist()
    assert list(rows[0]) == table.column_names
    assert len(rows) == len(expected) == finished.summary.pages
    for row, values in zip(rows, expected, strict=True):
        for name in ("url", "title", "text", "words", "depth", "url_port", "warc_record_offset", "content_digest"):
            assert row[name] == ("" if values[name] is None else str(values[name])), name
        assert row["fetch_time"] == values["fetch_time"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert "text" not in exported(finished, "csv", tmp_path / "p.csv").read_text("utf-8").splitlines()[0].split(",")


def test_texts_of_pages_are_quoted_in_csv_and_are_no_formulas(finished: Crawled) -> None:
    with CrawlReader(finished.path) as crawl:
        document = next(iter(documents(crawl)))
    document.article.title, document.article.description = '=1+1,"x"', "two\nlines"
    document.facts.seed_metadata = {"a": "b"}
    lines = b"".join(page_lines([document], "crawl")).decode()
    (row,) = csv.DictReader(io.StringIO(lines, newline=""))
    assert (row["title"], row["description"], row["seed_metadata"]) == ('\'=1+1,"x"', "two\nlines", '{"a":"b"}')


def test_row_groups_are_bounded_and_text_is_a_column(
    finished: Crawled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 50)
    path = exported(finished, "parquet", tmp_path / "pages.parquet", with_text=True)
    found = pq.ParquetFile(path)
    assert found.metadata.num_row_groups == -(-finished.summary.pages // 50)
    assert all(found.read(["text"]).column("text").to_pylist())


def test_a_file_that_is_not_whole_is_not_seen(
    finished: Crawled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr("gossamer.handover.export.export.documents", broken)
    for form in ("jsonl", "parquet", "wet", "links"):
        with pytest.raises(KeyboardInterrupt):
            exported(finished, form, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_named_pipe_is_written_into_and_not_replaced(finished: Crawled, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["wc", "-l", str(pipe)], stdout=subprocess.PIPE) as reader:
        exported(finished, "jsonl", pipe)
        assert reader.stdout is not None
        assert int(reader.stdout.read().split()[0]) == finished.summary.pages
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_link_stays_a_link(stopped: Crawled, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "pages.jsonl"
    link.symlink_to(tmp_path / "there" / "real.jsonl")
    exported(stopped, "jsonl", link)
    assert link.is_symlink()
    assert len(json_lines(tmp_path / "there" / "real.jsonl")) == stopped.summary.pages


def test_the_error_names_the_disk_that_is_full(tmp_path: Path) -> None:
    def lines() -> Iterator[bytes]:
        yield b"a line\n"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DiskFullError, match=r"out: no room left"):
        write_lines(lines(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_gets_a_file_with_the_formats_name(stopped: Crawled, tmp_path: Path) -> None:
    exported(stopped, "jsonl", tmp_path)
    assert len(json_lines(tmp_path / "pages.jsonl")) == stopped.summary.pages


def test_an_index_is_sorted_as_sort_does(finished: Crawled, tmp_path: Path) -> None:
    path = exported(finished, "cdxj", tmp_path / "index.cdxj")
    assert subprocess.run(["sort", "-c", str(path)], env={"LC_ALL": "C"}, check=False).returncode == 0
