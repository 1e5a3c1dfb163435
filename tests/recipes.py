"""Applies the diffs of CONTRIBUTING.md to a copy of the package.

A hunk begins with `@@`, without numbers: it is applied where its lines are. One without lines that are there already is
an import, which goes below the first one of the module, or is added at the end.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]


def diff_of(recipe: str) -> str:
    """Return the diff of a section of CONTRIBUTING.md, by the beginning of its heading."""
    section = re.search(rf"(?ms)^## {re.escape(recipe)}\b.*?(?=^## |\Z)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert section is not None, recipe
    (diff,) = re.findall(r"(?ms)^```diff\n(.*?)^```", section[0])
    return str(diff)


def files_of(diff: str) -> list[str]:
    """Return the files that a diff changes or adds."""
    return re.findall(r"(?m)^\+\+\+ b/(\S+)$", diff)


def copy_of_package(folder: Path) -> Path:
    """Copy the package to a folder; return the checkout that it seems to be in."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    return folder


def apply(diff: str, checkout: Path) -> None:
    """Apply a diff; raises `AssertionError` if the code is not as it says."""
    for name, change in re.findall(r"(?ms)^\+\+\+ b/(\S+)\n(.*?)(?=^--- |\Z)", diff):
        path = checkout / name
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        for hunk in re.split(r"(?m)^@@.*\n", change)[1:]:
            lines = _with_hunk(lines, hunk.splitlines(), name)
        path.write_text("\n".join(lines) + "\n", "utf-8")


def _with_hunk(lines: list[str], hunk: list[str], name: str) -> list[str]:
    old = [line[1:] for line in hunk if not line.startswith("+")]
    new = [line[1:] for line in hunk if not line.startswith("-")]
    if old:
        places = [at for at in range(len(lines)) if lines[at : at + len(old)] == old]
        assert len(places) == 1, f"{name}: {len(places)} places for {old}"
        (at,) = places
    elif new[0].startswith(("from ", "import ")):
        at = next(at for at, line in enumerate(lines) if line.startswith(("from gossamer", "import ")))
    else:
        at = len(lines)
    return lines[:at] + new + lines[at + len(old) :]
