"""`gossamer traps DIR`: URL patterns in quarantine and hosts with spam, with samples; `--release` ends one, or all.

A pattern is in quarantine because its URLs produced nothing new; its samples show whether that is right.
"""

from __future__ import annotations

import argparse
import sys

import msgspec

from gossamer.cli.opening import add_crawl, open_view
from gossamer.cli.steer.steer import obey
from gossamer.core.ledger.tables import QUARANTINES
from gossamer.core.traps.quarantine import SPAM_PATTERN, Quarantine
from gossamer.model.commands import ReleasePattern
from gossamer.model.state import ALL_PATTERNS
from gossamer.telemetry.text import plural, printable


def configure(parser: argparse.ArgumentParser) -> None:
    add_crawl(parser, reads_folders=False)
    parser.add_argument(
        "--release",
        nargs="?",
        const=ALL_PATTERNS,
        metavar="PATTERN",
        help="queue the URLs of this pattern or host (NAME:spam), or of all; they are not quarantined again",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per pattern")


def run(arguments: argparse.Namespace) -> int:
    if arguments.release is not None:
        return obey(arguments.dir, ReleasePattern(arguments.release))
    with open_view(arguments) as crawl:
        quarantines = list(crawl.ledger.records(QUARANTINES))
    for quarantine in sorted(quarantines, key=lambda each: -each.held):
        _show(quarantine, as_json=arguments.json)
    in_force = [each for each in quarantines if not each.is_released]
    held = sum(each.pattern != SPAM_PATTERN for each in in_force)
    spam = len(in_force) - held
    hosts = f"; {plural(spam, 'host')} with spam" if spam else ""
    print(
        (f"{plural(held, 'pattern')} in quarantine" if held else "no pattern is in quarantine") + hosts, file=sys.stderr
    )
    return 0


def _show(quarantine: Quarantine, *, as_json: bool) -> None:
    if as_json:
        fields = {name: getattr(quarantine, name) for name in quarantine.__struct_fields__}
        print(msgspec.json.encode({"name": quarantine.name, **fields}).decode())
        return
    state = "released" if quarantine.is_released else f"{plural(quarantine.held, 'URL')} held"
    if quarantine.demotes_only and not quarantine.is_released:
        state = "demoted"
    pages = plural(quarantine.fetched, "page")
    why = printable(quarantine.reason, 500) or f"{quarantine.new} of {pages} had new content"
    print(f"{printable(quarantine.name, 500)}  {state}; {why}")
    if quarantine.samples:
        kind = "are spam" if quarantine.pattern == SPAM_PATTERN else "were fetched"
        print(f"  pages of this {'host' if kind == 'are spam' else 'pattern'} that {kind}:")
    for sample in quarantine.samples:
        print(f"    {printable(sample, 500)}")
