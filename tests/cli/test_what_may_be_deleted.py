"""What docs/upgrading.md says about parts of a crawl folder that are deleted, copied, or of another version."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import lmdb
import pytest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.cli.main import main
from gossamer.core.ledger import rows
from gossamer.model.errors import UsageError
from gossamer.reading.folder import CrawlReader
from tests.reading.folders import Crawled, finished, small_web, stopped

__all__ = ["finished", "small_web", "stopped"]


def pages_in(folder: Path) -> int:
    with CrawlReader(folder) as crawl:
        return (crawl.ledger.crawl_state() or pytest.fail("no state")).totals.pages


def test_a_deleted_index_is_rebuilt_from_the_archive(finished: Crawled, tmp_path: Path) -> None:
    folder = finished.copied(tmp_path / "crawl")
    index = (folder / "index" / "index.cdxj").read_bytes()
    shutil.rmtree(folder / "index")
    assert main(["verify", str(folder)]) == 1
    assert main(["verify", str(folder), "--mend"]) == 0
    assert (folder / "index" / "index.cdxj").read_bytes() == index


def test_a_deleted_report_is_written_when_a_run_ends(finished: Crawled, tmp_path: Path) -> None:
    folder = finished.copied(tmp_path / "crawl")
    for report in folder.glob("report.*"):
        report.unlink()
    assert main(["verify", str(folder)]) == 0
    assert main(["resume", str(folder)]) == 0
    assert {path.name for path in folder.glob("report.*")} == {"report.html", "report.json"}


def test_without_its_events_a_crawl_agrees_and_keeps_its_counts(
    finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = finished.copied(tmp_path / "crawl")
    shutil.rmtree(folder / "events")
    assert main(["verify", str(folder)]) == 0
    assert main(["resume", str(folder)]) == 0
    assert pages_in(folder) == finished.summary.pages
    capsys.readouterr()
    assert main(["report", str(folder)]) == 0
    assert f"pages     {finished.summary.pages} " in capsys.readouterr().out


def test_a_deleted_ledger_is_rebuilt_with_all_pages(finished: Crawled, tmp_path: Path) -> None:
    folder = finished.copied(tmp_path / "crawl")
    shutil.rmtree(folder / "state")
    (folder / "seeds.txt").unlink()
    assert main(["verify", str(folder), "--mend"]) == 0
    assert pages_in(folder) == finished.summary.pages


def test_the_pages_of_a_deleted_archive_are_named_as_missing(
    finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = finished.copied(tmp_path / "crawl")
    shutil.rmtree(folder / "archive")
    assert main(["verify", str(folder)]) == 1
    assert "no record of it" in capsys.readouterr().out


def test_a_copy_of_the_ledger_before_the_rest_is_one_that_can_be_continued(stopped: Crawled, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    (copy / "state").mkdir(parents=True)
    with lmdb.open(str(stopped.path / "state"), readonly=True, max_dbs=100) as ledger:
        ledger.copy(str(copy / "state"))
    for part in ("archive", "index", "events"):
        shutil.copytree(stopped.path / part, copy / part)
    for part in ("crawl.toml", "seeds.txt"):
        shutil.copy(stopped.path / part, copy / part)
    assert main(["verify", str(copy)]) == 0
    assert pages_in(copy) == stopped.summary.pages


@pytest.mark.parametrize(("number", "writer"), [(b"1", "an earlier version"), (b"4", "a later version")])
def test_a_ledger_of_another_format_is_refused_and_left_as_it_is(
    finished: Crawled, tmp_path: Path, number: bytes, writer: str
) -> None:
    folder = finished.copied(tmp_path / "crawl")
    with lmdb.open(str(folder / "state"), max_dbs=100) as ledger, ledger.begin(write=True) as change:
        change.put(rows.FORMAT_KEY, number, db=ledger.open_db(b"meta", change))
    for is_readonly in (True, False):
        with (
            closing(LocalLedger(folder / "state", is_readonly=is_readonly)) as found,
            pytest.raises(UsageError) as error,
        ):
            found.open()
        assert f"ledger format {number.decode()}, written by {writer}" in str(error.value)
