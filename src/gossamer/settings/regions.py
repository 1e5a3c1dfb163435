"""From the texts of `--region` to rules. An error is one line.

`use_regions` is the one place that sets the rules of a process: a crawl, a node or a reader calls it as soon as it
knows the settings of its crawl, also if they have no rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gossamer.core.cluster.regions import EVERY, MAX_LABELS, RegionRule, Regions
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.identity import divide
from gossamer.model.errors import UsageError
from gossamer.settings.model import Settings

EXPECTED = "expected .de=LABEL, example.org=LABEL, country:DE,FR=LABEL or *=LABEL"
_LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}"
_COUNTRY = r"[A-Z]{2}"
_NAME = r"(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?|\[[0-9a-f:.]+\]"


def rules_of(settings: Settings) -> tuple[RegionRule, ...]:
    """Return the rules of a crawl, in their order."""
    return tuple(_rule_from(text) for text in settings.region)


def regions_of(settings: Settings) -> Regions | None:
    """Return the regions of a crawl; None if it has none."""
    return Regions(rules_of(settings), is_strict=settings.strict_regions) if settings.region else None


def use_regions(settings: Settings) -> Regions | None:
    """Divide the shards as the crawl with these settings does, in this process from now on; return its regions."""
    regions = regions_of(settings)
    divide(regions)
    return regions


def check_regions(texts: Sequence[str], *, is_strict: bool) -> None:
    """Raise if rules are wrong, or one of them can have no effect."""
    if is_strict and not texts:
        raise UsageError("strict-regions: there are no regions; expected --region RULE=LABEL as well")
    rules = [_rule_from(text) for text in texts]
    regions = Regions(rules)
    if len(regions.labels) > MAX_LABELS + 1:
        raise UsageError(f"region: {len(regions.labels) - 1} labels; at most {MAX_LABELS} are possible")
    for number, rule in enumerate(rules):
        matches = {regions.first_match("", code) for code in rule.countries} or {regions.first_match(rule.name)}
        first = next(iter(matches))
        if number not in matches and first is not None:
            raise UsageError(
                f"region = {texts[number]!r}: has no effect: {texts[first]!r} before it matches the same domains, and "
                "the first match decides"
            )


def refuse_regions(settings: Settings) -> None:
    """Raise if a crawl on one machine has regions."""
    if settings.region:
        raise UsageError("--region divides a crawl between many machines; expected --ledger URL as well")


def check_label(label: str, where: str) -> str:
    """Return a label; raise if it cannot be one."""
    if not re.fullmatch(_LABEL, label):
        raise UsageError(
            f"{where}: {label!r} is not a label; expected up to 32 letters, digits and ._-, a letter or digit first"
        )
    return label


def _rule_from(text: str) -> RegionRule:
    where = f"region = {text!r}"
    rule, equals, label = text.rpartition("=")
    if not equals or not rule:
        raise UsageError(f"{where}: not a rule with a label; {EXPECTED}")
    if rule.startswith("country:"):
        return RegionRule(rule, check_label(label, where), _countries_from(rule.removeprefix("country:"), where))
    return RegionRule(_name_from(rule, label, where), check_label(label, where))


def _countries_from(text: str, where: str) -> tuple[str, ...]:
    codes = tuple(dict.fromkeys(text.upper().split(",")))
    for code in codes:
        if not re.fullmatch(_COUNTRY, code):
            raise UsageError(f"{where}: {code!r} is not the code of a country; expected country:DE or country:DE,FR")
    return codes


def _name_from(rule: str, label: str, where: str) -> str:
    """Return the name that domains must end in."""
    if rule == "*":
        return EVERY
    is_end = rule.startswith((".", "*."))
    name = _in_ascii(rule.removeprefix("*").removeprefix("."))
    if not re.fullmatch(_NAME, name):
        raise UsageError(f"{where}: not a domain; {EXPECTED}")
    domain = registrable_domain(name)
    if domain != name:
        raise UsageError(
            f"{where}: {name} is part of the domain {domain}, and all hosts of a domain have the same label; "
            f"expected {domain}={label}"
        )
    if not is_end and registrable_domain(f"x.{name}") != name and not _is_address(name):
        raise UsageError(
            f"{where}: {name} is a public suffix, below which every name is a domain; expected .{name}={label}"
        )
    return name


def _is_address(name: str) -> bool:
    return name[0] == "[" or name.rpartition(".")[2].isdigit()


def _in_ascii(name: str) -> str:
    if name.isascii():
        return name.lower()
    import ada_url

    return ada_url.idna_to_ascii(name).decode("ascii")
