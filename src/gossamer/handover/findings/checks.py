"""Which URLs does a check of links ask, how, and what of it is still to be done?

A check is a crawl of its own in a folder within the folder of the crawl (`checks`): its seeds are the targets, it asks
with HEAD (`check_only`) and follows nothing but redirects. So pace, robots.txt, address guard, retries and recovery are
those of every crawl, and its catalog is where results are kept. A target that was answered less than a day ago is not
asked again.

Addresses: a target is no seed that an operator gave, so it opens no private address (`Seed.is_trusted`); those that the
crawl itself may contact are allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.dedup.scheme import NearDup
from gossamer.core.links.scope import Reach
from gossamer.core.spam.hosts import SpamUse
from gossamer.core.url.forms import host_of, link_to
from gossamer.model.records import Outcome, UrlId, UrlRecord, UrlState
from gossamer.ports import Catalog
from gossamer.reading.view import CrawlView
from gossamer.reading.why.fates import LONG_CHAIN, MAX_CHAIN, QUEUED, Fate, Fates
from gossamer.reading.why.source import joined_scope
from gossamer.settings.model import Settings, SitemapUse
from gossamer.settings.seeds import Seed

FOLDER_NAME = "checks"
FRESH_S = 86_400  # results are valid for a day
MAX_PROMISED_WAIT_S = 60.0  # a longer wait that the crawl promised to a host is not waited for
_NO_LIMIT = 1_000_000_000
_EVERY_TYPE = ("application/*", "audio/*", "font/*", "image/*", "text/*", "video/*")
_WHY_NOT = {
    Outcome.ROBOTS_DENIED.value: "robots.txt forbids it",
    Outcome.BLOCKED_ADDRESS.value: "'gossamer resume DIR --allow-network CIDR' allows private addresses",
    Outcome.OPTED_OUT.value: "its host is blocked",
    Outcome.WORKER_LOST.value: "it was not finished",
    Outcome.INTERNAL_ERROR.value: "our own error",
    QUEUED: "its host is parked: no answer for robots.txt, or it asked to wait",
    "": "not asked",
}


class CheckTargets:
    """What is to be checked: links out of the scope (`external`), and what pages need (`assets`)."""

    def __init__(self, crawl: CrawlView, *, external: bool, assets: bool) -> None:
        self.external = external
        self.assets = assets
        self._fates = Fates(crawl.ledger)
        self._scope = joined_scope(crawl)

    def of_link(self, url: str, key: UrlId) -> str:
        """Return what is asked in order to check a link: its target, or where the crawl lost it; empty if nothing is.

        In the scope these are files that no crawl fetches, by their extension, and ends of long chains of redirects.
        """
        end = self._unknown_end(url, key)
        if not end:
            return ""
        host = host_of(end)
        if not self._scope.contains(end, host) or self._fates.of(key).outcome == LONG_CHAIN:
            return end if self.external else ""
        return end if self.assets and self._scope.refusal(end, host) == "extension" else ""

    def of_asset(self, url: str, key: UrlId) -> str:
        """Return what is asked in order to check something that a page needs; empty if the crawl has fetched it."""
        if not self.assets or self._fates.of_requisite(key).outcome:
            return ""
        return self._unknown_end(url, key)

    @staticmethod
    def why_not_checked(fate: Fate) -> str:
        """Return why a target has no answer; empty if it has one."""
        why = _WHY_NOT.get(fate.outcome, "")
        if fate.outcome == Outcome.BLOCKED_ADDRESS and fate.error:
            return f"{fate.error}; {why}"
        return fate.error or why if why else ""

    def _unknown_end(self, url: str, key: UrlId) -> str:
        fate = self._fates.of(key)
        if fate.outcome not in ("", LONG_CHAIN):
            return ""
        return fate.chain[-1] if fate.chain else url


class Due(Struct):
    """What is to be asked now."""

    seeds: list[Seed] = []
    known: int = 0  # answered less than a day ago
    wait_s: float = 0.0  # before the first request: the crawl has promised that to a host
    promised: dict[str, str] = {}  # hosts that the crawl has promised a longer wait, with its end


def due_of(urls: Iterable[str], crawl: CrawlView, results: Catalog | None, *, is_again: bool) -> Due:
    """Return which targets are asked now: new ones, and those whose results are old; with `is_again` all."""
    due = Due(wait_s=1.0 if is_again else 0.0)  # nothing is asked twice in a second: see `check_settings`
    for url in urls:
        row = results.look_up(results.url_id(url)) if results is not None else None
        if row is not None and not is_again and not _is_old(row, crawl.now):
            due.known += 1
        elif _is_free(url, crawl, due):
            due.seeds.append(Seed(link_to(url), is_trusted=False))
    return due


def _is_old(row: UrlRecord, now: float) -> bool:
    if row.state is UrlState.QUEUED or row.outcome == Outcome.BLOCKED_ADDRESS:  # which nobody was asked for
        return True
    return now - max(row.fetched_at, row.found_at) > FRESH_S


def _is_free(url: str, crawl: CrawlView, due: Due) -> bool:
    """Return whether a host may be asked within a minute, by what the crawl has promised to it."""
    host = host_of(url)
    record = crawl.ledger.host(host)
    if record is None:
        return True
    until = max(record.next_at, record.parked_until)
    if until - crawl.now > MAX_PROMISED_WAIT_S:
        due.promised[host] = datetime.fromtimestamp(until, UTC).isoformat(timespec="seconds")
        return False
    due.wait_s = max(due.wait_s, until - crawl.now)
    return True


def check_settings(crawl: CrawlView, contact: str, *, is_again: bool) -> Settings:
    """Return the settings of a check: pace, identity, time-outs and addresses of the crawl, and nothing is stored."""
    opened = tuple(address for address in crawl.state.opened_addresses if address not in crawl.settings.allow_network)
    return replace(
        crawl.settings,
        check_only=True,
        requisites=False,
        contact=contact or crawl.settings.contact,
        cooldown_sec=1 if is_again else FRESH_S,
        allow_network=(*crawl.settings.allow_network, *opened),
        scope=Reach.ANY,
        max_depth=0,
        max_redirects=MAX_CHAIN,
        include_pattern=(".",),  # also what a redirect leads to, whatever its extension
        accept=_EVERY_TYPE,
        max_pages=_NO_LIMIT,
        max_time=None,
        max_wait=min(crawl.settings.max_wait, MAX_PROMISED_WAIT_S),
        max_pages_per_host=None,
        max_pages_per_domain=None,
        max_hosts_per_domain=_NO_LIMIT,
        max_hosts_per_address=0,
        target_unique_domains=None,
        max_queued=None,
        rank_every=0,
        workers=1,
        sitemaps=SitemapUse.OFF,
        near_dup=NearDup.OFF,
        spam=SpamUse.OFF,
        traps=False,
        revisit=False,
        store=("warc",),
        catalog=(),
        feed=(),
        ui=False,
        metrics_listen="",
        crawl_log=False,
    )
