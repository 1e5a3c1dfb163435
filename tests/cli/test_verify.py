"""`gossamer verify`: whatever is made wrong in a folder is found, and --mend mends what can be mended."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gossamer.archive.writer import ArchiveWriter
from gossamer.core.ledger.catalog import queued_from
from gossamer.core.url.forms import link_to
from gossamer.model.exchanges import Exchange
from gossamer.model.records import ArchiveSpan, Outcome, UrlRecord, UrlState
from gossamer.reading.folder import CrawlReader
from gossamer.sim.web.web import preset
from gossamer.verify.checks import find_problems
from tests.e2e import program
from tests.reading.folders import Crawled, finished, is_one_line, ledger_of, owned, said, small_web, stopped
from tests.servers.web import RunningWeb

__all__ = ["finished", "small_web", "stopped"]


@pytest.fixture
def folder(finished: Crawled, tmp_path: Path) -> Path:
    """A copy of a crawl folder in order, to be broken."""
    return finished.copied(tmp_path / "copy")


def _problems(capsys: pytest.CaptureFixture[str], *words: object) -> list[str]:
    """Return what is wrong; the exit status must say the same."""
    status, out, _ = said(capsys, "verify", "--json", *words)
    found = json.loads(out)
    assert status == (1 if found["problems"] else 0)
    assert found["is_fine"] == (not found["problems"])
    return [f"{problem['where']}: {problem['what']}" for problem in found["problems"]]


def _archive(folder: Path) -> Path:
    return next((folder / "archive").glob("*.warc.gz"))


def _change(folder: Path, wanted: Callable[[UrlRecord], bool], change: Callable[[UrlRecord], None]) -> str:
    """Change a row of the catalog; return its URL."""
    with ledger_of(folder) as ledger:
        url_id, row = next(entry for entry in ledger.urls() if wanted(entry[1]))
        queued = queued_from(url_id, link_to(row.url).host, row)
        change(row)
        ledger.finish(queued, row)
        return row.url


def test_a_crawl_in_order_is_fine(finished: Crawled, stopped: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    for crawled in (finished, stopped):
        status, out, _ = said(capsys, "verify", crawled.path)
        assert status == 0
        assert "archive, index and catalog agree" in out


def test_a_torn_tail_is_found_and_mended(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = _archive(folder).read_bytes()
    _archive(folder).write_bytes(whole + whole[:100])
    assert "cut off" in _problems(capsys, folder)[0]
    assert _problems(capsys, folder, "--mend") == []
    assert _archive(folder).read_bytes() == whole


def test_a_damaged_record_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(_archive(folder).read_bytes())
    data[len(data) // 2] ^= 0xFF
    _archive(folder).write_bytes(bytes(data))
    assert any("damaged" in problem or "digest" in problem for problem in _problems(capsys, folder))
    assert _problems(capsys, folder, "--mend"), "what was committed is never cut off"


@pytest.mark.parametrize("damage", ["missing", "shorter", "foreign", "unsorted"])
def test_a_wrong_index_is_found_and_mended(folder: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    index = folder / "index" / "index.cdxj"
    right = index.read_bytes()
    lines = right.splitlines(keepends=True)
    wrong = {
        "shorter": b"".join(lines[:-1]),
        "foreign": right.replace(b"gossamer-", b"other-", 1),
        "unsorted": b"".join(reversed(lines)),
    }
    if damage == "missing":
        index.unlink()
    else:
        index.write_bytes(wrong[damage])
    assert _problems(capsys, folder)
    assert _problems(capsys, folder, "--mend") == []
    assert index.read_bytes() == right


def test_a_missing_archive_file_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _archive(folder).unlink()
    assert any("is missing" in problem for problem in _problems(capsys, folder))


def test_a_shortened_archive_file_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = _archive(folder).read_bytes()
    _archive(folder).write_bytes(data[: len(data) // 2])
    assert any("were committed" in problem for problem in _problems(capsys, folder))


def test_a_row_that_points_elsewhere_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def move(row: UrlRecord) -> None:
        assert row.archived is not None
        row.archived = ArchiveSpan(row.archived.file, row.archived.offset + 1, row.archived.length)

    url = _change(folder, lambda row: row.archived is not None and row.status == 404, move)
    assert any(url in problem and "no record" in problem for problem in _problems(capsys, folder))


def _store(folder: Path, url: str) -> None:
    """Put a further capture into the archive, as a committed one."""
    writer = ArchiveWriter(folder / "archive", folder / "index", prefix="extra", worker=9, warcinfo={})
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    exchange = Exchange(url, Outcome.OK, status=200, response_head=head, body=b"twice", content=b"twice")
    written = writer.write(exchange, date=1_700_000_000.0)
    writer.close()
    with ledger_of(folder) as ledger:
        ledger.put_archive_end(written.span.file, written.end)


def test_a_capture_that_nobody_asked_for_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _store(folder, "http://stray.test/page")
    assert any("http://stray.test/page is not in the catalog" in one for one in _problems(capsys, folder))


def test_a_page_stored_twice_in_one_visit_is_found(
    folder: Path, finished: Crawled, capsys: pytest.CaptureFixture[str]
) -> None:
    url = next(url for url, row in finished.rows().items() if row.status == 200 and row.archived)
    _store(folder, url)
    assert any(f"{url} is stored twice" in one for one in _problems(capsys, folder))


def test_robots_and_where_it_redirects_to_need_no_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = ArchiveWriter(folder / "archive", folder / "index", prefix="extra", worker=9, warcinfo={})
    chain = [
        ("http://r.test/robots.txt", b"HTTP/1.1 301 Moved\r\nLocation: /one\r\n\r\n", 301),
        ("http://r.test/one", b"HTTP/1.1 302 Found\r\nLocation: http://s.test/two\r\n\r\n", 302),
        ("http://s.test/two", b"HTTP/1.1 200 OK\r\n\r\n", 200),
    ]
    for url, head, status in reversed(chain):
        written = writer.write(
            Exchange(url, Outcome.OK, status=status, response_head=head, body=b"x"), date=1_700_000_000.0
        )
    writer.close()
    with ledger_of(folder) as ledger:
        ledger.put_archive_end(written.span.file, written.end)
    assert _problems(capsys, folder) == []


def test_a_wrong_host_count_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ledger_of(folder) as ledger:
        host = next(iter(ledger.hosts()))
        host.queued, host.pages = host.queued + 7, host.pages + 1
        ledger.put_host(host)
    problems = _problems(capsys, folder)
    assert any("the host counts 7" in problem for problem in problems)
    assert any("pages in the catalog" in problem for problem in problems)


def test_a_queued_row_without_a_queue_entry_is_found(
    stopped: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stopped.copied(tmp_path / "queue")
    _change(folder, lambda row: row.state is UrlState.QUEUED, lambda row: None)
    assert any("according to the queue" in problem for problem in _problems(capsys, folder))


def test_a_queue_entry_of_a_settled_url_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ledger_of(folder) as ledger:
        url_id, row = next(entry for entry in ledger.urls() if entry[1].state is UrlState.DONE)
        queued = queued_from(url_id, link_to(row.url).host, row)
        ledger.requeue(queued)
        row.state = UrlState.DONE
        ledger._store.put("urls", url_id, msgspec.msgpack.encode(row))
    assert any("is in the queue, but not queued" in problem for problem in _problems(capsys, folder))


def test_captures_that_await_recovery_are_no_problem(
    folder: Path, finished: Crawled, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = ArchiveWriter(folder / "archive", folder / "index", prefix="late", worker=3, warcinfo={})
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    writer.write(Exchange("http://late.test/", Outcome.OK, status=200, response_head=head), date=1_700_000_000.0)
    status, out, _ = said(capsys, "verify", folder)
    assert status == 0
    assert "captures that are not in the catalog yet: 1" in out
    writer.close()


def test_a_running_crawl_is_verified_but_not_mended(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with owned(folder):
        status, out, _ = said(capsys, "verify", folder)
        assert status == 0
        assert "the crawl is running" in out
        status, out, err = said(capsys, "verify", folder, "--mend")
    assert (status, out) == (2, "")
    assert is_one_line(err)


def test_a_file_that_a_running_crawl_renames_meanwhile_is_no_problem(folder: Path) -> None:
    writer = ArchiveWriter(folder / "archive", folder / "index", prefix="late", worker=7, warcinfo={})
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    writer.write(Exchange("http://late.test/", Outcome.OK, status=200, response_head=head), date=1_700_000_000.0)
    closed: list[int] = []

    def finish(_: int) -> None:
        if not closed:
            writer.close()
        closed.append(1)

    with owned(folder), CrawlReader(folder) as crawl:
        found = find_problems(crawl, finish)
        assert found.problems == []
        found = find_problems(crawl)
    assert closed
    assert found.problems == [], "a file that is finished before the commit of its last records"


def test_plain_files_are_compared_with_the_catalog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunningWeb(preset("small", pages=30, slow=0.0)) as web:
        program.crawl(web, tmp_path / "c", 0, "--store", "files", "--store", "warc")
    assert _problems(capsys, tmp_path / "c") == []
    missing, changed, *_ = files = sorted((tmp_path / "c" / "files").glob("*/*.html"))
    _, out, _ = said(capsys, "verify", tmp_path / "c")
    assert f"{len(files)} plain files" in out
    missing.unlink()
    changed.write_text("something else")
    (changed.parent / "stray.tmp").write_text("")
    (tmp_path / "c" / "files" / "nobody").mkdir()
    problems = "\n".join(_problems(capsys, tmp_path / "c"))
    for path, what in (
        (missing, "is missing"),
        (changed, "is not the content of"),
        (changed.parent / "stray.tmp", "belongs to no page"),
        (tmp_path / "c" / "files" / "nobody", "no page of the catalog"),
    ):
        assert f"{path.relative_to(tmp_path / 'c')}: {what}" in problems
    assert len(problems.splitlines()) == 4
