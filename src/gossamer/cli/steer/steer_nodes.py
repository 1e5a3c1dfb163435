"""Commands for a crawl on many machines: they go into its record, and every node acts on them within two seconds."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from gossamer.cli.cluster.ledger import change, open_crawl, shown_url
from gossamer.cli.cluster.node import register_seeds
from gossamer.cli.steer.steer import unblocked_hint
from gossamer.core.cluster.record_additions import Additions
from gossamer.core.links.intake import LinkContext
from gossamer.core.url.identity import shard_of
from gossamer.engine.cluster.link_messages import Letter, encode_letter, message_of
from gossamer.engine.revisit.notices import NOTICED
from gossamer.model import commands
from gossamer.model.commands import OperatorCommand, SettingCommand
from gossamer.model.errors import UsageError
from gossamer.model.figures import Totals
from gossamer.model.records import Source
from gossamer.model.state import CrawlRecord
from gossamer.ports.shared_ledger import OBSERVER, Commit, NodeId, SharedLedger
from gossamer.runtime.session.steering import noticed_links
from gossamer.settings.changes import with_command
from gossamer.settings.load import settings_in, to_toml
from gossamer.settings.regions import use_regions
from gossamer.settings.seeds import Seed, identified, opened_addresses, seeds_in
from gossamer.telemetry.text import agreeing

LEASE_S = 10.0
SETTABLE = ("max-pages", "max-pages-per-host", "max-pages-per-domain")  # of the whole crawl


def tell_nodes(url: str, command: OperatorCommand, by: str) -> str:
    """Give a command to all nodes of a crawl; return what was done."""
    match command:
        case commands.PauseCrawl() | commands.ResumeCrawl():
            is_paused = isinstance(command, commands.PauseCrawl)
            _change(url, command, by, lambda record: _with_pause(record, is_paused=is_paused))
            return "all nodes pause within two seconds" if is_paused else "all nodes go on"
        case commands.StopCrawl():
            change(url, lambda record: replace(record, stop_version=record.version + 1))
            return "all nodes stop within a few seconds; 'gossamer join' continues"
        case commands.AddSeeds(lines):
            return _add_seeds(url, command, by, lines)
        case commands.ReportChanges(urls):
            return _report_changes(url, command, by, urls)
        case commands.RetryLetters() | commands.ReleasePattern():
            raise UsageError("use 'gossamer retry' and 'gossamer traps --release' with the URL")
        case _:
            return _set(url, command, by)


def _change(
    url: str, command: OperatorCommand, by: str, how: Callable[[CrawlRecord], CrawlRecord], *, reopens: bool = False
) -> CrawlRecord:
    name = str(command.__struct_config__.tag)
    return change(
        url,
        lambda record: replace(how(record), commands=record.commands + 1, last_command=f"{name} ({by})"),
        reopens=reopens,
    )


def _with_pause(record: CrawlRecord, *, is_paused: bool) -> CrawlRecord:
    if record.is_paused is is_paused:
        hint = "it is paused already" if is_paused else "it is not paused; nodes continue it: gossamer join URL -o DIR"
        raise UsageError(f"the crawl goes on as it is: {hint}")
    return replace(record, is_paused=is_paused)


def _set(url: str, command: SettingCommand, by: str) -> str:
    key = command.key.removeprefix("--").replace("_", "-") if isinstance(command, commands.ChangeSetting) else ""
    if key and key not in SETTABLE:
        raise UsageError(f"{key} cannot be set for all nodes; these can: {', '.join(SETTABLE)}")

    def changed(record: CrawlRecord) -> CrawlRecord:
        settings = with_command(settings_in(record.settings, "the crawl"), command)
        budgets = {} if settings.max_pages is None else {"pages": settings.max_pages}
        if bool(budgets) != bool(record.budgets):
            raise UsageError("a crawl that has --max-pages keeps one, and one that began without has none")
        return replace(record, settings=to_toml(settings).encode(), budgets=budgets)

    _change(url, command, by, changed, reopens=key == "max-pages")
    done = "all nodes act on it within two seconds"
    return f"{done}; then {unblocked_hint(shown_url(url))}" if isinstance(command, commands.UnblockNames) else done


# -- seeds ----------------------------------------------------------------------------------------


def _add_seeds(url: str, command: commands.AddSeeds, by: str, lines: Sequence[str]) -> str:
    """Extend the scope in the record, and then put the seeds into the inboxes of their shards."""
    shared, record = open_crawl(url)
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

        record = _change(url, command, by, extended, reopens=True)
        record = register_seeds(shared, record, seeds)
        _send(shared, record, seeds, scope)
    finally:
        shared.close()
    return f"{agreeing(len(seeds), 'seed')} on the way to the nodes"


def _send(shared: SharedLedger, record: CrawlRecord, seeds: Sequence[Seed], scope: Sequence[str]) -> None:
    numbers = {rule.url: rule.number for rule in record.seeds}
    letters: dict[int, Letter] = {}
    for seed in seeds:
        link = seed.link
        context = LinkContext(0, Source.SEED, https_first=seed.is_guess, seed=numbers.get(link.url, 0))
        letters.setdefault(shard_of(link.id), Letter()).links.append(message_of(link, context))
    # The scope again: an engine that went back in time since may have lost it, and nobody would follow these seeds.
    _post(shared, letters, Additions(scope))


def _post(shared: SharedLedger, letters: Mapping[int, Letter], added: Additions) -> None:
    """Put letters into the inboxes of their shards."""
    node = NodeId(f"operator-{secrets.token_hex(4)}", secrets.token_hex(4))
    shared.join(node, OBSERVER, LEASE_S)
    links = {shard: encode_letter(letter) for shard, letter in letters.items()}
    shared.commit(node, Commit(1, Totals(), links=links, added=added))
    shared.leave(node)


# -- change notices -------------------------------------------------------------------------------


def _report_changes(url: str, command: commands.ReportChanges, by: str, urls: Sequence[str]) -> str:
    """Put URLs that are said to have changed into the inboxes of their shards: their owners know the pages."""
    shared, record = open_crawl(url)
    try:
        use_regions(settings_in(record.settings, "the crawl"))
        links, bad = noticed_links(urls)
        letters: dict[int, Letter] = {}
        for link in links:
            letters.setdefault(shard_of(link.id), Letter()).links.append(message_of(link, NOTICED))
        _change(url, command, by, lambda known: known, reopens=True)
        _post(shared, letters, Additions([]))
    finally:
        shared.close()
    refused = f", {bad} refused (not_a_url)" if bad else ""
    return f"{agreeing(len(links), 'URL')} reported as changed, on the way to the nodes{refused}"
