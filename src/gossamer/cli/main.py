"""The command line: verbs and their exit status.

Each verb has its own module, which is imported on demand, so that `gossamer url` starts
quickly. An error of usage is one line on stderr.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from gossamer import __version__
from gossamer.backends.local import damage
from gossamer.cli.verbs import VERBS, Parser, overview, printed
from gossamer.model.errors import GossamerError, as_our_error, damage_of
from gossamer.telemetry.text import safe, safe_output


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(f"{overview()}\n\n'gossamer help' describes all of them, 'gossamer VERB --help' the options of one.")
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        print(f"gossamer {__version__}")
        return 0
    verb = words[0]
    if verb not in VERBS:
        from difflib import get_close_matches  # 2 ms

        close = get_close_matches(verb, VERBS, n=1)
        hint = f"did you mean '{close[0]}'?" if close else "'gossamer help' lists them"
        print(f"gossamer: no verb '{safe(verb)}'; {hint}", file=sys.stderr)
        return 2
    return _run_verb(verb, words[1:])


def _run_verb(verb: str, words: Sequence[str]) -> int:
    gc.disable()  # until the verb runs: nothing that is loaded is garbage
    module = importlib.import_module(VERBS[verb][0])
    parser = Parser(f"gossamer {verb}", VERBS[verb][1])
    parser.words = words
    module.configure(parser)
    try:
        with safe_output():
            arguments = parser.parse_args(words)
            gc.freeze()  # else the next collection visits all of it: 15 ms
            gc.enable()
            return int(module.run(arguments))
    except GossamerError as error:
        print(f"gossamer {verb}: {printed(str(error), words)}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        ours = as_our_error(error)
        print(f"gossamer {verb}: {printed(str(ours), words)}", file=sys.stderr)
        return ours.exit_status
    except KeyboardInterrupt:
        return 11
    except Exception as error:
        damage = damage_of(error)
        if damage is None:
            raise
        print(f"gossamer {verb}: {printed(str(damage), words)}", file=sys.stderr)
        return damage.exit_status


def run_program() -> None:
    """Run the program and exit. Everything is stored when a verb returns, so the interpreter is not finalized."""
    damage.end_with_a_line(" ".join(("gossamer", *sys.argv[1:2])))
    status = main()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    run_program()
