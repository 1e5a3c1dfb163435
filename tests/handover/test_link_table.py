"""Links by target, on disk."""

from __future__ import annotations

import pytest

from gossamer.handover.findings.link_table import LinkCounts, LinkGroup, LinkTable, SeenIds
from gossamer.handover.findings.links import GraphLink
from gossamer.model.errors import DiskFullError
from gossamer.reading.why.fates import Fate

FATE = Fate("client_error", 404, chain=("http://b.test/", "http://c.test/"))


def link(page: int, text: str = "") -> GraphLink:
    return GraphLink(f"http://from.test/{page}", "http://a.test/", text, "", False)


def test_a_target_is_stored_once_by_its_id_and_the_largest_group_is_first() -> None:
    with LinkTable() as table:
        first = table.add_target(b"a", "a", "http://a.test/", FATE)
        assert table.add_target(b"a", "a", "http://A.test/", Fate("ok", 200)) == first
        second = table.add_target(b"b", "b", "http://b.test/", Fate("timeout"))
        for target, page in ((first, 1), (second, 1), (second, 2), (second, 2)):
            table.add(target, link(page, "a\0b\n"))
        table.index()
        assert table.counts() == LinkCounts(targets=2, links=4, pages=2)
        assert list(table.groups()) == [LinkGroup("b", 1, 3, 2), LinkGroup("a", 1, 1, 1)]
        (found,) = table.links("a")
        assert (found.to, found.status, found.chain, found.text) == ("http://a.test/", 404, list(FATE.chain), "a\0b\n")
        assert [each.to for each in table.links()] == ["http://a.test/"] + 3 * ["http://b.test/"]


def test_ids_have_numbers() -> None:
    with SeenIds() as seen:
        seen.update([b"1", b"2", b"2"])
        seen.count(b"3")
        seen.count(b"3")
        seen.put(b"1", 7)
        assert list(seen.items()) == [(b"1", 7), (b"2", 0), (b"3", 2)]
        assert (b"2" in seen, b"4" in seen, seen.number(b"3"), seen.number(b"4")) == (True, False, 2, 0)


def test_a_full_disk_is_an_error_that_says_where() -> None:
    with LinkTable() as table:
        table._db.execute("PRAGMA max_page_count = 20")
        target = table.add_target(b"a", "a", "http://a.test/", FATE)
        with pytest.raises(DiskFullError, match=r"temporary files.*TMPDIR"):
            fill(table, target)


def fill(table: LinkTable, target: int) -> None:
    for page in range(10_000):
        table.add(target, link(page, "x" * 100))
