"""What a dead process had stored is finished, and no whole record is ever cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.reader import ArchiveReader, read_record
from gossamer.archive.recovery import close_file, recover, unfinished_files
from gossamer.core.url.forms import link_to
from gossamer.model.events import Event, EventName
from gossamer.model.records import ArchiveSpan, FetchKind, FetchTask, Link, Result, UrlState
from gossamer.runtime.recovery.stored_results import KnownUrl, ReadingRules, StoredResults
from gossamer.runtime.workers.answers import WorkerRules
from gossamer.sim.scenarios import START
from gossamer.telemetry.unplaced import unplaced_records
from tests.archive.oracle import verify_file
from tests.reading.folders import said, write_events

from .crashed import CrashedFolder

URLS = [f"http://h.test/{number}" for number in range(8)]
LINK = b'<p>A page with a link: <a href="/found">found</a></p>'


def crashed_with(tmp_path: Path, urls: list[str] = URLS, *, repeats: str = "") -> CrashedFolder:
    """Return a folder whose worker had stored these; the second is a revisit of a page that nobody knows."""
    crashed = CrashedFolder(tmp_path / "crawl", URLS)
    writer = crashed.writer()
    for url in urls:
        crashed.store(writer, url, repeats=repeats if url == urls[1] else "")
    return crashed


def warnings(crashed: CrashedFolder) -> list[Event]:
    return [event for event in crashed.events if event.event is EventName.WARNING]


# -- whole records ----------------------------------------------------------------------------------


def test_a_revisit_whose_original_is_unknown_costs_no_other_page(tmp_path: Path) -> None:
    crashed = crashed_with(tmp_path, repeats="http://gone.test/")
    crashed.recover()
    assert crashed.stored() == URLS, "every whole record is still there"
    states = [crashed.row(url).state for url in URLS]
    assert states == [UrlState.QUEUED if url == URLS[1] else UrlState.DONE for url in URLS]


def test_what_cannot_be_placed_is_reported_with_its_place_and_counted(tmp_path: Path) -> None:
    crashed = crashed_with(tmp_path, repeats="http://gone.test/")
    crashed.recover()
    (warning,) = warnings(crashed)
    (path,) = crashed.folder.archive.iterdir()
    record = read_record(path, warning.offset)
    assert record is not None
    assert (record.type, record.target) == ("revisit", URLS[1])
    assert (warning.url, warning.file) == (URLS[1], path.name)
    assert "http://gone.test/" in warning.reason
    last = crashed.events[-1]
    assert (last.event, last.links) == (EventName.RECOVERED, 7)
    assert "1 record that could not be placed" in last.reason


def test_a_url_that_was_never_admitted_is_left_and_later_ones_are_finished(tmp_path: Path) -> None:
    crashed = crashed_with(tmp_path, [URLS[0], "http://h.test/stranger", URLS[2]])
    crashed.recover()
    assert crashed.stored() == [URLS[0], "http://h.test/stranger", URLS[2]]
    assert crashed.row(URLS[2]).state is UrlState.DONE
    (warning,) = warnings(crashed)
    assert warning.url == "http://h.test/stranger"


def test_the_file_is_closed_and_recovery_is_over(tmp_path: Path) -> None:
    crashed = crashed_with(tmp_path, repeats="http://gone.test/")
    crashed.recover()
    (path,) = crashed.folder.archive.iterdir()
    assert path.suffix == ".gz"
    (part,) = (crashed.folder.index / "parts").iterdir()
    assert len(part.read_text().splitlines()) == 8
    assert unfinished_files(crashed.folder.archive, crashed.ledger.archive_ends()) == []
    events = len(crashed.events)
    crashed.recover()
    assert len(crashed.events) == events


def test_a_page_comes_before_those_that_were_found_on_it_whatever_their_files(tmp_path: Path) -> None:
    crashed = CrashedFolder(tmp_path / "crawl", URLS[:1])
    found_by, found = crashed.writer(5), crashed.writer(2)
    crashed.store(found_by, URLS[0], LINK)
    crashed.store(found, "http://h.test/found")
    crashed.recover()
    assert crashed.row("http://h.test/found").state is UrlState.DONE
    assert warnings(crashed) == []


def test_a_revisit_of_a_page_that_is_recovered_too_is_finished(tmp_path: Path) -> None:
    crashed = CrashedFolder(tmp_path / "crawl", URLS)
    writer = crashed.writer()
    crashed.store(writer, URLS[0], b"<p>twice</p>")
    crashed.store(writer, URLS[1], b"<p>twice</p>", repeats=URLS[0])
    crashed.recover()
    assert crashed.row(URLS[1]).state is UrlState.DONE
    assert crashed.row(URLS[1]).duplicate_of == link_to(URLS[0]).id


def test_robots_txt_and_finished_pages_are_settled(tmp_path: Path) -> None:
    crashed = CrashedFolder(tmp_path / "crawl", URLS)
    writer = crashed.writer()
    crashed.store(writer, "http://h.test/robots.txt", b"User-agent: *\nCrawl-delay: 7\n")
    crashed.store(writer, URLS[0])
    crashed.store(writer, URLS[0])
    crashed.recover()
    assert warnings(crashed) == []
    assert crashed.row(URLS[0]).visits == 1
    (robots,) = crashed.ledger.robots(link_to(URLS[0]).id[:8])
    assert b"Crawl-delay: 7" in robots.body


def test_a_page_that_is_fetched_again_stands_twice_and_the_catalog_names_the_newer(tmp_path: Path) -> None:
    crashed = crashed_with(tmp_path, URLS[:2], repeats="http://gone.test/")
    crashed.recover()
    writer = crashed.writer(1)
    crashed.store(writer, URLS[1])
    crashed.recover()
    assert crashed.stored() == [URLS[0], URLS[1], URLS[1]]
    archived = crashed.row(URLS[1]).archived
    assert archived is not None
    assert "-01-" in archived.file


def test_verify_notes_what_could_not_be_placed_and_mend_leaves_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crashed = crashed_with(tmp_path, [*URLS, "http://h.test/stranger"], repeats="http://gone.test/")
    crashed.recover()
    crashed.folder.write("crawl.toml", b"")
    write_events(crashed.folder.events, "1", crashed.events)
    assert len(unplaced_records(crashed.folder.events)) == 2
    crashed.ledger.close()
    crashed.folder.release()
    for option in ([], ["--mend"], []):
        status, out, _ = said(capsys, "verify", crashed.folder.path, *option)
        assert (status, "2 captures that recovery could not place" in out) == (0, True), out
    assert crashed.stored() == [*URLS, "http://h.test/stranger"]


# -- torn records, empty files ----------------------------------------------------------------------


def test_only_a_torn_last_record_is_cut_off(tmp_path: Path) -> None:
    crashed = crashed_with(tmp_path, repeats="http://gone.test/")
    (path,) = crashed.folder.archive.iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    crashed.recover()
    assert crashed.stored() == URLS[:-1]
    assert crashed.row(URLS[-1]).state is UrlState.QUEUED
    (told,) = [event for event in crashed.events if event.event is EventName.RECOVERED and path.name in event.reason]
    assert "cut off" in told.reason


@pytest.mark.parametrize("content", [b"", b"\0\0\0", b"\x1f\x8b"])
def test_a_file_of_which_nothing_is_left_goes_away(tmp_path: Path, content: bytes) -> None:
    crashed = CrashedFolder(tmp_path / "crawl", URLS)
    (crashed.folder.archive / "crawl-1-00-00000.warc.gz.open").write_bytes(content)
    crashed.recover()
    assert list(crashed.folder.archive.iterdir()) == []
    assert list(crashed.folder.index.glob("parts/*")) == []
    assert crashed.ledger.archive_ends() == {"crawl-1-00-00000.warc.gz": 0}


def test_a_file_with_nothing_but_its_warcinfo_goes_away(tmp_path: Path) -> None:
    crashed = crashed_with(tmp_path)
    (path,) = crashed.folder.archive.iterdir()
    info = next(iter(ArchiveReader(path)))
    path.write_bytes(path.read_bytes()[: info.length])
    crashed.recover()
    assert list(crashed.folder.archive.iterdir()) == []


def test_a_copy_that_a_killed_recovery_left_is_removed(tmp_path: Path) -> None:
    crashed = crashed_with(tmp_path)
    (crashed.folder.archive / "crawl-1-00-00000.rewritten").write_bytes(b"half a copy")
    crashed.recover()
    assert crashed.stored() == URLS
    assert [path.suffix for path in crashed.folder.archive.iterdir()] == [".gz"]


# -- a dead worker ----------------------------------------------------------------------------------


def test_what_a_dead_worker_had_stored_becomes_results_of_its_tasks(tmp_path: Path) -> None:
    crashed = CrashedFolder(tmp_path / "crawl", [])
    writer = crashed.writer(3)
    crashed.crawl.add_seeds([link_to(url) for url in URLS[:2]], 0.0)
    tasks = [crashed.crawl.adopt(link_to(url), 0.0) for url in URLS[:2]]
    assert all(tasks)
    crashed.store(writer, URLS[0])
    crashed.store(writer, URLS[1], repeats="http://gone.test/")
    crashed.store(writer, URLS[5])
    (result,) = crashed.recovery().rescue(3)
    assert tasks[0] is not None
    assert result.task_id == tasks[0].id
    assert crashed.stored() == [URLS[0], URLS[1], URLS[5]]
    assert [path.suffix for path in crashed.folder.archive.iterdir()] == [".gz"]
    assert [warning.url for warning in warnings(crashed)] == [URLS[1]]


# -- pages of another owner -------------------------------------------------------------------------


class SharedPlacing:
    """A ledger that credits some pages to another owner."""

    def __init__(self, elsewhere: set[str]) -> None:
        self._elsewhere = elsewhere
        self.stored: dict[str, ArchiveSpan] = {}

    def identified(self, link: Link, *, is_requisite: bool) -> Link:
        assert not is_requisite
        return link

    def find(self, link: Link, *, is_requisite: bool = False) -> KnownUrl:
        assert not is_requisite
        return KnownUrl.ELSEWHERE if link.url in self._elsewhere else KnownUrl.QUEUED

    def adopt(self, link: Link) -> FetchTask | None:
        return FetchTask(
            URLS.index(link.url), FetchKind.PAGE, link.url, link.id, "h.test", ("192.0.2.1",), 0, 0, 0, START
        )

    def original(self, url: str) -> ArchiveSpan | None:
        return self.stored.get(url)

    def complete(self, result: Result) -> None:
        assert result.archived is not None
        self.stored[URLS[result.task_id]] = result.archived


@pytest.mark.parametrize("elsewhere", [{0}, {7}, {0, 1}, {1, 3, 4}, set(range(7))])
def test_records_of_pages_that_another_owner_has_are_removed(tmp_path: Path, elsewhere: set[int]) -> None:
    crashed = CrashedFolder(tmp_path / "crawl", URLS)
    writer = crashed.writer()
    kept = [url for number, url in enumerate(URLS) if number not in elsewhere]
    for url in URLS:
        # A revisit reads its original at the place that it has while records are still to be removed.
        is_revisit = url in kept[1:]
        crashed.store(writer, url, b"<p>all the same</p>", repeats=kept[0] if is_revisit else "")
    (path,) = crashed.folder.archive.iterdir()
    placing = SharedPlacing({URLS[number] for number in elsewhere})
    rules = ReadingRules(WorkerRules(), 1 << 20, ArchiveFiles(crashed.folder.archive))
    stored = StoredResults([recover(path, 0)], placing, rules)
    for result in stored:
        placing.complete(result)
        assert result.words == 3
    assert stored.unplaced == []
    assert [record.url for record in stored.removed] == [URLS[number] for number in sorted(elsewhere)]
    assert crashed.stored() == kept
    assert verify_file(path) == []
    for url, span in placing.stored.items():
        record = read_record(path, span.offset)
        assert record is not None
        assert (record.target, record.length) == (url, span.length)
    assert [entry.suffix for entry in crashed.folder.archive.iterdir()] == [".open"]


def test_a_file_whose_pages_are_all_elsewhere_goes_away(tmp_path: Path) -> None:
    crashed = crashed_with(tmp_path)
    (path,) = crashed.folder.archive.iterdir()
    rules = ReadingRules(WorkerRules(), 1 << 20, ArchiveFiles(crashed.folder.archive))
    list(StoredResults([recover(path, 0)], SharedPlacing(set(URLS)), rules))
    assert close_file(path, crashed.folder.index) == 0
    assert list(crashed.folder.archive.iterdir()) == []


def test_what_is_committed_is_not_moved_by_a_removal(tmp_path: Path) -> None:
    crashed = crashed_with(tmp_path)
    (path,) = crashed.folder.archive.iterdir()
    records = [record for record in ArchiveReader(path) if record.type == "response"]
    committed = records[2].offset + records[2].length
    before = path.read_bytes()[:committed]
    rules = ReadingRules(WorkerRules(), 1 << 20, ArchiveFiles(crashed.folder.archive))
    placing = SharedPlacing({URLS[0], URLS[4]})
    results = list(StoredResults([recover(path, committed)], placing, rules))
    assert path.read_bytes().startswith(before)
    assert [URLS[result.task_id] for result in results] == [URLS[3], *URLS[5:]]
    assert crashed.stored() == [*URLS[:4], *URLS[5:]]
