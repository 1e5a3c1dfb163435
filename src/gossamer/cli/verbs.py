"""The verbs, and the parsers of their command lines."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Iterator, Sequence

from gossamer.telemetry.text import safe

# heading -> verb -> (module, what it does). Each module has `configure(parser)` and `run(arguments) -> int`. The verbs
# that most people need are the first under their heading: `gossamer --help` describes these, and names the others.
GROUPS = {
    "start": {
        "crawl": ("gossamer.cli.start.crawl", "start a crawl, or continue the one in --out"),
        "resume": ("gossamer.cli.start.resume", "continue a crawl that was stopped, or one that is paused"),
        "init": ("gossamer.cli.start.init", "write a commented configuration file with seeds and options"),
        "plan": ("gossamer.cli.start.plan", "what a crawl would take: pace, time, disk, memory"),
    },
    "watch and steer": {
        "status": ("gossamer.cli.steer.status", "the progress of a crawl"),
        "ui": ("gossamer.cli.steer.ui", "the dashboard of a crawl that runs or has ended, in a browser"),
        "stop": ("gossamer.cli.steer.stop", "end a running crawl cleanly, on all its nodes"),
        "pause": ("gossamer.cli.steer.pause", "make no more requests until a crawl is resumed"),
        "add": ("gossamer.cli.steer.add", "queue more seeds, or report pages that have changed"),
        "set": ("gossamer.cli.steer.set_limit", "change a limit of a crawl"),
        "pace": ("gossamer.cli.steer.pace", "set the time between requests to hosts"),
        "block": ("gossamer.cli.steer.block", "make no more requests to a host or domain"),
        "unblock": ("gossamer.cli.steer.unblock", "end a block, and continue there"),
        "retry": ("gossamer.cli.steer.retry", "queue the dead letters again and continue, or --list them"),
        "traps": ("gossamer.cli.steer.traps", "URL patterns in quarantine, with samples; --release one or all"),
        "notices": ("gossamer.cli.steer.notices", "accept notices of pages that have changed (IndexNow)"),
    },
    "look": {
        "fetch": ("gossamer.cli.look.fetch", "fetch one page and show everything"),
        "why": ("gossamer.cli.look.why", "the whole history of a URL"),
        "report": ("gossamer.cli.look.report", "the results of a crawl"),
        "missing": ("gossamer.cli.look.missing", "what is not there, and why: forbidden, failed, held back, cut off"),
        "links": (
            "gossamer.cli.look.links",
            "broken links, redirects, links out of the scope, and pages without links",
        ),
        "pages": ("gossamer.cli.look.pages", "pages that are slow, large, thin, deep, or lack a title of their own"),
        "sitemap": ("gossamer.cli.look.sitemap", "whether the sitemaps agree with what the crawl found"),
        "diff": ("gossamer.cli.look.diff", "what is new, changed, gone or moved between two crawls, or since a time"),
        "hosts": ("gossamer.cli.look.hosts", "the hosts of a crawl, or every request to one of them"),
        "robots": ("gossamer.cli.look.robots", "may a URL be fetched, and which line of robots.txt decides"),
        "url": ("gossamer.cli.look.url", "normal form, key, host, domain and scope of a URL"),
    },
    "hand over": {
        "export": ("gossamer.cli.handover.export", "pages, links, texts or the index, for other programs"),
        "search": ("gossamer.cli.handover.search", "search the pages of a crawl"),
        "feed": ("gossamer.cli.handover.feed", "what is new, changed or gone, with a cursor to continue from"),
        "rank": ("gossamer.cli.handover.rank", "which domains are important, by the links of the crawl's own pages"),
    },
    "check": {
        "audit": ("gossamer.cli.check.audit", "prove from the records that robots.txt and pace were respected"),
        "verify": ("gossamer.cli.check.verify", "check that archive, index and catalog agree"),
        "doctor": ("gossamer.cli.check.doctor", "check this machine and installation"),
    },
    "many machines": {
        "join": ("gossamer.cli.cluster.join", "take part in a crawl on many machines"),
        "leave": ("gossamer.cli.cluster.leave", "have a node hand its shards over and stop"),
        "init-cluster": (
            "gossamer.cli.cluster.init_cluster",
            "create what a ledger, catalog or feed needs on its servers",
        ),
        "migrate": ("gossamer.cli.cluster.migrate", "copy a stopped crawl between a folder and a ledger"),
    },
    "test bench": {
        "demo": ("gossamer.cli.bench.demo", "crawl the synthetic web"),
        "web": ("gossamer.cli.bench.web", "serve the synthetic web on loopback"),
        "chaos": ("gossamer.cli.bench.chaos", "kill crawls of the synthetic web, check that nothing is lost"),
        "bench": ("gossamer.cli.bench.bench", "measure what a page costs here: CPU, memory, stalls"),
        "simulate": ("gossamer.cli.bench.simulate", "a crawl in virtual time"),
    },
    "help": {
        "help": ("gossamer.cli.help", "all verbs, or what one does and takes; --man: the manual page"),
        "completion": ("gossamer.cli.completion", "completion of verbs and options, for bash, zsh or fish"),
    },
}
VERBS = {verb: entry for group in GROUPS.values() for verb, entry in group.items()}
_DESCRIBED = 3  # verbs per heading


# A URL with user and password. They may contain any character: what ends them is the last @.
_CREDENTIALS = r"(?:rediss?|postgresql|cassandra|kafka|mongodb(?:\+srv)?|s3)://(?P<all>.+@)|(?:https?|socks\w*)://(?P<web>[^/?#\s]+@)"


def printed(message: str, words: Sequence[str]) -> str:
    """Return a message that is safe on a terminal, and has no user or password of a URL on the command line."""
    for found in filter(None, (re.search(_CREDENTIALS, word, re.DOTALL) for word in words)):
        message = message.replace(found["all"] or found["web"], "")
    return safe(message)


_NOT_A_NUMBER = r"argument (?:-\w(?: \S+)?/)?(?P<name>\S+): invalid (?P<kind>int|float) value: '(?P<value>.*)'"
_NUMBERS = {"int": "a whole number", "float": "a number, as 2 or 0.5"}


def terminal_columns() -> int:
    """Return the width of help. argparse asks shutil, which takes 2 ms to import, whether help is printed or not."""
    if (stated := os.environ.get("COLUMNS", "")).isdecimal() and int(stated):
        return int(stated)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns or 80
    except (OSError, ValueError):
        return 80


class _Help(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_columns() - 2)


class Parser(argparse.ArgumentParser):
    """An argument parser with errors in one line."""

    words: Sequence[str] = ()  # that it parses

    def __init__(self, prog: str, description: str | None = None) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=_Help)

    def error(self, message: str) -> None:  # type: ignore[override]
        """Print what is wrong and where to find help; exit 2."""
        hint = f"see '{self.prog} --help'"
        if number := re.fullmatch(_NOT_A_NUMBER, message, re.DOTALL):
            message = f"{number['name']} {number['value']}: not a number"
            hint = f"expected {_NUMBERS[number['kind']]}"
        if message.startswith("unrecognized arguments: "):
            from difflib import get_close_matches

            close = get_close_matches(message.split()[2].partition("=")[0], self._option_string_actions, n=1)
            hint = f"did you mean '{close[0]}'?" if close else hint
        self.exit(2, printed(f"{self.prog}: {message}; {hint}\n", self.words))


def overview(described: int = _DESCRIBED) -> str:
    """Return the verbs under their headings, and describe the first of each."""
    lines = ["usage: gossamer VERB …", "", "A polite, crash-proof web crawler."]
    for heading, group in GROUPS.items():
        verbs = list(group)
        lines += ["", f"{heading}:"]
        lines += [f"  {verb:<13} {group[verb][1]}" for verb in verbs[:described]]
        lines += [f"  also: {', '.join(verbs[described:])}"] if verbs[described:] else []
    return "\n".join(lines)


def parser_of(verb: str) -> argparse.ArgumentParser:
    module, purpose = VERBS[verb]
    parser = Parser(f"gossamer {verb}", purpose)
    importlib.import_module(module).configure(parser)
    return parser


def options_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Return the options of a parser that are shown, in the order of its help."""
    for action in parser._actions:
        if action.option_strings and action.help != argparse.SUPPRESS:
            yield action
