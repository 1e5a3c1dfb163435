"""A site on loopback, and how it is crawled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.plain_site import Answer, PlainSite, plain_site


@pytest.fixture
def site() -> Iterator[PlainSite]:
    """A front page with three links: a page, one that is missing, one that is moved to a page with a link."""
    with plain_site() as site:
        site.answers["/robots.txt"] = Answer("User-agent: *\nDisallow: /private\n", content_type="text/plain")
        site.answers["/"] = Answer(
            "<title>Front</title><p>Welcome to the front page."
            '<a href="/a" rel="next">Page A</a> <a href="/gone">Gone</a> <a href="/moved">Moved</a>'
        )
        site.answers["/a"] = Answer("<title>A</title><p class=x>Überall</p>", content_type="text/html; charset=utf-8")
        site.answers["/moved"] = Answer(status=301, location="/target")
        site.answers["/target"] = Answer('<title>Target</title><p>Here <a href="/private/x">private</a>')
        yield site


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {"out": tmp_path / "c", "politeness_ms": 0, "traps": False, "max_wait": 3.0, "retry_wait": 0.01}
