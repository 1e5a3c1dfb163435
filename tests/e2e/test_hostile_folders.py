"""A crawl folder that somebody else has made: nothing outside of it is read, cut off, moved or overwritten."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import msgspec
import pytest

from gossamer.core.ledger.rows import decode_url, encode
from gossamer.model.records import ArchiveSpan, UrlState
from gossamer.sim.web.web import preset
from tests.e2e.program import crawl, run
from tests.servers.web import RunningWeb

SECRET = "what nobody but the operator may read"
_RECORD = (
    "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
    "WARC-Target-URI: http://other.test/\r\nContent-Type: application/http; msgtype=response\r\n"
    "Content-Length: {}\r\n\r\n"
)


class Made:
    """A crawl, copies of it, and a file and an archive of somebody else beside them."""

    def __init__(self, folder: Path, url: str) -> None:
        self.crawl = folder / "crawl"
        self.url = url

    def copied(self, path: Path) -> Path:
        shutil.copytree(self.crawl, path / "copy")
        outside = path / "outside"
        outside.mkdir()
        (outside / "secret").write_text(SECRET)
        body = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>{SECRET}</title>{SECRET}".encode()
        record = _RECORD.format(len(body)).encode() + body + b"\r\n\r\n"
        (outside / "other.warc.gz").write_bytes(gzip.compress(record))
        return path / "copy"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("made")
    with RunningWeb(preset("small", pages=30, slow=0.0)) as web:
        crawl(web, folder / "crawl", 0)
        yield Made(folder, web.seeds()[0])


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _first(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


def _link(place: Path, to: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(to)


Change = Callable[[Path, Path], None]
LINKS: dict[str, Change] = {
    "the lock": lambda crawl, outside: _link(crawl / "state" / "owner", outside / "secret"),
    "a temporary file": lambda crawl, outside: _link(crawl / ".crawl.toml.tmp", outside / "secret"),
    "an archive file": lambda crawl, outside: _link(_first(crawl, "archive/*.warc.gz"), outside / "other.warc.gz"),
    "an open archive file": lambda crawl, outside: _link(crawl / "archive" / "x.warc.gz.open", outside / "secret"),
    "the archive": lambda crawl, outside: _link(crawl / "archive", outside),
    "the list of objects": lambda crawl, outside: _link(crawl / "archive" / "objects.jsonl", outside / "secret"),
    "an event file": lambda crawl, outside: _link(crawl / "events" / "zzz.jsonl", outside / "secret"),
    "the index": lambda crawl, outside: _link(crawl / "index", outside),
    "a report": lambda crawl, outside: _link(crawl / "report.html", outside / "secret"),
    "what is not there yet": lambda crawl, outside: _link(crawl / "search.sqlite", outside / "new"),
}


def _runs(crawl: Path, url: str) -> Iterator[list[str]]:
    folder = str(crawl)
    yield ["resume", folder, "--max-time", "0.5"]
    yield ["verify", folder, "--mend"]
    yield ["export", folder, "--format", "jsonl"]
    yield ["why", folder, url]
    yield ["audit", folder]
    yield ["report", folder]


@pytest.mark.parametrize("place", LINKS)
def test_a_link_in_a_crawl_folder_is_not_followed(made: Made, tmp_path: Path, place: str) -> None:
    crawl = made.copied(tmp_path)
    outside = tmp_path / "outside"
    LINKS[place](crawl, outside)
    before = _files(outside)
    for words in _runs(crawl, made.url):
        done = run(*words)
        assert done.returncode == 2, (words, done.stdout, done.stderr)
        assert len(done.stderr.splitlines()) == 1
        assert "a symbolic link to" in done.stderr
        assert SECRET not in done.stdout + done.stderr
        assert _files(outside) == before, words


def test_a_crawl_folder_is_used_through_a_link_to_it_and_with_a_list_of_the_operators(
    made: Made, tmp_path: Path
) -> None:
    crawl = made.copied(tmp_path)
    (tmp_path / "outside" / "blocked").write_text("blocked.test\n")
    _link(crawl / "blocked.txt", tmp_path / "outside" / "blocked")
    (tmp_path / "link").symlink_to(crawl)
    for words in _runs(tmp_path / "link", made.url):
        done = run(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)


def _pipe(crawl: Path) -> None:
    os.mkfifo(crawl / "events" / "zzz.jsonl")


def _hole(crawl: Path) -> None:
    with _first(crawl, "archive/*.warc.gz").open("ab") as file:
        file.truncate(2 << 30)


def _hole_of_settings(crawl: Path) -> None:
    with (crawl / "crawl.toml").open("ab") as file:
        file.truncate(2 << 30)


@pytest.mark.parametrize(("change", "expected"), [
    (_pipe, "neither a file nor a folder"),
    (_hole, "nearly none are stored"),
    (_hole_of_settings, "nearly none are stored"),
])  # fmt: skip
def test_what_would_be_read_for_ever_is_refused(
    made: Made, tmp_path: Path, change: Callable[[Path], None], expected: str
) -> None:
    crawl = made.copied(tmp_path)
    change(crawl)
    for words in _runs(crawl, made.url):
        done = run(*words)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), (words, done.stderr)
        assert expected in done.stderr


def _changed_rows(crawl: Path, file: str) -> None:
    """Have the rows of pages name an archive file elsewhere."""
    with lmdb.open(str(crawl / "state"), max_dbs=100) as store:
        urls = store.open_db(b"urls")
        with store.begin(write=True) as changes:
            for key, value in list(changes.cursor(urls)):
                record = decode_url(value)
                if record.state is UrlState.DONE and record.archived is not None:
                    record.archived = ArchiveSpan(file, 0, record.archived.length)
                    changes.put(key, encode(record), db=urls)


@pytest.mark.parametrize("is_absolute", [False, True])
def test_rows_that_name_an_archive_file_elsewhere_read_nothing_there(
    made: Made, tmp_path: Path, is_absolute: bool
) -> None:
    crawl = made.copied(tmp_path)
    place = tmp_path / "outside" / "other.warc.gz" if is_absolute else "../../outside/other.warc.gz"
    _changed_rows(crawl, str(place))
    for words in (
        ["export", str(crawl), "--format", "csv", "--with-text"],
        ["why", str(crawl), made.url],
        ["verify", str(crawl)],
    ):
        done = run(*words)
        assert done.returncode in (0, 1, 2), done.stderr
        assert "Traceback" not in done.stderr
        assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("words", [["verify"], ["resume"], ["export", "--format", "csv"]])
def test_a_ledger_that_names_archive_files_elsewhere_is_damaged(made: Made, tmp_path: Path, words: list[str]) -> None:
    crawl = made.copied(tmp_path)
    with lmdb.open(str(crawl / "state"), max_dbs=100) as store, store.begin(write=True) as changes:
        changes.put(b"../../outside/secret", bytes(8), db=store.open_db(b"archives", txn=changes))
    done = run(words[0], str(crawl), *words[1:])
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert "'../../outside/secret', which is elsewhere" in done.stderr
    assert (tmp_path / "outside" / "secret").read_text() == SECRET


@pytest.mark.parametrize("line", [
    '{"name":"../../outside/secret","size":5,"sha256":"","tag":""}',
    "[[[[",
])  # fmt: skip
def test_a_list_of_objects_that_names_other_places_is_damaged(made: Made, tmp_path: Path, line: str) -> None:
    crawl = made.copied(tmp_path)
    (crawl / "archive" / "objects.jsonl").write_text(line + "\n")
    for words in (["resume", str(crawl)], ["verify", str(crawl), "--mend"]):
        done = run(*words)
        assert done.returncode == 1, (words, done.stderr)
        assert "objects.jsonl" in done.stderr + done.stdout
        assert "Traceback" not in done.stderr


def test_events_that_nobody_could_have_written_are_skipped(made: Made, tmp_path: Path) -> None:
    crawl = made.copied(tmp_path)
    events = _first(crawl, "events/*.jsonl")
    honest = run("audit", str(crawl), "--json").stdout
    with events.open("a") as file:
        file.write("[" * 3_000_000 + "\n" + '{"event":' * 500_000 + "\n[]\n7\nnull\n")
        file.write('{"event":5,"url":[],"ts":"x"}\n{"event":"' + "x" * 40_000_000 + '"}\n')
    for words in (["audit", str(crawl), "--json"], ["why", str(crawl), made.url], ["report", str(crawl)]):
        done = run(*words)
        assert done.returncode == 0, (words, done.stderr)
    found = json.loads(run("audit", str(crawl), "--json").stdout)
    assert found == msgspec.json.decode(honest)


@pytest.mark.parametrize("verb", ["status", "resume", "audit"])
def test_settings_that_are_nested_for_ever_are_a_line(made: Made, tmp_path: Path, verb: str) -> None:
    crawl = made.copied(tmp_path)
    (crawl / "crawl.toml").write_text("x = " + "[" * 100_000)
    done = run(verb, str(crawl))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "crawl.toml" in done.stderr
