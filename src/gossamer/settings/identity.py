"""Who is crawling: the User-Agent, the name by which robots.txt addresses it, and the contact that was given once."""

from __future__ import annotations

import os
from pathlib import Path

from gossamer import __version__
from gossamer.core.robots.rules import product_token
from gossamer.settings.model import Settings


def user_agent_of(settings: Settings) -> str:
    """Return the User-Agent header of a crawl."""
    contact = f" (+{settings.contact})" if settings.contact else ""
    return settings.user_agent or f"Gossamer/{__version__}{contact}"


def robots_token_of(settings: Settings) -> str:
    """Return the name by which robots.txt addresses a crawl: the product token of its User-Agent, in lower case."""
    return settings.robots_token.lower() or product_token(user_agent_of(settings))


def remembered_path() -> Path:
    """Return the file in which the contact is stored."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "gossamer" / "contact"


def remembered_contact() -> str:
    """Return the contact that is stored; empty if there is none."""
    path = remembered_path()
    return path.read_text("utf-8").strip() if path.is_file() else ""
