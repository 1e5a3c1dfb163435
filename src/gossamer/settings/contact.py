"""The contact that the operator gave once: where it is stored."""

from __future__ import annotations

import os
from pathlib import Path


def remembered_path() -> Path:
    """Return the file in which the contact is stored."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "gossamer" / "contact"


def remembered_contact() -> str:
    """Return the contact that is stored; empty if there is none."""
    path = remembered_path()
    return path.read_text("utf-8").strip() if path.is_file() else ""
