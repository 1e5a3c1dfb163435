"""A user name and password in a URL: they are dropped, and the user learns what to use instead."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gossamer.settings.seeds import Seed
from gossamer.telemetry.text import printable


def report_credentials(seeds: Sequence[Seed]) -> None:
    """Print one line for each host whose seed had a user name or password."""
    for host in dict.fromkeys(seed.link.host for seed in seeds if seed.had_credentials):
        name = printable(host)
        print(
            f"gossamer: seed at {name}: its user name and password are dropped: they are neither stored nor sent; "
            f'instead, --config FILE with [[request]], host = "{name}", auth = "basic", user = "…", password-env = "…"',
            file=sys.stderr,
        )
