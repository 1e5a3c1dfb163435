"""A crawl of a small site, and what a verb answers about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.inspect.folders import said


class Crawled(Struct):
    """A crawl of a site."""

    site: str
    path: Path

    def answer(
        self, capsys: pytest.CaptureFixture[str], verb: str, *words: str
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the first line of a verb's JSON, and the others, with paths instead of URLs of the site."""
        status, out, err = said(capsys, verb, self.path, *words, "--json")
        assert err == ""
        assert status == (1 if "--broken" in words and len(out.splitlines()) > 1 else 0)
        head, *lines = (json.loads(line.replace(self.site, "/")) for line in out.splitlines())
        return head, lines
