"""A crawl that nodes share: commands change its record, and every node acts on them within two seconds.

Seeds and change notices go into the inboxes of their shards. What is to be queued again is requested of the owners of
those shards: an owner releases them and takes them again, and changes their rows before they are used
(`engine/admission/revival`). Most of this reopens a crawl that is over.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from math import inf, nextafter

from msgspec.structs import replace

from gossamer.control.record import change, open_crawl, register_seeds, shown_url
from gossamer.core.cluster.record_additions import Additions
from gossamer.core.ledger.tables import QUARANTINES
from gossamer.core.links.intake import LinkContext
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.admission.revival import NO_LETTERS, dead_letters, is_requested
from gossamer.engine.cluster.link_messages import NodeMessage, encode_message, message_of
from gossamer.engine.results.evidence import chosen_quarantines
from gossamer.engine.revisit.notices import NOTICED, noticed_links
from gossamer.model import commands
from gossamer.model.commands import OperatorCommand, SettingCommand
from gossamer.model.errors import UsageError
from gossamer.model.figures import Totals
from gossamer.model.records import Link, Source, UrlRecord
from gossamer.model.state import ALL_PATTERNS, CrawlRecord, OperatorRequest
from gossamer.ports.shared_ledger import OBSERVER, Commit, NodeId, NodeLedger
from gossamer.reading.cluster import SharedReader
from gossamer.settings.changes import unblocked_hint, with_command
from gossamer.settings.load import settings_in, to_toml
from gossamer.settings.regions import use_regions
from gossamer.settings.seeds import identified, opened_addresses, seeds_in
from gossamer.telemetry.text import agreeing, printable, released

LEASE_S = 10.0
SETTABLE = ("max-pages", "max-pages-per-host", "max-pages-per-domain")  # of the whole crawl


class SharedCrawl:
    """A crawl in a shared ledger: see `gossamer.control.target.Target`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def obey(self, command: OperatorCommand, by: str) -> str:
        """Change the record, so that all nodes obey."""
        match command:
            case commands.PauseCrawl() | commands.ResumeCrawl():
                is_paused = isinstance(command, commands.PauseCrawl)
                self._change(command, by, lambda record: _with_pause(record, is_paused=is_paused))
                return "all nodes pause within two seconds" if is_paused else "all nodes go on"
            case commands.StopCrawl():
                change(self._url, lambda record: replace(record, stop_version=record.version + 1))
                return "all nodes stop within a few seconds; 'gossamer join' continues"
            case commands.AddSeeds(lines):
                return self._add_seeds(command, by, lines)
            case commands.ReportChanges(urls):
                return self._report_changes(command, by, urls)
            case commands.RetryLetters(outcomes, hosts):
                with self._reader() as crawl:
                    return queue_again(crawl, self._url, dead_letters(outcomes, hosts))
            case commands.ReleasePattern(pattern):
                with self._reader() as crawl:
                    return self._release(crawl, pattern)
            case _:
                return self._set(command, by)

    def _change(
        self,
        command: OperatorCommand,
        by: str,
        how: Callable[[CrawlRecord], CrawlRecord],
        *,
        reopens: bool = False,
    ) -> CrawlRecord:
        name = str(command.__struct_config__.tag)
        return change(
            self._url,
            lambda record: replace(how(record), commands=record.commands + 1, last_command=f"{name} ({by})"),
            reopens=reopens,
        )

    def _set(self, command: SettingCommand, by: str) -> str:
        key = command.key.removeprefix("--").replace("_", "-") if isinstance(command, commands.ChangeSetting) else ""
        if key and key not in SETTABLE:
            raise UsageError(f"{key} cannot be set for all nodes; these can: {', '.join(SETTABLE)}")

        def changed(record: CrawlRecord) -> CrawlRecord:
            settings = with_command(settings_in(record.settings, "the crawl"), command)
            budgets = {} if settings.max_pages is None else {"pages": settings.max_pages}
            if bool(budgets) != bool(record.budgets):
                raise UsageError("a crawl that has --max-pages keeps one, and one that began without has none")
            return replace(record, settings=to_toml(settings).encode(), budgets=budgets)

        self._change(command, by, changed, reopens=key == "max-pages")
        hint = f"; then {unblocked_hint(shown_url(self._url))}" if isinstance(command, commands.UnblockNames) else ""
        return f"all nodes act on it within two seconds{hint}"

    # -- what goes into the inboxes of shards -----------------------------------------------------

    def _add_seeds(self, command: commands.AddSeeds, by: str, lines: Sequence[str]) -> str:
        """Extend the scope in the record, and then put the seeds into the inboxes of their shards."""
        shared, record = open_crawl(self._url)
        try:
            use_regions(settings_in(record.settings, "the crawl"))
            seeds = identified(seeds_in(lines))
            own_scope = {seed.link.url for seed in seeds if seed.rules is not None and seed.rules.scope}
            scope = [seed.link.url for seed in seeds if seed.link.url not in own_scope]
            opened = {address for seed in seeds for address in opened_addresses(seed)}

            def extended(record: CrawlRecord) -> CrawlRecord:
                known = set(record.scope)
                added = [each for each in scope if each not in known]
                return replace(record, scope=[*record.scope, *added], opened=sorted({*record.opened, *opened}))

            record = register_seeds(shared, self._change(command, by, extended, reopens=True), seeds)
            numbers = {rule.url: rule.number for rule in record.seeds}
            links = [
                (seed.link, LinkContext(0, Source.SEED, https_first=seed.is_guess, seed=numbers.get(seed.link.url, 0)))
                for seed in seeds
            ]
            # The scope again: an engine that went back in time since may have lost it, and nobody would follow these.
            _post(shared, links, Additions(scope))
        finally:
            shared.close()
        return f"{agreeing(len(seeds), 'seed')} on the way to the nodes"

    def _report_changes(self, command: commands.ReportChanges, by: str, urls: Sequence[str]) -> str:
        """Put URLs that were reported as changed into the inboxes of their shards: their owners know the pages."""
        shared, record = open_crawl(self._url)
        try:
            use_regions(settings_in(record.settings, "the crawl"))
            links, bad = noticed_links(urls)
            self._change(command, by, lambda known: known, reopens=True)
            _post(shared, [(link, NOTICED) for link in links], Additions([]))
        finally:
            shared.close()
        refused = f", {bad} refused (not_a_url)" if bad else ""
        return f"{agreeing(len(links), 'URL')} reported as changed, on the way to the nodes{refused}"

    # -- what is queued again ---------------------------------------------------------------------

    def _reader(self) -> SharedReader:
        return SharedReader(*open_crawl(self._url), shown_url(self._url), {}, time.time())

    def _release(self, crawl: SharedReader, name: str) -> str:
        """Request that a quarantine ends, or all of them."""
        chosen = chosen_quarantines(crawl.ledger.records(QUARANTINES), name, crawl.now)
        if not chosen:
            if name == ALL_PATTERNS:
                return released(chosen)
            raise UsageError(
                f"{printable(name)}: no such pattern is in quarantine; 'gossamer traps {crawl.name}' lists them"
            )
        shards = sorted({shard_of(host_id(each.host)) for each in chosen})
        request = OperatorRequest(crawl.now, shards, pattern=name)
        change(self._url, lambda record: _with_request(record, request, dropped=[]), reopens=True)
        return f"{released(chosen)} by the nodes that own their hosts; {_when(crawl)}"


def queue_again(crawl: SharedReader, url: str, wanted: OperatorRequest) -> str:
    """Request that dead letters, or URLs that a lost node has stored, are queued again; return what follows."""
    shards: set[int] = set()
    found = 0
    last_at = 0.0
    unfulfilled: set[int] = set()
    for url_id, row in crawl.ledger.urls():
        if is_requested(row, wanted):
            found = found + 1
            last_at = max(last_at, row.fetched_at)
            shards.add(shard_of(url_id))
        unfulfilled |= _unfulfilled(row, crawl.record.requests)
    if not found:
        return f"no URLs are stored on {wanted.stored_on}" if wanted.stored_on else NO_LETTERS
    # Only what has happened by now: no clock is needed to say that.
    request = replace(wanted, at=nextafter(last_at, inf), shards=sorted(shards))
    before = enumerate(crawl.record.requests)
    fulfilled = [each for number, each in before if not each.pattern and number not in unfulfilled]
    change(url, lambda record: _with_request(record, request, dropped=fulfilled), reopens=True)
    return f"{agreeing(found, 'URL')} queued again by the nodes that own them; {_when(crawl)}"


def _unfulfilled(row: UrlRecord, requests: list[OperatorRequest]) -> set[int]:
    return {number for number, each in enumerate(requests) if not each.pattern and is_requested(row, each)}


def _with_request(record: CrawlRecord, request: OperatorRequest, dropped: list[OperatorRequest]) -> CrawlRecord:
    return replace(record, requests=[*(each for each in record.requests if each not in dropped), request])


def _when(crawl: SharedReader) -> str:
    if crawl.is_running:
        return "they act within a few seconds"
    return f"no node is alive: 'gossamer join {crawl.name}' continues the crawl"


def _with_pause(record: CrawlRecord, *, is_paused: bool) -> CrawlRecord:
    if record.is_paused is is_paused:
        hint = "it is paused already" if is_paused else "it is not paused; nodes continue it: gossamer join URL -o DIR"
        raise UsageError(f"the crawl goes on as it is: {hint}")
    return replace(record, is_paused=is_paused)


def _post(shared: NodeLedger, links: Iterable[tuple[Link, LinkContext]], added: Additions) -> None:
    """Put links into the inboxes of their shards."""
    messages: dict[int, NodeMessage] = {}
    for link, context in links:
        messages.setdefault(shard_of(link.id), NodeMessage()).links.append(message_of(link, context))
    node = NodeId(f"operator-{secrets.token_hex(4)}", secrets.token_hex(4))
    shared.join(node, OBSERVER, LEASE_S)
    encoded = {shard: encode_message(message) for shard, message in messages.items()}
    shared.commit(node, Commit(1, Totals(), links=encoded, added=added))
    shared.leave(node)
