"""What is written: archive, files, events, reports, ledger (W), and validators that lie (C03)."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from gossamer.core.url.forms import canonical
from gossamer.model.exchanges import Exchange
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.runtime.session.clock import TimeLine
from gossamer.runtime.workers.answers import WorkerRules, read_answer
from tests.e2e.program import run
from tests.hostile.catalogue_pages import INJECTIONS, TITLES
from tests.hostile.crawling import Aftermath


def test_w01_file_names_come_from_hashes(after: Aftermath) -> None:
    assert len(after.rows("w01")) == 7
    files = [path.relative_to(after.out / "files") for path in (after.out / "files").rglob("*") if path.is_file()]
    mine = [path for path in files if path.parts[0] == "w01.test"]
    assert len(mine) == 7
    for path in files:
        assert len(path.parts) == 2
        assert path.name.endswith(".html")
        assert set(path.stem) <= set("0123456789abcdef")
    assert {path.name for path in after.out.iterdir()} <= {
        "crawl.toml", "state", "archive", "index", "events", "files", "report.json", "report.html", "lock", "seeds.txt",
    }  # fmt: skip


def test_w02_nothing_adds_a_record(after: Aftermath) -> None:
    ours = [(record.type, record.target) for record in after.records()]
    theirs, fast = [], []
    for path in sorted((after.out / "archive").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                theirs.append((record.rec_type, record.rec_headers.get_header("WARC-Target-URI") or ""))
        with path.open("rb") as file:
            fast += [each.headers.get("WARC-Target-URI") or "" for each in FastIterator(file, parse_http=False)]
    assert [(kind, target or "") for kind, target in theirs] == [(kind, target or "") for kind, target in ours]
    assert fast == [target or "" for _, target in ours]
    assert sum("w02.test" in target for _, target in ours if target) == 2 * (1 + len(after.rows("w02")))
    assert not any("\r" in (target or "") or "\n" in (target or "") for _, target in ours)


def test_w03_copies_are_stored_once(after: Aftermath) -> None:
    rows = [row for row in after.rows("w03") if "copy" in row.url]
    assert len(rows) == 60
    kinds = [record.type for row in rows for record in after.archived("w03", "/" + row.url.rpartition("/")[2])]
    assert kinds == ["revisit"] * 60
    assert all(row.duplicate_of for row in rows)
    done = run("verify", str(after.out))
    assert done.returncode == 0, done.stdout + done.stderr


def test_w06_a_clock_that_jumps_changes_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    line = TimeLine.begin()
    real = time.time
    seen = []
    for jump_s in (0, 365 * 86_400, -3600, -1e9):
        monkeypatch.setattr(time, "time", lambda jump_s=jump_s: real() + jump_s)
        seen.append(line.now())
    assert all(0 <= later - earlier < 1 for earlier, later in pairwise(seen))


def test_w07_titles_are_text_wherever_they_are_shown(after: Aftermath) -> None:
    titles = {row.title for row in after.rows("w07")}
    assert {title.strip("\u202e") for title in TITLES} <= {title.strip("\u202e") for title in titles}
    report = (after.out / "report.html").read_text("utf-8")
    assert "onerror=alert(1)>" not in report
    assert "</script><script>alert" not in report
    assert "Content-Security-Policy" in report
    shown = run("why", str(after.out), after.url("w07", "/4")).stdout
    assert "\u202e" not in shown
    for path in after.out.rglob("*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            json.loads(line)
    json.loads((after.out / "report.json").read_text("utf-8"))


def test_w08_addresses_are_data(after: Aftermath) -> None:
    wanted = {canonical(after.url("w08", href)) for href in INJECTIONS}
    rows = {row.url: row for row in after.rows("w08")}
    assert wanted <= set(rows)
    assert all(rows[url].outcome == "ok" for url in wanted if url)
    shown = run("why", str(after.out), after.url("w08", INJECTIONS[0]))
    assert shown.returncode == 0, shown.stderr


ORDER = FetchTask(1, FetchKind.PAGE, "http://a.test/", b"", "a.test", ("127.0.0.1",), 0, 0, 0, 0.0)


def read(**headers: str) -> Result:
    exchange = Exchange(
        "http://a.test/", Outcome.OK, status=200, headers=[*headers.items()], content=b"<p>x", body=b"<p>x"
    )
    return read_answer(ORDER, exchange, WorkerRules())


@pytest.mark.parametrize("etag", ['"a"', 'W/"a"', '""'])
def test_c03_a_sound_entity_tag_is_kept(etag: str) -> None:
    assert read(etag=etag).etag == etag


@pytest.mark.parametrize(
    "etag", ["a", '"a\r\nX: y"', '"' + "x" * 1_000_000 + '"', '"\x00"', '"é"', 'W/a"', '"', '"a"b"']
)
def test_c03_no_other_is_echoed(etag: str) -> None:
    assert read(etag=etag).etag == ""


def test_c03_the_content_decides_what_has_changed() -> None:
    first, second = read(etag='"1"'), read(etag='"2"')
    assert first.content_hash == second.content_hash


def test_c03_a_date_is_echoed_only_if_it_can_be_one() -> None:
    assert read(**{"last-modified": "Sun, 06 Nov 1994 08:49:37 GMT"}).last_modified
    assert not read(**{"last-modified": "x" * 100}).last_modified
    assert not read(**{"last-modified": "\x1b[2J"}).last_modified


def test_nothing_is_written_outside_the_folder(after: Aftermath) -> None:
    beside = {path.name for path in after.out.parent.iterdir()}
    assert beside == {after.out.name}
    assert not Path("/etc/cron.d/x").exists()
