"""Errors of our own in the page's process: each concerns one answer or one turn, and never ends the process."""

from __future__ import annotations

import sys

from gossamer.telemetry.text import printable


def fault(where: str, error: Exception, verb: str = "ui") -> str:
    """Print an error of our own in one line; return it for whoever waits for the answer."""
    text = f"{type(error).__name__}: {printable(str(error))}"
    print(f"gossamer {verb}: {printable(where)}: {text}", file=sys.stderr, flush=True)
    return f"an error of the {'page' if verb == 'ui' else 'server'}'s own: {text}"
