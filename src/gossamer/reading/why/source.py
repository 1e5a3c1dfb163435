"""What the history of a URL is read from, and how it is written: for `gossamer why`, and for the dashboard."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from gossamer.core.links.scope import Scope
from gossamer.core.revisit.history import PastVisit, past_visits
from gossamer.core.revisit.page import DAY_S, unpacked
from gossamer.core.revisit.stored import HostVisits
from gossamer.core.url.forms import canonical, host_of, url_id
from gossamer.model.errors import UsageError
from gossamer.model.records import Revisit, UrlState
from gossamer.reading.budgets import used_up_budgets
from gossamer.reading.cluster import SharedReader
from gossamer.reading.pace_view import pace_view
from gossamer.reading.view import CrawlView
from gossamer.reading.why.life import Life, LifeSource, life_of
from gossamer.settings.identity import robots_token_of
from gossamer.settings.rules import scope_of
from gossamer.settings.seeds import seed_from

# When was a URL visited, what was found, and when is it visited next? For `why` and the page of a URL.


class VisitHistory(Struct, frozen=True, kw_only=True):
    """What is known of the visits of a URL."""

    visits: list[PastVisit]  # the last ones, the oldest first
    page_class: str
    is_class_set: bool
    changes_every_s: float  # by the estimate of its rate
    interval_s: float
    due_at: int  # 0: it is not fetched again
    misses: int  # in a row: the page was not there
    held_until: int  # 0, or no visit before this: its domain has had its share


def visit_history(revisit: Revisit, host: HostVisits | None) -> VisitHistory:
    """Return what the rows of a URL and of its host have about its visits."""
    state = unpacked(revisit.state)
    return VisitHistory(
        visits=past_visits(revisit.history),
        page_class=state.page_class.name.lower(),
        is_class_set=state.is_class_set,
        changes_every_s=DAY_S / state.rate.mean,
        interval_s=state.interval_days * DAY_S,
        due_at=revisit.due_at,
        misses=state.misses,
        held_until=host.held_until if host is not None and revisit.due_at <= host.held_until else 0,
    )


_ID = re.compile(r"[0-9a-fA-F]{32}")


def life_in(crawl: CrawlView, asked: str) -> Life:
    """Return the life of a URL, or of the first page of a bare domain."""
    url = url_asked(asked, crawl)
    life = life_of(asked, url, life_source(crawl))
    life.pace = pace_view(crawl, life.host)
    if life.row is None:
        life.twins = [twin for twin in twins_of(url) if _is_known(twin, crawl)]
    host = crawl.ledger.host(life.host)
    if host is not None and life.row is not None and life.row.state is UrlState.QUEUED:
        life.waits_for = [*used_up_budgets(crawl, host), *life.waits_for]
    if isinstance(crawl, SharedReader):
        life.place = crawl.place_of(crawl.ledger.url_id(url), life.host, life.row)
    return life


def life_as_json(life: Life) -> dict[str, Any]:
    """Return a life for JSON: the catalog's row by field name, ids in hex."""
    row = life.row
    shown = msgspec.to_builtins(msgspec.structs.replace(life, row=None))
    if row is not None:
        fields = {name: value.hex() if isinstance(value, bytes) else value for name, value in asdict(row).items()}
        span = asdict(row.archived) if row.archived is not None else None
        shown["row"] = {**fields, "source": life.found_as, "kind": row.kind.name.lower(), "archived": span}
        shown["row"]["state"] = life.state
    return cast("dict[str, Any]", shown)


def url_asked(text: str, crawl: CrawlView) -> str:
    """Return the canonical URL; for a bare domain, the one in the crawl; for an id, as events show it, its URL."""
    if _ID.fullmatch(text):
        row = crawl.ledger.look_up(bytes.fromhex(text))
        if row is None:
            raise UsageError(f"{text}: no URL in the catalog has this id; expected that of a URL that was queued")
        return row.url
    url = seed_from(text, "why").link.url
    if "://" in text:
        return url
    plain = canonical("http:" + url.removeprefix("https:")) or url
    known = [known for known in (url, plain) if _is_known(known, crawl)]
    return known[0] if known else url


def twins_of(url: str) -> list[str]:
    """Return the URLs that people take for the same one: other scheme, with or without www. and a slash at the end."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    bare = authority.removeprefix("www.")
    head, mark, query = path.partition("?")
    paths = dict.fromkeys(
        [path, head.rstrip("/") + mark + query, f"{head.rstrip('/')}/{mark}{query}" if head else path]
    )
    found = [
        f"{each}://{name}{slash}{where}"
        for where in paths
        for name in dict.fromkeys([authority, bare, f"www.{bare}"])
        for each in dict.fromkeys([scheme, "http", "https"])
    ]
    known = {url_id(url)}
    twins = [twin for text in found if (twin := canonical(text)) is not None]
    return [twin for twin in dict.fromkeys(twins) if url_id(twin) not in known]


def _is_known(url: str, crawl: CrawlView) -> bool:
    return crawl.ledger.look_up(crawl.ledger.url_id(url)) is not None


def life_source(crawl: CrawlView) -> LifeSource:
    """Return what the history of a URL is read from."""
    return LifeSource(
        ledger=crawl.ledger,
        events=crawl.folders.events,
        scope=joined_scope(crawl),
        token=robots_token_of(crawl.settings),
        is_masked=crawl.settings.mask_queries,
        is_running=crawl.is_running,
        now=crawl.now,
        own_hosts=crawl.settings.own_host,
    )


def joined_scope(crawl: CrawlView) -> Scope:
    """Return the scope including seeds and the targets of their redirects."""
    scope = scope_of(crawl.settings)
    for url in crawl.state.scope:
        scope.join(url, host_of(url))
    return scope
