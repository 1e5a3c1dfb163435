"""Who is crawling: asked for on a terminal, once, and remembered where the question said."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.cli.contact import with_contact
from gossamer.settings.model import Settings
from gossamer.settings.seeds import seeds_from

ASK = """
from gossamer.cli.contact import with_contact
from gossamer.settings.model import Settings
from gossamer.settings.seeds import seeds_from
print(with_contact(Settings(), seeds_from(["https://example.org/"])).contact)
"""


def _asked(typed: str, config: Path) -> tuple[str, str]:
    """Ask at a terminal; return what was on it, and which contact was taken."""
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ASK],
        stdin=inner,
        stderr=inner,
        stdout=subprocess.PIPE,
        env={**os.environ, "XDG_CONFIG_HOME": str(config)},
    )
    os.close(inner)
    os.write(outer, typed.encode())
    shown = b""
    try:
        while chunk := os.read(outer, 65536):
            shown += chunk
    except OSError:  # how Linux says that the other end is closed
        pass
    finally:
        os.close(outer)
    out, _ = process.communicate(timeout=30)
    return shown.decode(), out.decode().strip()


def test_the_question_says_where_the_answer_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "gossamer" / "contact"
    shown, contact = _asked("nobody\nyou@example.org\n", tmp_path)
    assert f"stored in {kept}; --contact overrides it" in shown
    assert "'nobody' is neither" in shown
    assert contact == "you@example.org"
    assert kept.read_text("utf-8") == "you@example.org\n"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert with_contact(Settings(), seeds_from(["https://example.org/"])).contact == "you@example.org"


def test_no_answer_starts_and_stores_nothing(tmp_path: Path) -> None:
    shown, contact = _asked("\n", tmp_path)
    assert "no contact given; nothing was started" in shown
    assert contact == ""
    assert not (tmp_path / "gossamer").exists()
