"""The record of a crawl in a shared ledger: how it is made, opened and changed from outside of its nodes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache

from msgspec.structs import replace

from gossamer.backends.registry import open_shared
from gossamer.core.ledger.candidates import is_same
from gossamer.core.ledger.rows import FORMAT, FORMAT_BEFORE, decode_url
from gossamer.core.url.domains import list_digest
from gossamer.core.url.forms import url_id
from gossamer.core.url.identity import use, with_record
from gossamer.engine.admission.seed_rules import no_effect, numbered
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.state import CrawlRecord, SeedRecord, Terms
from gossamer.ports.shared_ledger import SharedLedger
from gossamer.settings.crawl_key import new_crawl_id, new_identity, upgraded_identity
from gossamer.settings.load import to_toml
from gossamer.settings.model import Settings
from gossamer.settings.seeds import Seed, opened_addresses
from gossamer.telemetry.summary import SHARED_REASONS
from gossamer.telemetry.text import printable

TRIES = 20  # to change the record while nodes change it too
PROTOCOL = 1


def is_ledger_url(text: str) -> bool:
    """Return whether an argument names a ledger on a server, not a folder."""
    return "://" in text


def shown_url(url: str) -> str:
    """Return a ledger URL for people: without user and password."""
    scheme, _, rest = url.partition("://")
    first, found, second = rest.partition("?cassandra=") if scheme == "kafka" else (rest, "", "")
    return f"{scheme}://{first.rpartition('@')[2]}{found}{second.rpartition('@')[2]}"


def name_in(url: str) -> str:
    """Return the name of the crawl in a ledger URL."""
    return url.partition("?")[0].rpartition("/")[2]


def own_terms() -> Terms:
    """Return the terms that nodes of this program must agree on."""
    return Terms(PROTOCOL, FORMAT.decode(), list_digest())


def open_crawl(url: str) -> tuple[SharedLedger, CrawlRecord]:
    """Open the crawl in a ledger; raise if there is none, or if its nodes divide it into other shards."""

    shared = open_shared(url)
    record = shared.record()
    if record is None:
        shared.close()
        raise UsageError(f"there is no crawl {name_in(url)} in this ledger")
    try:
        record = adopted(shared, record)
    except UsageError:
        shared.close()
        raise
    return shared, record


def adopted(shared: SharedLedger, record: CrawlRecord) -> CrawlRecord:
    """Return the record of a crawl, and make its identity the current one; upgrade it if it has the format before.

    Raises if nodes divide the crawl into other shards than this program would, or an earlier version works on it.
    """
    from gossamer.runtime.cluster.seat import check_terms

    while record.terms.ledger_format == FORMAT_BEFORE.decode():
        if any(view.is_live for view in shared.nodes().values()):
            raise UsageError("nodes of an earlier version work on the crawl; stop them first, then it is upgraded")
        terms = replace(record.terms, ledger_format=FORMAT.decode())
        upgraded = replace(record, terms=terms, identity=upgraded_identity(), id=new_crawl_id())
        if record.ended:  # then only what reopens it is stored
            record = upgraded
        elif shared.change_record(replace(upgraded, version=record.version + 1)):
            record = replace(upgraded, version=record.version + 1)
        else:
            record = shared.record() or record
    check_terms(record, own_terms())
    use(with_record(record.ids))
    return record


def change(url: str, how: Callable[[CrawlRecord], CrawlRecord], *, reopens: bool = False) -> CrawlRecord:
    """Change the record of a crawl that is not over, or reopen one that is; return it."""
    shared, record = open_crawl(url)
    try:
        for _ in range(TRIES):
            if record.ended and reopens:
                record = replace(record, ended="", requests=[])  # all owners had fulfilled those of before
            if record.ended:
                raise UsageError(f"the crawl is over: {SHARED_REASONS.get(record.ended, record.ended)}")
            changed = replace(how(record), version=record.version + 1)
            if shared.change_record(changed):
                return changed
            record = adopted(shared, shared.record() or record)
    finally:
        shared.close()
    raise GossamerError("the crawl's record is changed all the time; try again")


def new_record(settings: Settings, seeds: Sequence[Seed]) -> CrawlRecord:
    rules = numbered([], _rules_of(seeds))
    own_scope = {rule.url for rule in rules if rule.scope}
    return CrawlRecord(
        own_terms(),
        to_toml(settings).encode(),
        scope=[seed.link.url for seed in seeds if seed.link.url not in own_scope],
        budgets={} if settings.max_pages is None else {"pages": settings.max_pages},
        opened=sorted({address for seed in seeds for address in opened_addresses(seed)}),
        seeds=rules,
        identity=new_identity(),
        id=new_crawl_id(),
    )


def _rules_of(seeds: Sequence[Seed]) -> list[SeedRecord]:
    return [seed.rules for seed in seeds if seed.rules is not None]


def register_seeds(shared: SharedLedger, record: CrawlRecord, seeds: Sequence[Seed]) -> CrawlRecord:
    """Add seeds with rules of their own to the record of a crawl, before they are queued; return the record."""
    wanted = _rules_of(seeds)
    while wanted:
        known = {each.url for each in record.seeds}
        new = [each for each in wanted if each.url not in known]
        rows = shared.look_up([url_id(each.url) for each in new])
        known_rows = {each.url: decode_url(row) for each, row in zip(new, rows, strict=True) if row is not None}
        found = {url: row for url, row in known_rows.items() if is_same(row.url, url)}
        for each in new:
            if each.url in found:
                warn_once(f"seed {each.url} {no_effect(each, found[each.url].source.name.lower())}")
        changed = numbered(record.seeds, [each for each in wanted if each.url not in found])
        if changed == record.seeds or record.ended:
            break
        replaced = replace(record, seeds=changed, version=record.version + 1)
        if shared.change_record(replaced):
            return replaced
        record = shared.record() or record
    return record


@cache
def warn_once(text: str) -> None:
    """Print a warning about the ledger, if it is not a repetition."""
    print(f"gossamer: {printable(text, 500)}", file=sys.stderr)
