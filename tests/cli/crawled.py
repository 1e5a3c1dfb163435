"""A crawl of a small site, and what a verb answers about it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.e2e.preloaded import GOSSAMER
from tests.reading.folders import said


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

    def unread(self, *words: str) -> tuple[int, bytes]:
        """Run a verb whose output nobody reads; return its exit status, and what it says on stderr."""
        command = [*GOSSAMER, words[0], str(self.path), *words[1:]]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            said = process.stderr.read()
        return process.returncode, said
