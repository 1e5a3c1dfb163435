"""Who is crawling? Required for public hosts; asked once on a terminal, then stored."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from gossamer.model.errors import UsageError
from gossamer.settings.identity import remembered_contact, remembered_path
from gossamer.settings.model import Settings
from gossamer.settings.seeds import Seed, needs_contact


def with_contact(settings: Settings, seeds: Sequence[Seed]) -> Settings:
    """Return the settings with a contact, if the seeds need one."""
    if settings.contact or not any(needs_contact(seed) for seed in seeds):
        return settings
    path = remembered_path()
    contact = remembered_contact()
    if not contact:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(
                "a crawl of public hosts needs --contact URL-OR-MAIL, so that webmasters can reach you; "
                "expected --contact you@example.org"
            )
        contact = _ask(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contact + "\n", "utf-8")
    return replace(settings, contact=contact)


def _ask(path: Path) -> str:
    print(
        "Webmasters should be able to reach you. The contact is part of the User-Agent of every request.",
        file=sys.stderr,
    )
    print(f"It is stored in {path}; --contact overrides it.", file=sys.stderr)
    while True:
        print("Your contact (a URL or mail address): ", end="", file=sys.stderr, flush=True)
        contact = sys.stdin.readline().strip()
        if not contact:
            raise UsageError("no contact given; nothing was started")
        if "@" in contact or contact.startswith(("http://", "https://")):
            return contact
        print(f"{contact!r} is neither; expected https://example.org/bot or you@example.org", file=sys.stderr)
