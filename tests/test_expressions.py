"""Our regular expressions mean the same on every Python, and take linear time (docs/decisions/051)."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.core import robots
from gossamer.expressions import expression
from gossamer.fetch import chunked_transfer
from gossamer.parse import dispatch, feed_type, pdf, sitemap

SOURCE = Path(__file__).resolve().parent.parent / "src"
PATTERN_FIRST = ("compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")
TAKE_A_PATTERN = {"expression", *(f"re.{name}" for name in PATTERN_FIRST)}
# Those with patterns of callers, of users, which RE2 accepts (it has neither kind of group), or with parts that are
# checked.
PUT_TOGETHER = {"expressions.py", "core/patterns.py", "core/scope.py", "web/routes.py"}
_parser, _opcodes = importlib.import_module("re._parser"), importlib.import_module("re._constants")
ONE_CHARACTER = {_opcodes.LITERAL, _opcodes.NOT_LITERAL, _opcodes.ANY, _opcodes.IN}


def _steps(parsed: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the steps of a parsed pattern, those within others too: each is an operation with its argument."""
    if isinstance(parsed, _parser.SubPattern):
        for step in parsed:
            yield step
            yield from _steps(step[1])
    elif isinstance(parsed, tuple | list):
        for each in parsed:
            yield from _steps(each)


def _has_possessive(pattern: str | bytes) -> bool:
    return any(step is _opcodes.POSSESSIVE_REPEAT for step, _ in _steps(_parser.parse(pattern)))


def _is_faulty(pattern: str | bytes) -> bool:
    """Return whether there is an atomic group, or a possessive quantifier behind more than one character."""
    return any(
        step is _opcodes.ATOMIC_GROUP
        or (step is _opcodes.POSSESSIVE_REPEAT and not (len(body[2]) == 1 and body[2][0][0] in ONE_CHARACTER))
        for step, body in _steps(_parser.parse(pattern))
    )


def _patterns_of(path: Path) -> Iterator[tuple[int, str | bytes]]:
    """Yield the patterns in a module, each with its line; those that are put together as the module has them."""
    tree = ast.parse(path.read_text())
    tables = {
        call: loop.iter
        for loop in ast.walk(tree)
        if isinstance(loop, ast.For)
        for call in ast.walk(loop)
        if isinstance(call, ast.Call) and call.args and ast.unparse(call.args[0]) == ast.unparse(loop.target)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in TAKE_A_PATTERN and node.args:
            written = node.args[0]
            if isinstance(written, ast.Constant) and isinstance(written.value, str | bytes):
                yield node.lineno, written.value
            elif str(path.relative_to(SOURCE / "gossamer")) not in PUT_TOGETHER:
                module = importlib.import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts))
                found = eval(ast.unparse(tables.get(node, written)), vars(module))
                yield from ((node.lineno, each) for each in (found if node in tables else [found]))


@pytest.fixture(scope="module")
def patterns() -> list[tuple[str, int, str | bytes]]:
    """All patterns in the sources, each with its place."""
    found = [
        (str(path.relative_to(SOURCE)), line, pattern)
        for path in sorted(SOURCE.rglob("*.py"))
        for line, pattern in _patterns_of(path)
    ]
    assert len(found) > 150
    return found


def test_no_group_is_possessive_or_atomic(patterns: list[tuple[str, int, str | bytes]]) -> None:
    assert [each for each in patterns if _is_faulty(each[2])] == []


def test_every_expression_with_a_possessive_quantifier_is_compared_here(
    patterns: list[tuple[str, int, str | bytes]],
) -> None:
    compared = [each.ours.pattern for each in EXPRESSIONS.values()]
    others = {place for place, _, pattern in patterns if _has_possessive(pattern) and pattern not in compared}
    assert others == {"gossamer/interpreter.py"}  # where it is the question


@pytest.mark.parametrize(
    ("pattern", "is_faulty"),
    [
        (r"a*+[^b]++.?+\d{2,3}+", False),
        (r"(?:a*+b)*", False),
        (r"(a*+)", False),
        (r"x(?:ab)*+", True),
        (r"(?:[^\S\n]|\0)*+", True),
        (rb"(?:x|(y(?:a|bc)?+))*", True),
        (r"(?=(?>a))", True),
        (r"(a)?(?(1)(?>b)|c)", True),
    ],
)
def test_the_check_finds_groups_wherever_they_are(pattern: str | bytes, is_faulty: bool) -> None:
    assert _is_faulty(pattern) is is_faulty


def test_an_expression_is_compiled_when_it_is_first_used() -> None:
    word, wrong = expression(rb"(\w+) ", re.IGNORECASE), expression("(")
    assert "search" not in vars(word)
    match = word.search(b"some words")
    assert match is not None
    assert match[1] == b"some"
    assert vars(word)["search"].__self__ is re.compile(rb"(\w+) ", re.IGNORECASE)
    assert (word.pattern, word.groups, word.sub(b"", b"a b")) == (rb"(\w+) ", 1, b"b")
    with pytest.raises(re.error):
        wrong.match("")


def test_the_spaces_before_a_line_of_robots_txt_are_those_of_unicode() -> None:
    chars = [chr(code) for code in range(sys.maxunicode + 1)]
    skipped = {char for char in chars if re.match(robots._LINE, f"\n{char}Allow:")}
    assert skipped == {char for char in chars if char.isspace()} - {"\n"} | {"\0"}


@dataclass(frozen=True)
class Expression:
    """An expression with possessive quantifiers, the same one for RE2, and what texts are made of."""

    ours: re.Pattern[Any]
    same: Any
    pieces: tuple[str, ...]
    use: Callable[[Any], object]  # as the module does

    def text(self, pieces: Sequence[str]) -> Any:
        text = "".join(pieces)
        return text.encode("latin-1") if isinstance(self.ours.pattern, bytes) else text


_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
BLANK = r"\t\v\f\r\x1c-\x1f \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
EXPRESSIONS = {
    "robots": Expression(
        re.compile(robots._LINE),
        re2.compile(rf"\n([\0{BLANK}]*(?i:user|allow|di[sa]s?[al]|crawl|site|content-)[^\n]*)"),
        ("\n", " ", "\t", "\0", "\u2028", "User", "disa", "dial", "site", "content-", "x", "Allow: /"),
        lambda text: list(re.finditer(robots._LINE, text)),
    ),
    "Link": Expression(
        re.compile(dispatch._LINK_HEADER),
        re2.compile(r'<([^<>]*)>([^,<"]*(?:"[^"]*"[^,<"]*)*)'),
        ("<", ">", '"', ",", ";", " rel=", "next", "</a>", '"a, b"'),
        lambda text: re.findall(dispatch._LINK_HEADER, text),
    ),
    "list of URLs": Expression(
        sitemap._URL_LINE,
        re2.compile(rf"(?i)https?://[^\n{BLANK}]+|[A-Z0-9\-]+(?:\.[A-Z0-9\-]+){{1,126}}(?::[0-9]+)?/[^\n{BLANK}]*"),
        ("http://", "HTTPS://", "a", "x.y", ".", "b-c", ":", "80", "/", " ", "a.", "\u2003", "\0"),
        sitemap._URL_LINE.fullmatch,
    ),
    "PDF": Expression(
        pdf._URI,
        re2.compile(rb"(?s)/URI[\s\v]*(?:\(((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*)\)|<([0-9A-Fa-f\s\v]{2,})>)", _BYTES),
        ("/URI", "/URI(", "(", ")", "\\", "a", "bc", "<", ">", "4a", "(a)", "(\\)", "\n", "\v", "\xe9"),
        lambda text: pdf._URI.match(text, 0, pdf._MAX_URI_BYTES),
    ),
    "feed": Expression(
        feed_type._ROOT,
        re2.compile(
            rb"(?:\xef\xbb\xbf)?[\s\v]*(?:<(?:\?[^>]*|!--(?:[^-]|-[^-]|--+[^->])*---*|!DOCTYPE[^>]*)>[\s\v]*){0,20}"
            rb"<(?:(rss)|(?:[A-Za-z]\w{0,15}:)?(feed)|rdf:(RDF))[\s\v>]",
            _BYTES,
        ),
        (
            "<?xml ?>",
            "<!--",
            "-->",
            "-",
            ">",
            "<!DOCTYPE rss>",
            "<!",
            " ",
            "\v",
            "<rss>",
            "<a:feed ",
            "<rdf:RDF\n",
            "a",
            "\xef\xbb\xbf",
        ),
        lambda text: feed_type._ROOT.match(text[: feed_type._HEAD_BYTES]),
    ),
    "chunk": Expression(
        chunked_transfer._CHUNK_SIZE,
        re2.compile(rb"(?:0+|0*([1-9A-Fa-f][0-9A-Fa-f]{0,14}))[ \t]*(?:;[^\n]*|\r?)\n", _BYTES),
        ("0", "00", "a", "F1", "123456789abcdef", " ", "\t", ";", "x", "\r", "\n", "\r\n"),
        chunked_transfer._CHUNK_SIZE.fullmatch,
    ),
}


def _parts(match: Any) -> object:
    """Return where a match is and what its groups are; an empty one is like none."""
    return match and (match.span(), [group or None for group in match.groups()])


@pytest.mark.parametrize("name", EXPRESSIONS)
@settings(max_examples=500)
@given(data=st.data())
def test_expressions_mean_what_they_mean_to_an_engine_without_backtracking(name: str, data: st.DataObject) -> None:
    expression = EXPRESSIONS[name]
    ours, same = expression.ours, expression.same
    text = expression.text(data.draw(st.lists(st.sampled_from(expression.pieces), max_size=12)))
    assert _parts(ours.match(text)) == _parts(same.match(text))
    assert _parts(ours.fullmatch(text)) == _parts(same.fullmatch(text))
    assert [_parts(match) for match in ours.finditer(text)] == [_parts(match) for match in same.finditer(text)]


def _seconds(use: Callable[[Any], object], text: Any) -> float:
    taken = []
    for _ in range(3):
        began = time.process_time()
        use(text)
        taken.append(time.process_time() - began)
    return min(taken)


def _is_quadratic(use: Callable[[Any], object], text: Callable[[int], Any]) -> bool:
    """Return whether four times the text takes eight times as long, and over 5 ms: linear ones take up to 0.5."""
    long_s = _seconds(use, text(16_000))
    return long_s > 0.005 and long_s > 8 * _seconds(use, text(4_000))


@pytest.mark.timed
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_no_text_takes_more_than_linear_time(name: str) -> None:
    expression = EXPRESSIONS[name]

    def text(first: str, again: str, size: int) -> Any:
        return expression.text([first, again * (size // len(again)), "x"])

    pairs = list(product(("", *expression.pieces), expression.pieces))
    assert [pair for pair in pairs if _is_quadratic(expression.use, partial(text, *pair))] == []


@pytest.mark.timed
def test_an_expression_that_tries_again_is_found() -> None:
    fickle = re.compile(rb"0*0*\n")
    assert _is_quadratic(fickle.match, lambda size: b"0" * size + b"x")
