"""A crawl from within a program: `async with gossamer.crawl(seeds) as pages: async for page in pages: …`.

The crawl is the same as the command line's: same settings, same folder, same guarantees; either can
continue what the other stopped. It runs in the caller's event loop. Pages that were yielded are not yielded
again after a kill; an indexer that must not miss anything reads the feed with a cursor (`gossamer.handover.feed.feed`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, Unpack

from msgspec.structs import replace

from gossamer.api.crawling import Crawling, Statuses
from gossamer.api.hooks import Accept, Failure, Hooks, Score
from gossamer.api.options import CrawlOptions
from gossamer.api.page import Headers, Page
from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.links.intake import FoundLink
from gossamer.model.errors import GossamerError, IncompleteCrawlWarning, SeedsFailedError, UsageError
from gossamer.model.events import Event
from gossamer.parse.text.article import Outlink
from gossamer.settings.identity import remembered_contact
from gossamer.settings.load import check_names, refuse_dashboard, settings_for_known, settings_for_new
from gossamer.settings.model import Settings
from gossamer.settings.regions import refuse_regions
from gossamer.settings.seeds import Seed, default_folder, needs_contact, seeds_from

__all__ = [
    "CrawlOptions",
    "Crawling",
    "Event",
    "Failure",
    "FoundLink",
    "GossamerError",
    "Headers",
    "IncompleteCrawlWarning",
    "Outlink",
    "Page",
    "SeedsFailedError",
    "UsageError",
    "crawl",
]
_OWN_NAMES = ("out", "statuses", "accept_link", "score_link", "on_page", "on_error", "own_hosts")


def crawl(
    seeds: str | Iterable[str],
    *,
    out: str | Path | None = None,
    statuses: Statuses = "pages",
    accept_link: Accept | None = None,
    score_link: Score | None = None,
    on_page: Callable[[Page], object] | None = None,
    on_error: Callable[[Failure], object] | None = None,
    own_hosts: Iterable[str] = (),
    **settings: Unpack[CrawlOptions],
) -> Crawling:
    """Return a crawl, to be started with `async with`.

    `seeds` and `settings` are those of the command line (`max_pages=100`, `scope="host"`). `statuses` says which
    answers are handed over: pages, all, or those with some statuses. Hooks, which may be `async def`: `accept_link` may
    reject a link that is in scope, or attach metadata to it; `score_link` ranks it from 0 to 100 within its host;
    `on_page` is called with each page, `on_error` with each URL that failed for good. If a hook raises, the crawl ends
    cleanly and the exception is raised. `own_hosts` are hosts of your own, whose robots.txt is not obeyed.
    """
    found = seeds_from([seeds] if isinstance(seeds, str) else seeds)
    if not found and out is None:
        raise UsageError("no seeds; expected gossamer.crawl('https://example.org/')")
    _check_statuses(statuses)
    folder = CrawlFolder(Path(out) if out is not None else default_folder(found[0].link.host))
    folder.check_usable()
    chosen = _settings(folder, dict(settings), own_hosts)
    hooks = Hooks(accept_link, score_link, on_page, on_error)
    if hooks.waits_for_links and chosen.workers != 1:
        raise UsageError(f"workers = {chosen.workers}: an async accept_link or score_link needs workers=1")
    return Crawling(_with_contact(chosen, found), folder, found, hooks, statuses)


def _settings(folder: CrawlFolder, given: dict[str, Any], own_hosts: Iterable[str]) -> Settings:
    check_names(given, _OWN_NAMES)
    if own := [own_hosts] if isinstance(own_hosts, str) else list(own_hosts):
        given["own_host"] = own
    sources = [("arguments", given)]
    if folder.holds_crawl():
        chosen = settings_for_known(folder.settings_path, sources)
    else:
        chosen = settings_for_new(sources, has_domain_list=False)
        refuse_regions(chosen)
    refuse_dashboard(chosen, "gossamer.crawl")
    return chosen


def _check_statuses(statuses: object) -> None:
    """Raise if it is neither a name nor a collection of statuses."""
    if isinstance(statuses, str):
        is_known = statuses in ("pages", "all")
    else:
        is_known = isinstance(statuses, Collection) and all(isinstance(each, int) for each in statuses)
    if not is_known:
        raise UsageError(f"statuses = {statuses!r}: expected 'pages', 'all' or numbers, as {{200, 404}}")


def _with_contact(settings: Settings, seeds: Iterable[Seed]) -> Settings:
    """Return the settings with the contact that was given, or is remembered from the command line."""
    if settings.contact or not any(map(needs_contact, seeds)):
        return settings
    contact = remembered_contact()
    if not contact:
        raise UsageError("a crawl of public hosts needs contact='you@example.org', so that webmasters can reach you")
    return replace(settings, contact=contact)
