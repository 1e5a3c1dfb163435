"""What follows for a host from the share of spam among its pages?

| level         | if                                                                                            |
|---------------|-----------------------------------------------------------------------------------------------|
| `DEMOTED`     | `MIN_SPAM` of its pages are spam, and half of all; or it has spam and belongs to a farm of     |
|               | hosts: `MIN_SIBLINGS` of its domain with spam and machine-made names, half of all pages spam  |
| `QUARANTINED` | `MIN_CLEAR_SPAM` of its pages are spam, and 80 % of all; or 80 % of all pages of such a farm   |

Near duplicates among its pages make the score higher, and machine-made names show a farm, but neither is a reason by
itself: mirrors, versions of a documentation, previews and CDNs have them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum

from msgspec import Struct

from gossamer.core.spam.names import is_machine_made
from gossamer.model.state import SpamTally

MIN_SPAM = 10  # pages
MIN_CLEAR_SPAM = 30
DEMOTED_FROM = 0.5  # of the pages
QUARANTINED_FROM = 0.8
MIN_SIBLINGS = 10  # hosts of the domain that have spam
MIN_MADE = 0.8  # of them
NEAR_FROM = 0.5  # of the pages
WEIGHT = 0.1  # of near duplicates, and of names
MIN_TEMPLATE_PAGES = 5  # with one text, before another one is a doorway
MAX_TEMPLATES = 16  # that are stored of a host
MAX_SAMPLES = 5


class SpamUse(StrEnum):
    DEMOTE = "demote"
    QUARANTINE = "quarantine"
    OFF = "off"


class Level(IntEnum):
    NONE = 0
    DEMOTED = 1
    QUARANTINED = 2


class HostVerdict(Struct, frozen=True):
    level: Level
    score: float = 0.0  # from 0 to 1
    reason: str = ""


NO_VERDICT = HostVerdict(Level.NONE)


def count_template(templates: dict[bytes, int], template: bytes) -> int:
    """Count a page with a template; return how many had it before. The rarest makes room."""
    before = templates.get(template, 0)
    if not before and len(templates) >= MAX_TEMPLATES:
        del templates[min(templates, key=lambda each: templates[each])]
    templates[template] = before + 1
    return before


def has_made_name(host: str, domain: str) -> bool:
    """Return whether a host's name within its domain looks made by a machine."""
    own = host[: -len(domain) - 1]
    return bool(own) and is_machine_made(own.rpartition(".")[2])


def judge_host(own: SpamTally, domain: SpamTally | None) -> HostVerdict:
    """Return what follows for a host; `domain` counts the pages of all hosts of its domain, if there are others."""
    by_itself = _by_pages(own)
    level = farm_level(domain) if domain is not None and own.spam else Level.NONE
    if domain is None or level <= by_itself.level:
        return by_itself
    reason = (
        f"{domain.spam} of {domain.pages} pages of its domain {domain.name} are spam, on {domain.hosts} hosts, "
        f"{domain.made} of them with machine-made names"
    )
    return HostVerdict(level, min(1.0, round(_share(domain.spam, domain.pages) + WEIGHT, 3)), reason)


def farm_level(domain: SpamTally) -> Level:
    """Return what is done with the hosts of a domain that have spam, because it is a farm of hosts."""
    share = _share(domain.spam, domain.pages)
    is_farm = domain.hosts >= MIN_SIBLINGS and domain.made >= MIN_MADE * domain.hosts
    if not is_farm or domain.spam < MIN_CLEAR_SPAM or share < DEMOTED_FROM:
        return Level.NONE
    return Level.QUARANTINED if share >= QUARANTINED_FROM else Level.DEMOTED


def _by_pages(own: SpamTally) -> HostVerdict:
    share = _share(own.spam, own.pages)
    if own.spam < MIN_SPAM or share < DEMOTED_FROM:
        return NO_VERDICT
    near = _share(own.near, own.seen)
    level = Level.QUARANTINED if own.spam >= MIN_CLEAR_SPAM and share >= QUARANTINED_FROM else Level.DEMOTED
    also = f", {near:.0%} of its pages repeat others" if near >= NEAR_FROM else ""
    reason = f"{own.spam} of {own.pages} pages are spam ({described(own.signals)}){also}"
    return HostVerdict(level, min(1.0, round(share + WEIGHT * (near >= NEAR_FROM), 3)), reason)


def described(signals: Mapping[str, int]) -> str:
    """Return how often which signal was given, the most frequent first."""
    ranked = sorted(signals.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ranked)


def _share(part: int, whole: int) -> float:
    return min(1.0, part / whole) if whole else 0.0
