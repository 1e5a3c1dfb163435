"""Documents refer to what exists: files, modules, decisions."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "gossamer"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md"))]
_LAYERS = "|".join(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text("utf-8"))
    of_files = [link for link in links if "://" not in link and not link.startswith("reference/")]  # which are made
    assert [link for link in of_files if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_module_that_is_named_exists(document: Path) -> None:
    named = re.findall(rf"`((?:{_LAYERS})/[a-z_/]+)(?:\.py)?/?`", document.read_text("utf-8"))
    missing = [name for name in named if not (PACKAGE / f"{name}.py").is_file() and not (PACKAGE / name).is_dir()]
    assert missing == []


def test_decisions_are_numbered_without_gaps_and_their_titles_agree() -> None:
    decisions = sorted(ROOT.glob("docs/decisions/*.md"))
    numbers = [path.name[:3] for path in decisions]
    assert [number for number, count in Counter(numbers).items() if count > 1] == []
    assert numbers == [f"{number:03d}" for number in range(1, len(decisions) + 1)]
    for path in decisions:
        assert path.read_text("utf-8").startswith(f"# {path.name[:3]}: "), path.name
