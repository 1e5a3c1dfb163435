"""Public test vectors, read from beside the project; where they are not, their tests are skipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "vectors"


def load(name: str) -> dict[str, Any]:
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"public vectors are not there: {path}")
    vectors: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return vectors
