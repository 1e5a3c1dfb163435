"""Identity, priority and room of requisites."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.ledger.rows import position_of, queue_key
from gossamer.core.links.requisite import (
    MAX_ROOM,
    count_requisites,
    is_foreign,
    priority_with,
    queued_requisite,
    redirected,
    requisite_id,
    requisite_to,
    requisites_from,
    room_for_each,
    room_of,
)
from gossamer.core.url.forms import link_to, url_id
from gossamer.core.url.identity import shard_of
from gossamer.engine.admission.admission import BEFORE_PAGES
from gossamer.model.records import FetchKind, QueuedUrl, Source

NOW = 1000.0


def page(url: str = "http://a.test/") -> QueuedUrl:
    link = link_to(url)
    return QueuedUrl(link.url, link.id, link.host, 0, 1, 3, seed=2)


@given(st.binary(min_size=16, max_size=16))
def test_the_id_of_a_requisite_is_another_one_of_the_same_host_and_leads_back(key: bytes) -> None:
    own = requisite_id(key)
    assert own != key
    assert (own[:8], shard_of(own)) == (key[:8], shard_of(key))
    assert requisite_id(own) == key


def test_what_a_page_names_is_resolved_as_a_requisite_each_url_once() -> None:
    found = requisites_from("http://a.test/dir/", ["i.png", "/dir/i.png", "//cdn.test/x.js"])
    assert found == [requisite_to("http://a.test/dir/i.png"), requisite_to("http://cdn.test/x.js")]
    assert found[0].id == requisite_id(url_id("http://a.test/dir/i.png"))


@given(st.integers(0, MAX_ROOM))
def test_a_requisite_comes_before_all_pages_and_sitemaps_and_keeps_its_room(room: int) -> None:
    url = queued_requisite(requisite_to("http://b.test/s.css"), page(), room, 7, NOW)
    assert room_of(url) == room
    assert url.priority < -BEFORE_PAGES  # a sitemap that is read first, at depth 0
    assert position_of(queue_key(url)) == url.position  # it can be stored
    target = redirected(requisite_to("http://c.test/s.css"), url, 8, NOW)
    assert (room_of(target), target.hops, target.source, target.parent) == (room, 1, Source.REDIRECT, url.id)


def test_stylesheets_come_first() -> None:
    rooms = [priority_with(room, is_foreign=is_foreign) for is_foreign in (False, True) for room in (MAX_ROOM, 1, 0)]
    assert rooms == sorted(rooms)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["http://a.test/i.png"], False),
        (["http://static.a.test/s.css", "http://a.test/i.png"], False),
        (["http://b.test/i.png"], True),
        (["http://b.test/s.css", "http://a.test/i.png"], True),
        (["http://192.0.2.1/i.png"], True),
    ],
)
def test_what_another_domain_has_a_part_in_is_foreign(names: list[str], expected: bool) -> None:
    url = page()
    for name in names:
        url = queued_requisite(requisite_to(name), url, 3, 7, NOW)
    assert (is_foreign(url), room_of(url)) == (expected, 3)
    target = redirected(requisite_to("http://a.test/"), url, 8, NOW)
    assert (is_foreign(target), room_of(target)) == (expected, 3)


def test_a_requisite_descends_from_what_names_it() -> None:
    url = queued_requisite(requisite_to("http://b.test/s.css"), page(), 5, 7, NOW)
    assert (url.kind, url.parent, url.depth, url.seed) == (FetchKind.REQUISITE, page().id, 3, 2)
    assert count_requisites([url, page(), url]) == 2


@given(st.integers(0, 600), st.integers(0, 600), st.integers(0, 50))
def test_stylesheets_share_what_is_left(room: int, named: int, stylesheets: int) -> None:
    named = max(min(named, room), min(stylesheets, room))
    each = room_for_each(room, named, min(stylesheets, named))
    assert named + each * min(stylesheets, named) <= room


@given(st.integers(1, 60), st.integers(1, 8), st.integers(0, 8))
def test_nested_stylesheets_name_no_more_than_the_limit(limit: int, sheets: int, others: int) -> None:
    """Each stylesheet names as many stylesheets and others as the page, without end."""

    def taken(room: int) -> int:
        named = min(room, sheets + others)
        own = min(sheets, named)
        return named + own * taken(room_for_each(room, named, own)) if named else 0

    assert taken(limit) <= limit
