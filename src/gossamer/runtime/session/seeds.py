"""The seeds of one run: those that it begins with, and those that are added while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.url.forms import link_to
from gossamer.engine.crawl import Crawl
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.records import UrlId
from gossamer.model.state import SeedRecord
from gossamer.runtime.watch.warning_log import WarningLog
from gossamer.settings.seeds import Seed, identified, line_of, opened_addresses, seeds_in, seeds_in_config
from gossamer.telemetry.text import plural

NOTICES_AT_ONCE = 200


class RunSeeds:
    """Queues the seeds of a run."""

    def __init__(
        self,
        seeds: Sequence[Seed],
        crawl: Crawl,
        folder: CrawlFolder,
        policy: AddressPolicy,
        *,
        warnings: WarningLog,
        now: Callable[[], float],
    ) -> None:
        self._seeds = seeds
        self._crawl = crawl
        self._folder = folder
        self._policy = policy
        self._warnings = warnings
        self._now = now

    def identify(self) -> None:
        """Give the seeds the ids that they have in this crawl, whose ledger is open now."""
        self._seeds = identified(self._seeds)

    def begin_again(self) -> None:
        """Begin with the seeds of the folder if none were given: it was killed before they were in the ledger."""
        if not self._seeds and self._folder.settings_path.is_file():
            self._seeds = seeds_in_config(self._folder.settings_path)

    def check(self) -> None:
        """Raise if a seed has rules that cannot be obeyed. Call before anything is changed."""
        self._crawl.seeds.check(_rules_of(self._seeds).values())

    def record(self) -> None:
        """Add the seeds to the list in the folder, before anything depends on them."""
        self._folder.record_seeds([line_of(seed) for seed in self._seeds])

    def open_addresses(self, others: Sequence[str] = ()) -> None:
        """Allow the addresses that seeds name, including those of earlier runs and of other nodes."""
        state = self._crawl.state
        named = {address for seed in self._seeds for address in opened_addresses(seed)}
        state.opened_addresses = sorted({*state.opened_addresses, *named, *others})
        for address in state.opened_addresses:
            self._policy.open_address(address)

    def queue(self) -> int:
        """Queue the seeds that the run begins with, and those added or reported since the last run; return how many."""
        state = self._crawl.state
        added = state.added_seeds
        state.added_seeds = []
        queued = self._queue(self._seeds) + (self.add(added) if added else 0)
        reported = state.reported_urls
        state.reported_urls = []
        for first in range(0, len(reported), NOTICES_AT_ONCE):
            urls = reported[first : first + NOTICES_AT_ONCE]
            queued += self._crawl.accept_notice([link_to(url) for url in urls], self._now()).new
        return queued

    def add(self, lines: Sequence[str], meta: bytes = b"") -> int:
        """Queue seeds that are added later, with metadata as of a link; return how many were new."""
        seeds = identified(seeds_in(lines))
        self._crawl.seeds.check(_rules_of(seeds).values())
        self._folder.record_seeds([line_of(seed) for seed in seeds])
        self.open_addresses([address for seed in seeds for address in opened_addresses(seed)])
        return self._queue(seeds, meta)

    def _queue(self, seeds: Sequence[Seed], meta: bytes = b"") -> int:
        rules = _rules_of(seeds)
        self._warn_of_known(rules)
        guesses = frozenset(seed.link.id for seed in seeds if seed.is_guess)
        links = [seed.link for seed in seeds]
        return self._crawl.add_seeds(links, self._now(), https_first=guesses, rules=rules, meta=meta)

    def _warn_of_known(self, rules: Mapping[UrlId, SeedRecord]) -> None:
        """Warn of seeds whose rules have no effect: of the first one, and how many more there are."""
        known = [(seed.url, f"seed {seed.url} {why}") for seed, why in self._crawl.seeds.without_effect(rules.values())]
        for url, text in known[1:]:
            self._warnings.record("seed_known", text, url=url)
        if known:
            more = f"; nor do those of {plural(len(known) - 1, 'other')}: see events/" if known[1:] else ""
            self._warnings.warn("seed_known", known[0][1] + more, url=known[0][0])


def _rules_of(seeds: Sequence[Seed]) -> dict[UrlId, SeedRecord]:
    return {seed.link.id: seed.rules for seed in seeds if seed.rules is not None}
