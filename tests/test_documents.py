"""Documents refer to what exists: files, modules, decisions."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_SPEC = importlib.util.spec_from_file_location("docs_reference", ROOT / "packaging" / "docs_reference.py")
assert _SPEC is not None
assert _SPEC.loader is not None
docs_reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(docs_reference)
PACKAGE = ROOT / "src" / "gossamer"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md"))]
_LAYERS = "|".join(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())


def tracked() -> set[Path]:
    """Return the files of the checkout, and its folders; what is made, as `.venv` or `site`, is not among them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        files = {ROOT / name for name in listed.stdout.split("\0") if name}
    else:  # the sources without their history
        files = {path for path in ROOT.rglob("*") if path.is_file()}
    return files | {folder for path in files for folder in path.parents if folder.is_relative_to(ROOT)}


TRACKED = tracked()


def anchors_of(document: Path) -> set[str]:
    """Return the anchors of a document: those of headings are lower case, without punctuation, blanks as hyphens."""
    text = _without_blocks(document.read_text("utf-8"))
    headings = re.findall(r"(?m)^#+ +(.+?) *$", text)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    named = set(re.findall(r'<a id="([^"]+)">', text))
    return named | {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in plain}


def _without_blocks(text: str) -> str:
    return re.sub(r"(?ms)^```.*?^```", "", text)


def dead_link(document: Path, link: str) -> bool:
    """Return whether a link does not lead to a file of the checkout, or to a heading of it."""
    name, _, anchor = link.partition("#")
    target = Path(os.path.normpath(document.parent / name)) if name else document
    return target not in TRACKED or (bool(anchor) and target.suffix == ".md" and anchor not in anchors_of(target))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file_of_the_checkout(document: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)[^)]*\)", _without_blocks(document.read_text("utf-8")))
    assert [link for link in links if "://" not in link and dead_link(document, link)] == []


@pytest.mark.parametrize("link", ["../../shared/x.md", "site/index.html", "docs/none.md", "docs/api.md#none", "#none"])
def test_a_link_that_leads_nowhere_is_found(link: str) -> None:
    assert dead_link(ROOT / "README.md", link)
    assert not dead_link(ROOT / "README.md", "docs/operating.md#the-dashboard")


def test_the_readme_is_read_in_minutes() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 700
    assert len((ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()) <= 60


def test_the_examples_of_changes_start_from_the_code_as_it_is() -> None:
    blocks = re.findall(r"(?ms)^```diff\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    gone = []
    for block in blocks:
        for name, change in re.findall(r"(?ms)^--- a/(\S+)\n(.*?)(?=^--- |\Z)", block):
            lines = (ROOT / name).read_text("utf-8").splitlines()
            gone += [line for line in change.splitlines() if line[:1] in ("-", " ") and line[1:] not in lines]
    assert blocks
    assert gone == []


@pytest.mark.parametrize("name", docs_reference.PAGES)
def test_the_pages_that_are_made_from_the_program_say_what_it_does(name: str) -> None:
    """`make reference` writes them."""
    assert (ROOT / "docs" / name).read_text("utf-8") == docs_reference.text_of(name)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_module_that_is_named_exists(document: Path) -> None:
    named = re.findall(rf"`((?:{_LAYERS})/[a-z_/]+)(?:\.py)?/?`", document.read_text("utf-8"))
    missing = [name for name in named if not (PACKAGE / f"{name}.py").is_file() and not (PACKAGE / name).is_dir()]
    assert missing == []


def test_decisions_are_numbered_without_gaps_and_their_titles_agree() -> None:
    decisions = sorted(ROOT.glob("docs/decisions/[0-9]*.md"))
    numbers = [path.name[:3] for path in decisions]
    assert [number for number, count in Counter(numbers).items() if count > 1] == []
    assert numbers == [f"{number:03d}" for number in range(1, len(decisions) + 1)]
    for path in decisions:
        assert path.read_text("utf-8").startswith(f"# {path.name[:3]}: "), path.name
