"""Is a URL known? Only the URL in a row says so: its id may be another's.

A URL has the first of its candidates (`core/url/identity`) that no other URL has. A row of another URL under the first
candidate is an accident that a keyed crawl of a billion pages has once in ten thousand crawls; in one that an earlier
version began, an attacker can bring it about. There the row that was found first may also be gone by now, so that one
more candidate is looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from gossamer.core.links.requisite import requisite_id
from gossamer.core.url.forms import key_of
from gossamer.core.url.identity import MAX_CANDIDATES, Identity
from gossamer.model.records import UrlId


def find_id(
    identity: Identity, first: UrlId, url: str, stored_url: Callable[[UrlId], str | None], *, is_requisite: bool
) -> tuple[UrlId, bool]:
    """Return the id that a URL has or gets, and whether it is known.

    `first` is its first candidate; `stored_url` returns the URL in the row of an id, None if there is none.
    """
    free = b""
    for number in range(MAX_CANDIDATES):
        url_id = first if not number else _candidate(identity, first, url, number, is_requisite=is_requisite)
        stored = stored_url(url_id)
        if stored is None:
            free = free or url_id
            if number or not identity.may_collide:
                break
        elif is_same(stored, url):
            return url_id, True
    assert free, "the hash is broken"
    return free, False


def is_same(stored: str, url: str) -> bool:
    """Return whether two URLs are the same page: whether their keys are equal."""
    return stored == url or key_of(stored) == key_of(url)


def _candidate(identity: Identity, first: UrlId, url: str, number: int, *, is_requisite: bool) -> UrlId:
    url_id = identity.url_candidate(first[:8], key_of(url), number)
    return requisite_id(url_id) if is_requisite else url_id
