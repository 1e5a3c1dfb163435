"""Seeds with rules or metadata of their own: scope and depth of what is found from them, and which seed that was.

Such a seed has a number, from 1 in order of arrival. Every URL carries the number of the seed by which it was first
found (`QueuedUrl.seed`; 0: a seed without rules), and so do rows of the catalog, held links and reserves. The records
are in the table `seeds`, written with the changes that they cause. They are not forgotten when a shard is
released: pages of other shards descend from them too.

On a node of a cluster they are in the crawl's record instead (`adopt`), which all nodes read: whoever adds a seed has
it registered there first (`numbered`), and the targets of its redirects get there with the commit that depends on them.

In memory: for a seed with a depth an entry in `FrontierLimits.seed_depths`, for one with a scope its surroundings in
`Intake.seed_scopes`. Metadata stays in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.tables import SEEDS
from gossamer.core.links.intake import Intake
from gossamer.core.links.scope import Reach, Surroundings
from gossamer.core.url.forms import host_of, origin_of, url_id
from gossamer.core.url.identity import host_id
from gossamer.model.errors import UsageError
from gossamer.model.records import Link, UrlId
from gossamer.model.state import SeedRecord

if TYPE_CHECKING:
    from gossamer.ports import Ledger

_URLS_READ = 1000  # of a host, to find its seeds
MAX_SHARED = 20_000  # seeds with rules in a crawl's record, which every node reads whenever it changes


class SeedRules:
    """The seeds of a crawl that have rules or metadata of their own."""

    def __init__(self, intake: Intake, limits: FrontierLimits, ledger: Ledger) -> None:
        self._intake = intake
        self._limits = limits
        self._ledger = ledger
        self._last_number = 0
        self._scoped: dict[int, UrlId] = {}  # seeds that have a scope of their own
        self._shared: dict[UrlId, SeedRecord] | None = None  # of the crawl's record, on a node of a cluster
        self._by_number: list[SeedRecord] = []  # the same
        self._joined_here: dict[int, list[str]] = {}  # targets of redirects since the last commit, there

    def load(self, shard: int | None) -> None:
        """Read the seeds of a shard, or of all (None)."""
        for record in self._ledger.records(SEEDS, shard):
            self._register(record)

    def _register(self, record: SeedRecord) -> None:
        number = record.number
        self._last_number = max(self._last_number, number)
        if record.depth >= 0:
            self._limits.seed_depths[number] = record.depth
        if record.scope:
            self._scoped[number] = url_id(record.url)
            self._intake.seed_scopes[number] = surroundings_of(record)

    # -- on a node of a cluster -------------------------------------------------------------------

    def adopt(self, records: Sequence[SeedRecord]) -> None:
        """Learn the seeds of the crawl's record, in order of their numbers."""
        shared = self._shared = {} if self._shared is None else self._shared
        for index, record in enumerate(records):
            known = self._by_number[index] if index < len(self._by_number) else None
            if known == record:
                continue
            if known is None:
                self._by_number.append(record)
                self._register(record)
            else:
                self._by_number[index] = record
                for url in record.joined:
                    self._intake.seed_scopes[record.number].join(url, host_of(url))
            shared[url_id(record.url)] = record

    def take_joined(self) -> dict[int, list[str]]:
        """Return the targets of redirects that extended the scopes of seeds since the last call."""
        joined = self._joined_here
        self._joined_here = {}
        return joined

    def knows(self, number: int) -> bool:
        """Return whether the crawl's record, as it was read last, has a seed of this number."""
        return number <= len(self._by_number)

    # -- adding -----------------------------------------------------------------------------------

    def check(self, wanted: Iterable[SeedRecord]) -> None:
        """Raise if the scope of a known seed would change: what was found with the old one could not be taken back."""
        for seed in wanted:
            known = self._ledger.record(SEEDS, url_id(seed.url))
            if known is not None:
                check_scope(known, seed)

    def without_effect(self, wanted: Iterable[SeedRecord]) -> Iterator[tuple[SeedRecord, str]]:
        """Yield the seeds whose rules cannot apply, and why: a URL belongs to the seed by which it was first found."""
        for seed in wanted:
            identity = url_id(seed.url)
            row = self._ledger.look_up(identity)
            if row is not None and self._ledger.record(SEEDS, identity) is None:
                found = row.source.name.lower()
                yield seed, no_effect(seed, found)

    def find(self, link: Link) -> SeedRecord | None:
        if self._shared is not None:
            return self._shared.get(link.id)
        return self._ledger.record(SEEDS, link.id) if self._last_number else None

    def add(self, wanted: SeedRecord) -> int:
        """Store a seed that has no record; return its number, or 0 if its URL is known already."""
        if self._shared is not None:
            return 0  # whoever registered the seeds in the crawl's record knew its URL
        if self._ledger.look_up(url_id(wanted.url)) is not None:
            return 0
        record = SeedRecord(wanted.url, self._last_number + 1, wanted.scope, wanted.depth, wanted.metadata)
        self._ledger.put_record(SEEDS, record)
        self._register(record)
        return record.number

    def change(self, known: SeedRecord, wanted: SeedRecord) -> None:
        """Change what is given anew of a seed; what is not given stays."""
        if self._shared is not None:
            return  # whoever registered the seeds in the crawl's record has changed it there
        self.check([wanted])
        record = changed(known, wanted)
        self._ledger.put_record(SEEDS, record)
        self._register(record)

    # -- scope ------------------------------------------------------------------------------------

    def join(self, number: int, link: Link) -> bool:
        """Extend the scope of a seed by the target of its redirect; return whether it has a scope of its own."""
        surroundings = self._intake.seed_scopes.get(number)
        if surroundings is None:
            return False
        if not surroundings.join(link.url, link.host):
            return True
        if self._shared is not None:
            self._joined_here.setdefault(number, []).append(link.url)
        else:
            record = self._ledger.record(SEEDS, self._scoped[number])
            if record is not None:
                record.joined = [*record.joined, link.url]
                self._ledger.put_record(SEEDS, record)
        return True

    def by_seed(self, links: Sequence[Link], origin: str) -> list[tuple[int, list[Link]]]:
        """Return links that are found without a page (sitemaps of an origin) by the seed that they belong to.

        That is the first of the seeds with URLs at the host in whose scope a link is. What is in the scope of none
        belongs to the first of them.
        """
        if not self._last_number:
            return [(0, list(links))]
        first, *others = self._seeds_at(origin)
        rest = list(links)
        shared = []
        for number in (first, *others):
            reached = [link for link in rest if self._is_in_scope(link, number)]
            rest = [link for link in rest if link not in reached]
            shared.append((number, reached))
        return [*shared, (first, rest)]

    def _seeds_at(self, origin: str) -> list[int]:
        """Return the seeds of what is queued at a host, its origin first; if nothing is, of what was fetched."""
        host = host_id(host_of(origin + "/"))
        found = [(url.url, url.seed) for url in self._ledger.read_queue(host, None, _URLS_READ)]
        if not found:
            found = [(row.url, row.seed) for _, row in islice(self._ledger.urls(host), _URLS_READ)]
        found.sort(key=lambda each: origin_of(each[0]) != origin)
        return list(dict.fromkeys(seed for _, seed in found)) or [0]

    def _is_in_scope(self, link: Link, number: int) -> bool:
        rule = self._intake.scope.refusal(link.url, link.host, self._intake.seed_scopes.get(number))
        return rule in (None, "extension")


def check_scope(known: SeedRecord, wanted: SeedRecord) -> None:
    """Raise if the scope of a seed would change."""
    if wanted.scope and known.scope != wanted.scope:
        has = f"with scope={known.scope}" if known.scope else "without a scope of its own"
        raise UsageError(f"{wanted.url} is a seed of this crawl {has}; it cannot change to scope={wanted.scope}")


def no_effect(seed: SeedRecord, found: str) -> str:
    """Return why the rules of a seed cannot apply whose URL was found before."""
    return f"was found before as a {found}, so its rules and metadata ({seed.stated}) do not apply"


def changed(known: SeedRecord, wanted: SeedRecord) -> SeedRecord:
    """Return a seed with what is given anew."""
    depth = wanted.depth if wanted.depth >= 0 else known.depth
    return replace(known, depth=depth, metadata={**known.metadata, **wanted.metadata})


def numbered(known: Sequence[SeedRecord], wanted: Iterable[SeedRecord]) -> list[SeedRecord]:
    """Return the seeds of a crawl's record with more of them, or with what is given anew.

    Raises if the scope or the depth of a known one would change: on many nodes no page is read again for it.
    """
    seeds = {record.url: record for record in known}
    for each in wanted:
        before = seeds.get(each.url)
        if before is None:
            seeds[each.url] = replace(each, number=len(seeds) + 1)
            continue
        check_scope(before, each)
        if each.depth >= 0 and each.depth != before.depth:
            raise UsageError(
                f"{each.url} is a seed of this crawl; on many machines its depth cannot change to {each.depth}"
            )
        seeds[each.url] = changed(before, each)
    if len(seeds) > MAX_SHARED:
        raise UsageError(
            f"{len(seeds):,} seeds with rules or metadata of their own; on many machines {MAX_SHARED:,} are possible"
        )
    return list(seeds.values())


def surroundings_of(record: SeedRecord) -> Surroundings:
    """Return what is within reach of a seed that has a scope of its own."""
    surroundings = Surroundings(Reach(record.scope), f"scope={record.scope} of the seed {record.url}")
    for url in (record.url, *record.joined):
        surroundings.join(url, host_of(url))
    return surroundings
