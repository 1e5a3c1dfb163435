"""`gossamer migrate`: what it says, and what it refuses, each in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer.backends.redis.shared_ledger import RedisSharedLedger
from gossamer.core.ledger.tables import SEEDS
from gossamer.engine.admission.seed_rules import MAX_SHARED
from gossamer.model.state import CrawlState, Reread, SeedRecord
from gossamer.ports.shared_ledger import NodeId
from gossamer.reading.node_folders import NODE_FILE
from gossamer.settings.seeds import seeds_from
from tests.reading.folders import Crawled, is_one_line, ledger_of, owned, said, small_web, stopped  # noqa: F401
from tests.servers import engines
from tests.servers.redis import RedisServer, free_port, running

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    program = engines.valkey()
    with running(program, tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def copy(stopped: Crawled, tmp_path: Path) -> Path:  # noqa: F811
    """A stopped crawl that a test may change."""
    return stopped.copied(tmp_path / "crawl")


@pytest.fixture
def url(server: RedisServer, request: pytest.FixtureRequest) -> str:
    """A name in the ledger that nobody else uses."""
    return f"{server.url}/{request.node.name[:90].replace('[', '.').replace(']', '')}"


def check_refused(capsys: Output, *words: object, says: str, status: int = 2) -> None:
    done, out, err = said(capsys, *words)
    assert (done, out) == (status, ""), err
    assert says in err
    assert is_one_line(err), err


def test_the_result_names_tables_rows_and_what_to_do_next(copy: Path, url: str, tmp_path: Path, capsys: Output) -> None:
    status, out, err = said(capsys, "migrate", copy, url)
    assert (status, err) == (0, "")
    assert f"{copy} -> {url}" in out
    assert "urls" in out
    assert "rows/s" in out
    assert out.splitlines()[-1].endswith(f"gossamer join {url} -o {copy}")
    status, out, err = said(capsys, "migrate", url, tmp_path / "back", "--json")
    done = json.loads(out)
    assert (status, err, done["is_complete"], done["differences"]) == (0, "", True, [])
    by_name = {table["name"]: table["rows"] for table in done["tables"]}
    assert done["rows"] == sum(by_name.values()) == done["copied"] + by_name["archives"]
    assert done["file_bytes"] > 0
    assert done["rows_per_second"] > 0
    assert {"urls", "queue", "hosts", "contents", "signatures"} <= by_name.keys()


def test_a_source_that_runs_or_is_none_is_refused(
    copy: Path, url: str, server: RedisServer, tmp_path: Path, capsys: Output
) -> None:
    with owned(copy):
        check_refused(capsys, "migrate", copy, url, says="in use by process")
    check_refused(capsys, "migrate", tmp_path / "none", url, says="no such folder")
    check_refused(capsys, "migrate", tmp_path, url, says="not a crawl folder")
    check_refused(capsys, "migrate", f"{server.url}/none", tmp_path / "to", says="there is no crawl none")
    check_refused(capsys, "migrate", copy, "redis://x/books", says="not a ledger URL")
    nobody = f"redis://127.0.0.1:{free_port()}/0/books"
    check_refused(capsys, "migrate", copy, nobody, says="Redis cannot be reached")
    check_refused(capsys, "migrate", copy, tmp_path / "to", says="cp -a FROM TO")
    said(capsys, "migrate", copy, url)
    ledger = RedisSharedLedger(server.client(), url.rpartition("/")[2])
    ledger.join(NodeId("a", "1"), "", 60.0)
    check_refused(capsys, "migrate", url, tmp_path / "to", says="nodes are alive (a); stop them first: gossamer stop")
    ledger.close()


def test_a_crawl_that_was_killed_is_resumed_first(copy: Path, url: str, capsys: Output) -> None:
    change_state(copy, is_running=True)
    check_refused(capsys, "migrate", copy, url, says=f"its last run was killed; 'gossamer resume {copy}'")


def change_state(folder: Path, **fields: object) -> None:
    with ledger_of(folder) as ledger:
        ledger.put_crawl_state(replace(ledger.crawl_state() or CrawlState(), **fields))


def test_what_nodes_cannot_share_does_not_move(
    stopped: Crawled,  # noqa: F811
    url: str,
    tmp_path: Path,
    capsys: Output,
) -> None:
    seeds, rereads, node = (stopped.copied(tmp_path / name) for name in ("seeds", "rereads", "node"))
    with ledger_of(seeds) as ledger:
        for number in range(1, MAX_SHARED + 2):
            ledger.put_record(SEEDS, SeedRecord(f"http://a.example/{number}", number, depth=1))
    check_refused(capsys, "migrate", seeds, url, says="20001 seeds have a scope, a depth or metadata of their own")
    change_state(rereads, reread=Reread(1, 2.0))
    check_refused(capsys, "migrate", rereads, url, says="pages are being read again")
    (node / "state" / NODE_FILE).write_text("a 1\n")
    check_refused(capsys, "migrate", node, url, says="the folder of a node")


def test_a_target_that_is_something_else_is_refused(copy: Path, url: str, tmp_path: Path, capsys: Output) -> None:
    said(capsys, "migrate", copy, url)
    check_refused(capsys, "migrate", copy, url, says="there is such a crawl already; choose another name")
    check_refused(capsys, "migrate", url, copy, says="contains a crawl already")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    check_refused(capsys, "migrate", url, tmp_path / "other", says="contains something other than a crawl")
    check_refused(capsys, "migrate", url, tmp_path / "other" / "letter.txt", says="is a file")
    check_refused(capsys, "migrate", copy, url, "--allow-missing", says="are for a copy to a folder")
    check_refused(capsys, "migrate", url, tmp_path / "to", "--node-folder", "z=/tmp", says="no such node")


def test_archives_that_cannot_be_reached_are_an_error_unless_that_is_allowed(
    copy: Path, url: str, tmp_path: Path, capsys: Output
) -> None:
    said(capsys, "migrate", copy, url)
    away, to = tmp_path / "away", tmp_path / "to"
    copy.rename(away)
    check_refused(capsys, "migrate", url, to, says="archive files cannot be reached", status=1)
    assert not to.exists()
    status, _, err = said(capsys, "migrate", url, tmp_path / "named", "--node-folder", f"origin={away}")
    assert (status, err) == (0, "")
    assert said(capsys, "verify", tmp_path / "named")[0] == 0
    status, out, _ = said(capsys, "migrate", url, to, "--allow-missing")
    assert status == 0
    assert "note: " in out
    assert "pages in them are in the catalog, but cannot be read" in out
    status, out, _ = said(capsys, "verify", to)
    assert status == 1
    assert "is missing, but" in out


def test_a_node_takes_no_folder_that_has_another_crawl(
    stopped: Crawled,  # noqa: F811
    copy: Path,
    url: str,
    tmp_path: Path,
    capsys: Output,
) -> None:
    said(capsys, "migrate", copy, url)
    other = stopped.copied(tmp_path / "other")
    change_state(other, saved_at=1.0)
    before = sorted(other.rglob("*"))
    check_refused(capsys, "join", url, "-o", other, "--node", "a", says="contains a crawl of its own")
    assert sorted(other.rglob("*")) == before
    check_refused(capsys, "join", url, "-o", tmp_path / "new", "--node", "origin", says="choose another")
    shutil.rmtree(other)


def test_opt_outs_and_private_addresses_move_too(
    copy: Path, url: str, server: RedisServer, tmp_path: Path, capsys: Output
) -> None:
    (copy / "blocked.txt").write_text("# by mail\nno.example\nhttp://never.example/\n")
    change_state(copy, opened_addresses=["127.0.0.9"])
    said(capsys, "migrate", copy, url)
    ledger = RedisSharedLedger(server.client(), url.rpartition("/")[2])
    record = ledger.record()
    ledger.close()
    assert record is not None
    assert (record.blocked, record.opened) == ({"origin": ["never.example", "no.example"]}, ["127.0.0.9"])
    assert seeds_from(record.scope)
    said(capsys, "migrate", url, tmp_path / "back")
    assert (tmp_path / "back" / "blocked.txt").read_text().split() == ["never.example", "no.example"]
    with ledger_of(tmp_path / "back") as back:
        state = back.crawl_state()
    assert state is not None
    assert state.opened_addresses == ["127.0.0.9"]
