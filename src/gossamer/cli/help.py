"""`gossamer help [VERB]`: all verbs, or what one does and takes; `--man` prints all of it as a manual page."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from difflib import get_close_matches

from gossamer import __version__
from gossamer.cli.verbs import VERBS, options_of, overview, parser_of
from gossamer.model.errors import UsageError

_STATUSES = (
    ("0", "finished, or stopped at a limit"),
    ("1", "no page could be fetched, or any other error"),
    ("2", "wrong usage"),
    ("3", "the disk is full"),
    ("11", "stopped by a signal or by gossamer stop"),
    ("13", "stopped by a second signal"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", metavar="VERB", nargs="?", help="the verb; without one: all verbs")
    parser.add_argument("--man", action="store_true", help="print the manual page, for man(1)")


def run(arguments: argparse.Namespace) -> int:
    if arguments.man:
        print("\n".join(manual()))
    elif arguments.verb is None:
        print("\n".join(_everything()))
    elif arguments.verb in VERBS:
        parser_of(arguments.verb).print_help()
    else:
        close = get_close_matches(arguments.verb, VERBS, n=1)
        hint = f"did you mean '{close[0]}'?" if close else "'gossamer help' lists them"
        raise UsageError(f"no verb '{arguments.verb}'; {hint}")
    return 0


def _everything() -> Iterator[str]:
    """Yield the lines of the help of the program: all verbs, and what they have in common."""
    yield overview(described=len(VERBS))
    yield "\nDIR is the folder of a crawl, or the URL of the ledger that its nodes share.\n"
    yield "exit status:"
    yield from (f"  {status:<13} {meaning}" for status, meaning in _STATUSES)
    yield "\n'gossamer help VERB' shows the options of a verb, 'gossamer help --man' all of them as a manual page."


def manual() -> Iterator[str]:
    """Return the lines of the manual page, made of the help of all verbs."""
    yield f'.TH GOSSAMER 1 "" "gossamer {__version__}" "User Commands"'
    yield from (".SH NAME", "gossamer \\- a polite, crash\\-proof web crawler")
    yield from (".SH SYNOPSIS", ".B gossamer", ".I VERB", "[options]")
    yield from (".SH DESCRIPTION", _roff("Seeds in; WARC archives, an index, a catalog and a report out."))
    yield ".SH VERBS"
    for verb, (_, purpose) in VERBS.items():
        yield from (f".SS {_roff(verb)}", _roff(purpose + "."))
        for option in options_of(parser_of(verb)):
            if "--help" not in option.option_strings:
                yield from (".TP", f".B {_roff(', '.join(option.option_strings))}", _help_of(option))
    yield ".SH EXIT STATUS"
    for status, meaning in _STATUSES:
        yield from (".TP", f".B {status}", _roff(meaning))


def _help_of(option: argparse.Action) -> str:
    text = (option.help or "").replace("%%", "%")
    return _roff(re.sub(r"%\(\w+\)s", "", text)) or "\\&"


def _roff(text: str) -> str:
    """Return a text as troff reads it: hyphens as typed, and no line that it would take for a command."""
    text = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
