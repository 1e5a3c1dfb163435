"""Who is crawling: the User-Agent, and the name by which robots.txt addresses it."""

from __future__ import annotations

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
