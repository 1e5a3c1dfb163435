"""Command lines in the documents: the program's own parsers accept them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.cli.verbs import VERBS, options_of, parser_of

ROOT = Path(__file__).parents[1]
_OTHER = ("decisions", "reference")  # what was decided at a time; what is made from the parsers
DOCUMENTS = [
    ROOT / "README.md",
    *(path for path in sorted(ROOT.glob("docs/**/*.md")) if path.parent.name not in _OTHER),
]
_BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"(?m)^(?:[$#] )?(?:\.venv/bin/)?gossamer (.*)$")
_IN_A_SENTENCE = re.compile(r"`gossamer ([^`]+)`")
_PLACEHOLDER = "…"  # for whatever else a reader wants to give


def _commands(text: str) -> Iterator[str]:
    """Return the commands in the blocks of a document, each up to a pipe or redirection."""
    for block in _BLOCK.findall(text):
        for command in _COMMAND.findall(block.replace("\\\n", " ")):
            yield re.split(r" [|>] ", command)[0].replace(_PLACEHOLDER, "")


def _mentions(text: str) -> Iterator[str]:
    """Return the commands in sentences and tables, which need not be complete."""
    for mention in _IN_A_SENTENCE.findall(_BLOCK.sub("", text)):
        yield " ".join(mention.split())


def _options(verb: str) -> set[str]:
    return {name for option in options_of(parser_of(verb)) for name in option.option_strings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_in_a_block_can_be_given(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = []
    for command in _commands(document.read_text("utf-8")):
        verb, *words = shlex.split(command, comments=True)
        try:
            parser_of(verb).parse_args(words)
        except SystemExit:
            refused.append(f"{command}: {capsys.readouterr().err}")
    assert refused == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_in_a_sentence_has_a_verb_and_options_that_exist(document: Path) -> None:
    unknown = []
    for mention in _mentions(document.read_text("utf-8")):
        verb = mention.split()[0]
        if verb.startswith("--") or verb in ("VERB", _PLACEHOLDER):
            continue
        named = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", mention))
        if verb not in VERBS or named - _options(verb):
            unknown.append(mention)
    assert unknown == []


def test_the_documents_have_commands() -> None:
    texts = [path.read_text("utf-8") for path in DOCUMENTS]
    assert sum(1 for text in texts for _ in _commands(text)) > 60
    assert sum(1 for text in texts for _ in _mentions(text)) > 170
