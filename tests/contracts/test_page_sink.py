"""What every store of pages must do, run on each of them. See `gossamer.ports.page_sink`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.archive.files import file_name
from gossamer.archive.reader import ArchiveReader
from gossamer.model.exchanges import Exchange
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.ports import FetchedPage, PageSink
from gossamer.runtime.stores.sinks import SINKS, SinkConfig, open_sinks
from tests.archive.samples import exchange

URL = "http://h.test/page"


def config(tmp_path: Path, *stores: str) -> SinkConfig:
    return SinkConfig(stores=stores, out=str(tmp_path), archive_prefix="t", save_interval=10, warcinfo={})


def task(kind: FetchKind = FetchKind.PAGE, url: str = URL) -> FetchTask:
    return FetchTask(1, kind, url, b"", "h.test", ("127.0.0.1",), 0, 0, 0, 5.0)


def put(sink: PageSink, answer: Exchange, kind: FetchKind = FetchKind.PAGE) -> Result:
    page = FetchedPage(task(kind, answer.url), answer)
    sink.prepare(page)
    result = Result(1, answer.outcome, content_type="text/html")
    sink.write(page, result)
    return result


def stored(tmp_path: Path, name: str) -> list[bytes]:
    """Return the bodies that a store holds."""
    if name == "files":
        return [path.read_bytes() for path in sorted(tmp_path.glob("files/*/*.html"))]
    paths = sorted(tmp_path.glob("archive/*.warc.gz*"))
    return [record.http_parts()[1] for path in paths for record in ArchiveReader(path) if record.type == "response"]


@pytest.fixture(params=sorted(SINKS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_page_is_there_as_soon_as_it_is_written(name: str, tmp_path: Path) -> None:
    (sink,) = open_sinks(config(tmp_path, name), 0)
    put(sink, exchange(URL, body=b"<p>one</p>"))
    assert stored(tmp_path, name) == [b"<p>one</p>"], "a killed process loses nothing that was written"
    sink.sync()
    sink.close()
    assert stored(tmp_path, name) == [b"<p>one</p>"]


def test_syncing_and_closing_without_a_page_leaves_nothing(name: str, tmp_path: Path) -> None:
    (sink,) = open_sinks(config(tmp_path, name), 0)
    sink.sync()
    sink.close()
    assert stored(tmp_path, name) == []


def test_it_can_be_closed_in_the_middle_and_goes_on_after_a_sync(name: str, tmp_path: Path) -> None:
    (sink,) = open_sinks(config(tmp_path, name), 0)
    put(sink, exchange(URL + "1", body=b"<p>one</p>"))
    sink.sync()
    put(sink, exchange(URL + "2", body=b"<p>two</p>"))
    sink.close()
    assert sorted(stored(tmp_path, name)) == [b"<p>one</p>", b"<p>two</p>"]


def test_the_archive_says_where_a_page_is(tmp_path: Path) -> None:
    (sink,) = open_sinks(config(tmp_path, "warc"), 3)
    result = put(sink, exchange(URL, body=b"<p>one</p>"))
    assert result.archived is not None
    assert "-03-" in result.archived.file
    assert result.archive_end == result.archived.offset + result.archived.length
    assert len(result.payload_digest) == 20


def test_plain_files_hold_pages_only(tmp_path: Path) -> None:
    (sink,) = open_sinks(config(tmp_path, "files"), 0)
    put(sink, exchange("http://h.test/robots.txt", body=b"User-agent: *"), FetchKind.ROBOTS)
    missing = exchange("http://h.test/gone", body=b"no")
    missing.outcome = Outcome.CLIENT_ERROR
    put(sink, missing)
    put(sink, exchange(URL, body=b"<p>one</p>"))
    assert [path.name for path in tmp_path.glob("files/*/*")] == [file_name(URL)]


def test_the_archive_comes_last_so_that_its_record_means_stored_everywhere(tmp_path: Path) -> None:
    kinds = [type(sink).__name__ for sink in open_sinks(config(tmp_path, "warc", "files"), 0)]
    assert kinds == ["FileSink", "WarcSink"]
