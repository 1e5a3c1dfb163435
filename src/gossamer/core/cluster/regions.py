"""Which label does a domain have, and which shards belong to a label?

In a crawl on many machines, hosts can be bound to nodes: a rule gives domains a label, and nodes with that label fetch
them. A rule names a domain or the end of one, and applies to the registrable domain, so that a domain has one label.
The first rule that matches decides; a domain that none matches has no label.

    rule         matches
    example.org  this registrable domain, with all its hosts
    .de          every domain that ends so
    *            every domain
    country:DE   every domain at an address in that country, as its first look-up shows

Until its address is known, a domain has the label that follows from its name; after that it may have another home
(`homes`): see `engine/cluster/rehoming`.

**The shards are divided between the labels** into ranges of equal size: first that of domains without a label, then one
per label in the order in which the rules first name them. A domain's hash is scaled into the range of its label. So a
shard has one label, and a label is a key range in every store, as a shard is. The division follows from the rules
alone: like the number of shards it is fixed for a crawl.

`Regions.shard_of` costs about 1 µs more than no rules, once per host (`core/url/identity` caches it).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from gossamer.core.url.identity import SHARD_COUNT, forget_host_ids
from gossamer.model.state import DomainHome

MAX_LABELS = 63  # at least 64 shards are left for each
EVERY = ""  # the name in a rule that matches every domain
_HASH_BITS = 64


class RegionRule(Struct, frozen=True):
    """Domains that end in a name, or are at an address in one of some countries, have a label."""

    name: str
    label: str
    countries: tuple[str, ...] = ()  # if there are any, the name does not matter


class Regions:
    def __init__(self, rules: Sequence[RegionRule], *, is_strict: bool = False) -> None:
        self.rules = tuple(rules)
        self.is_strict = is_strict  # if no live node has a label, its shards wait for one
        self.labels = ("", *dict.fromkeys(rule.label for rule in rules))
        bounds = [SHARD_COUNT * number // len(self.labels) for number in range(len(self.labels) + 1)]
        self._ranges = {label: range(bounds[number], bounds[number + 1]) for number, label in enumerate(self.labels)}
        self.homes: dict[str, str] = {}  # domains whose country gave them another label than their name
        self._by_name: dict[str, int] = {}
        self._by_country: dict[str, int] = {}
        for number, rule in enumerate(self.rules):
            if not rule.countries:
                self._by_name.setdefault(rule.name, number)
            for country in rule.countries:
                self._by_country.setdefault(country, number)

    def without_homes(self) -> Regions:
        """Return the same rules, as a process that knows no homes has them."""
        return Regions(self.rules, is_strict=self.is_strict)

    @property
    def has_countries(self) -> bool:
        return bool(self._by_country)

    def label_of(self, domain: str, country: str = "") -> str:
        """Return the label of a registrable domain; empty if it has none. With a country: as if it had no home yet."""
        if not country and domain in self.homes:
            return self.homes[domain]
        number = self.first_match(domain, country)
        return "" if number is None else self.rules[number].label

    def learn_homes(self, homes: Iterable[DomainHome]) -> dict[str, str]:
        """Record where domains belong; return the countries that decided it, by domain."""
        countries: dict[str, str] = {}
        for home in homes:
            self.learn_home(home.name, home.label)
            if home.country:
                countries[home.name] = home.country
        return countries

    def learn_home(self, domain: str, label: str) -> None:
        """Record the label that a domain has for good."""
        if label in self._ranges and self.label_of(domain) != label:
            self.homes[domain] = label
            forget_host_ids()

    def first_match(self, domain: str, country: str = "") -> int | None:
        """Return the number of the first rule that matches a domain, at an address in a country if that is known."""
        numbers = [self._by_country[country]] if country in self._by_country else []
        if EVERY in self._by_name:
            numbers.append(self._by_name[EVERY])
        end = domain
        while end:
            if end in self._by_name:
                numbers.append(self._by_name[end])
            end = end.partition(".")[2]
        return min(numbers, default=None)

    def shard_of(self, domain: str, digest: int) -> int:
        shards = self._ranges[self.label_of(domain)]
        return shards.start + (digest * len(shards) >> _HASH_BITS)

    def shards_of(self, label: str) -> range:
        """Return the shards of the domains with a label; with the empty one, of those without."""
        return self._ranges[label]

    def label_of_shard(self, shard: int) -> str:
        return next(label for label, shards in self._ranges.items() if shard in shards)


def joined_labels(labels: Sequence[str]) -> str:
    """Return the labels of a node as one text, as the shared ledger has them."""
    return ",".join(dict.fromkeys(labels))


def labels_in(text: str) -> frozenset[str]:
    return frozenset(text.split(",")) - {""}
