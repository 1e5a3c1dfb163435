"""A crawl is copied completely, or not at all: wherever it dies, the next attempt completes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.memory.shared_ledger import MemorySharedLedger
from gossamer.control.copied_folder import complete_copy
from gossamer.control.record import own_terms
from gossamer.core.ledger import rows
from gossamer.core.ledger.tables import SEEDS
from gossamer.core.url.forms import link_to, origin_of
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.cluster.link_messages import LinkMessage, NodeMessage, encode_message
from gossamer.foundation import failpoints
from gossamer.migration import folder_source, folder_target, ledger_source
from gossamer.migration.checksums import source_parts, sums_of
from gossamer.migration.folder_source import FolderSource
from gossamer.migration.folder_target import FolderPlan, FolderTarget
from gossamer.migration.ledger_target import LedgerTarget
from gossamer.migration.parts import ARCHIVES, NODES
from gossamer.migration.run import Migrated
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.figures import Totals
from gossamer.model.records import FetchKind, Source, UrlState
from gossamer.model.state import ORIGIN_NODE, SeedRecord
from gossamer.ports.shared_ledger import Commit, NodeId
from gossamer.reading.folder import CrawlReader
from gossamer.runtime.cluster.seat import check_terms
from gossamer.verify.checks import find_problems
from tests.migration.crawls import (
    NOW,
    Tables,
    between,
    changed,
    ledger_source_of,
    memory_ledger,
    run,
    shared_tables,
    tables,
    to_folder,
    to_ledger,
)
from tests.reading.folders import Crawled, ledger_of, small_web, stopped  # noqa: F401 - fixtures


@pytest.fixture(autouse=True)
def small_lots(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have many steps in a small crawl, and no failpoint left behind."""
    monkeypatch.setattr(folder_source, "LOT_ROWS", 40)
    monkeypatch.setattr(ledger_source, "LOT_ROWS", 40)
    monkeypatch.setattr(folder_target, "LOT_ROWS", 40)
    yield
    failpoints.arm("")


Attempt = Callable[[], Migrated]


def dies(attempt: Attempt, point: str, times: int) -> bool:
    """Attempt a migration that dies when it reaches a place for the n-th time; return whether it got there."""
    failpoints.arm(f"{point}:raise:{times}")
    try:
        attempt()
    except RuntimeError:
        return True
    finally:
        failpoints.arm("")
    return False


@pytest.mark.parametrize(("point", "steps"), [("before_mark", 15), ("after_node", 1), ("before_end", 1)])
def test_a_copy_to_a_ledger_survives_a_death_at_every_step(
    stopped: Crawled,  # noqa: F811
    point: str,
    steps: int,
) -> None:
    whole = memory_ledger()
    to_ledger(stopped.path, whole)
    for times in count(1):
        ledger = memory_ledger()
        if not dies(partial(to_ledger, stopped.path, ledger), point, times):
            break
        record = ledger.record()
        assert record is not None
        with pytest.raises(UsageError, match="not finished"):
            check_terms(record, own_terms())
        done = to_ledger(stopped.path, ledger)
        assert done.is_complete, done.differences
        assert done.copied < done.rows or times < 3, "it continues where it was"
        assert shared_tables(ledger) == shared_tables(whole)
    assert times > steps


@pytest.mark.parametrize(("point", "steps"), [("before_mark", 15), ("after_file", 1), ("before_end", 2)])
def test_a_copy_to_a_folder_survives_a_death_at_every_step(
    stopped: Crawled,  # noqa: F811
    tmp_path: Path,
    point: str,
    steps: int,
) -> None:
    ledger = memory_ledger()
    to_ledger(stopped.path, ledger)
    to_folder(ledger, tmp_path / "whole")
    for times in count(1):
        folder = tmp_path / str(times)
        if not dies(partial(to_folder, ledger, folder), point, times):
            break
        for use in (CrawlFolder(folder).require_crawl, CrawlFolder(folder).check_usable):
            with pytest.raises(UsageError, match="not finished"):
                use()
        done = to_folder(ledger, folder)
        assert done.is_complete, done.differences
        assert with_same_place(tables(folder)) == with_same_place(tables(tmp_path / "whole"))
    assert times > steps


def with_same_place(found: Tables) -> Tables:
    """Return rows without the path of the folder in them."""
    state = rows.decode_crawl(found["meta"][rows.CRAWL_KEY])
    assert state.figures is not None
    found["meta"][rows.CRAWL_KEY] = rows.encode(replace(state, figures=replace(state.figures, out="")))
    return found


# -- the comparison -------------------------------------------------------------------------------


def faulty_row(shared: MemorySharedLedger, table: str) -> tuple[dict[bytes, bytes], bytes]:
    """Return a table of a shard that has rows, and the key of one."""
    found = max((tables[table] for tables in shared._state.rows.values()), key=len)
    return found, next(iter(found))


@pytest.mark.parametrize("table", ["urls", "queue", "hosts", "domains", "robots", "changes", "shards"])
def test_a_row_that_is_missing_in_the_copy_is_found(stopped: Crawled, table: str) -> None:  # noqa: F811
    ledger = memory_ledger()
    assert dies(partial(to_ledger, stopped.path, ledger), "before_end", 1)
    found, key = faulty_row(ledger, table)
    del found[key]
    done = to_ledger(stopped.path, ledger)
    assert not done.is_complete
    assert [text for text in done.differences if text.startswith(f"{table}: ")] == done.differences
    assert "instead of" in done.differences[0]
    assert to_ledger(stopped.path, ledger).is_complete, "everything was copied anew"


@pytest.mark.parametrize("table", ["urls", "hosts", "shards"])
def test_a_row_that_is_different_in_the_copy_is_found(stopped: Crawled, table: str) -> None:  # noqa: F811
    ledger = memory_ledger()
    assert dies(partial(to_ledger, stopped.path, ledger), "before_end", 1)
    found, key = faulty_row(ledger, table)
    others = (value for rows_of_shard in ledger._state.rows.values() for value in rows_of_shard[table].values())
    other = next((value for value in others if value != found[key]), b"")
    found[key] = other or rows.encode(replace(rows.decode_shard(found[key]), next_seq=999_999))
    done = to_ledger(stopped.path, ledger)
    assert done.differences == [f"{table}: {len(shared_tables(ledger)[table])} rows, but not all of them are the same"]
    record = ledger.record()
    assert record is not None
    assert record.migration is not None, "the copy stays unfinished"


@pytest.mark.parametrize("table", ["contents", "signatures"])
def test_a_page_that_is_missing_in_the_copy_is_found(stopped: Crawled, table: str) -> None:  # noqa: F811
    ledger = memory_ledger()
    assert dies(partial(to_ledger, stopped.path, ledger), "before_end", 1)
    pages = ledger._state.pages
    (pages.contents if table == "contents" else pages.near.signatures).popitem()
    assert [text.partition(":")[0] for text in to_ledger(stopped.path, ledger).differences] == [table]


def test_a_row_that_is_missing_or_different_in_a_folder_is_found(
    stopped: Crawled,  # noqa: F811
    tmp_path: Path,
) -> None:
    ledger = memory_ledger()
    to_ledger(stopped.path, ledger)
    for number, table in enumerate(("queue", "urls", "signatures")):
        folder = tmp_path / str(number)
        assert dies(partial(to_folder, ledger, folder), "before_end", 1)
        with changed(folder) as copy:
            first, second = islice(copy.rows(table), 2)
            copy.add([first._replace(value=None if table == "queue" else second.value)], copy.mark)
        done = to_folder(ledger, folder)
        assert [text.partition(":")[0] for text in done.differences] == [table]
        with pytest.raises(UsageError, match="not finished"):
            CrawlFolder(folder).require_crawl()
        assert to_folder(ledger, folder).is_complete


def test_the_totals_of_a_node_are_compared(stopped: Crawled) -> None:  # noqa: F811
    ledger = memory_ledger()
    assert dies(partial(to_ledger, stopped.path, ledger), "before_end", 1)
    node = next(node for node in ledger.nodes() if node.name == ORIGIN_NODE)
    ledger._state.archives[ORIGIN_NODE].clear()
    with FolderSource(stopped.path, own_terms()) as source:
        target = LedgerTarget(ledger, source, "copy")
        assert target.begin() is not None
        found = sums_of(target.parts(), [NODES, ARCHIVES])
        expected = sums_of(source_parts(source), [NODES, ARCHIVES])
        target.close()
    assert node in ledger.nodes()
    assert found[NODES].checksum != expected[NODES].checksum
    assert found[ARCHIVES].rows < expected[ARCHIVES].rows


# -- what may be copied where ---------------------------------------------------------------------


def test_a_ledger_that_has_a_crawl_is_refused(stopped: Crawled, tmp_path: Path) -> None:  # noqa: F811
    ledger = memory_ledger()
    to_ledger(stopped.path, ledger)
    with pytest.raises(UsageError, match="there is such a crawl already"):
        to_ledger(stopped.path, ledger)
    to_folder(ledger, tmp_path / "copy")
    with pytest.raises(UsageError, match="contains a crawl already"):
        to_folder(ledger, tmp_path / "copy")


def test_an_unfinished_copy_of_another_crawl_is_refused(stopped: Crawled, tmp_path: Path) -> None:  # noqa: F811
    ledger, other = memory_ledger(), stopped.copied(tmp_path / "other")
    with ledger_of(other) as continued:
        state = continued.crawl_state()
        assert state is not None
        continued.put_crawl_state(replace(state, saved_at=state.saved_at + 1))
    assert dies(partial(to_ledger, stopped.path, ledger), "before_mark", 3)
    with pytest.raises(UsageError, match="an unfinished migration of another crawl"):
        to_ledger(other, ledger)
    one, two = memory_ledger(), memory_ledger()
    to_ledger(stopped.path, one)
    to_ledger(other, two)
    assert dies(partial(to_folder, one, tmp_path / "copy"), "before_mark", 3)
    with pytest.raises(UsageError, match="an unfinished migration of another crawl"):
        to_folder(two, tmp_path / "copy")


def test_a_crawl_with_a_live_node_is_refused(stopped: Crawled, tmp_path: Path) -> None:  # noqa: F811
    ledger = memory_ledger()
    to_ledger(stopped.path, ledger)
    ledger.join(NodeId("a", "1"), "", 60.0)
    with pytest.raises(UsageError, match=r"nodes are alive \(a\)"):
        to_folder(ledger, tmp_path / "copy")


def test_a_crawl_that_is_continued_while_it_is_copied_is_noticed(
    stopped: Crawled,  # noqa: F811
    tmp_path: Path,
) -> None:
    ledger = memory_ledger()
    to_ledger(stopped.path, ledger)
    source = ledger_source_of(ledger)
    ledger.join(NodeId("a", "1"), "", 60.0)
    ledger.commit(NodeId("a", "1"), Commit(1, Totals(fetches=1)))
    ledger.leave(NodeId("a", "1"))
    with pytest.raises(GossamerError, match="was continued while it was copied"):
        run(source, FolderTarget(FolderPlan(tmp_path / "copy", {}, False, NOW, complete_copy), source))


def test_a_crawl_moves_between_ledgers(stopped: Crawled) -> None:  # noqa: F811
    one, two = memory_ledger(), memory_ledger()
    to_ledger(stopped.path, one)
    node = NodeId("a", "1")
    one.join(node, "", 60.0)
    one.claim(node, "pages", 3)
    one.commit(node, Commit(1, Totals(pages=0, fetches=3), links={7: b"first", 9: b"other"}))
    one.commit(node, Commit(2, Totals(pages=0, fetches=4), links={7: b"second"}))
    one.leave(node)
    assert between(one, two).is_complete
    assert shared_tables(two) == shared_tables(one)
    assert list(two.messages([7])) == [(7, b"first"), (7, b"second")]
    assert not any(view.is_live for view in two.nodes().values())
    assert all(two.ownership(shard) is None for shard in (0, 7, 4095))


def test_seeds_with_rules_of_their_own_move_into_the_record_and_back(
    stopped: Crawled,  # noqa: F811
    tmp_path: Path,
) -> None:
    folder, ledger = stopped.copied(tmp_path / "one"), memory_ledger()
    seeds = [SeedRecord(f"http://{name}.example/", 1 + number, "host", 2) for number, name in enumerate("zyx")]
    with ledger_of(folder) as changing:
        for seed in reversed(seeds):
            changing.put_record(SEEDS, seed)
    assert to_ledger(folder, ledger).is_complete
    record = ledger.record()
    assert record is not None
    assert record.seeds == seeds
    assert ledger.table("seeds") == {}
    assert to_folder(ledger, tmp_path / "two").is_complete
    assert tables(tmp_path / "two")["seeds"] == tables(folder)["seeds"]


# -- what was on its way --------------------------------------------------------------------------


def test_links_between_nodes_are_queued_in_the_folder(stopped: Crawled, tmp_path: Path) -> None:  # noqa: F811
    ledger = memory_ledger()
    to_ledger(stopped.path, ledger)
    record = ledger.record()
    assert record is not None
    found = link_to(f"{origin_of(record.scope[0])}/on-its-way")
    message = LinkMessage(found.url, 1, Source.LINK, FetchKind.PAGE, parent=link_to(record.scope[0]).id)
    node, shard = NodeId("a", "1"), shard_of(found.id)
    ledger.join(node, "", 60.0)
    ledger.commit(node, Commit(1, Totals(fetches=1), links={shard: encode_message(NodeMessage([message]))}))
    ledger.leave(node)
    with pytest.raises(GossamerError, match="events cannot be reached"):
        to_folder(ledger, tmp_path / "none")
    for times in (1, 2, 3):  # the second time it dies after the messages were delivered
        folder = tmp_path / str(times)
        attempt = partial(to_folder, ledger, folder, allows_missing=True)
        assert dies(attempt, "before_end", times) == (times < 3)
        if times < 3:
            assert attempt().is_complete
        with CrawlReader(folder) as crawl:
            row = crawl.ledger.look_up(found.id)
            host = crawl.ledger.host(found.host)
            assert row is not None
            assert (row.state, row.depth, row.source) == (UrlState.QUEUED, 1, Source.LINK)
            assert host is not None
            assert crawl.state.totals.urls_seen == len(list(crawl.ledger.urls()))
            queued = crawl.ledger.read_queue(host_id(found.host), None, 10_000)
            assert host.queued == len(queued)
            assert found.url in {each.url for each in queued}
    assert list(ledger.messages([shard])), "the source stays as it is"


def test_what_a_killed_node_had_not_committed_is_left_out(stopped: Crawled, tmp_path: Path) -> None:  # noqa: F811
    source, ledger = stopped.copied(tmp_path / "one"), memory_ledger()
    to_ledger(source, ledger)
    last = sorted((source / "archive").glob("*.warc.gz"))[-1]
    whole = last.read_bytes()
    left = last.with_name(f"{last.name}.open")
    last.rename(left)
    with left.open("ab") as file:
        file.write(whole)
    assert to_folder(ledger, tmp_path / "two").is_complete
    assert left.read_bytes() == whole + whole, "the source stays as it is"
    assert (tmp_path / "two" / "archive" / last.name).read_bytes() == whole
    with CrawlReader(tmp_path / "two") as crawl:
        assert find_problems(crawl).problems == []
