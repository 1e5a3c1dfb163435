"""How often does a page repeat its words, those of its title, and those of its address?

A *word* is what stands between blanks, `,;!?|"` and the punctuation of Unicode, without ASCII punctuation at its ends
and with ASCII letters in lower case. Of ideographs every two neighbours are a word, hiragana stands between words (it
is mostly grammar), and other scripts without blanks (Thai, Khmer) are read clause by clause: less is found in them,
and nothing wrongly. A *code* (with digits, inner punctuation, or capitals after small letters, as in `os.path`,
`12.50`, `QWidget`) counts as a word that occurs nowhere else: tables of numbers and indexes of names repeat nothing.

Words of lines with `MIN_LINE` and more are *running* text, of which those with `MIN_LONG` are *long*. These are
counted by themselves: entries of menus and cells of tables return without being spam. *Keywords* are the words of the
title and of the address with `MIN_KEY_BYTES` and more; in these, `-_/.+&=:~` stand between words, too. Only a sample
of a text is read: its first `HEAD_WORDS` words, and the last `TAIL_BYTES`. `_words.c` does the same in 10 µs, instead
of 1,000 here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from gossamer.foundation.expressions import expression
from gossamer.foundation.kernel import words_kernel

HEAD_BYTES = 3_072
HEAD_WORDS = 160
TAIL_BYTES = 640
TAIL_WORDS = 90
MIN_LINE = 6  # words
MIN_PARAGRAPH = 12
MIN_LONG = 25
KEY_BYTES = 1_024  # of the title, and of the address
MAX_KEYS = 24  # words of the title, and as many of the address
MIN_KEY_BYTES = 4
_SEPARATOR = (
    rb"[\x00-\x20\x7f,;!?|\"]|\xc2[\x00-\xff]|\xe2\x80[\x00-\xff]|\xe3[\x80\x81][\x00-\xff]|\xe3\x82[\x80-\x9f]"
    rb"|\xef\xbc[\x00-\xff]"
)
_IDEOGRAPH = rb"[\xe4-\xe9][\x80-\xff]{2}|\xe3[\x90-\xbf][\x80-\xff]"
_RUN = rb"(?:%b)+|(?P<ideographs>(?:%b)+)|(?P<word>(?:(?!%b|%b)[\x00-\xff])+)" % (
    _SEPARATOR,
    _IDEOGRAPH,
    _SEPARATOR,
    _IDEOGRAPH,
)
_ENDS = bytes(byte for byte in range(0x21, 0x80) if not chr(byte).isalnum())
_KEY_BLANKS = bytes.maketrans(b"-_/.+&=:~", b"         ")
_CODE = expression(rb"[^a-zA-Z\x80-\xff'-]")
_INNER_CAPITAL = expression(rb"(?s).+[A-Z]")
_SMALL = expression(rb"[a-z]")
_FOLD = 0x9E3779B97F4A7C15
_MIX = 0xD6E8FEB86659FD93
_MASK = (1 << 64) - 1


class Repetition(Struct, frozen=True, gc=False):
    """The words of a page, counted."""

    words: int  # in the sample, with codes
    codes: int
    distinct: int  # words, with each code
    hits: int  # words that are keywords
    top: bytes  # the most frequent keyword
    top_hits: int
    echoes: int  # of the most frequent word of the address, in the first part
    rest: int  # hash of the lines of the first part with `MIN_PARAGRAPH` words, without keywords and codes
    rest_words: int  # in that
    tail_words: int  # in the last part, like the next
    tail_distinct: int
    tail_hits: int
    run: int  # words of running text: of lines with `MIN_LINE` and more, which menus and tables have not
    run_codes: int
    run_distinct: int  # with each code
    long_run: int  # words of lines with `MIN_LONG` and more, which rows of tables have not
    long_distinct: int  # with each code
    tail_long: int  # of the last part, like the next
    tail_long_distinct: int

    @property
    def vocabulary(self) -> float:
        """The share of the words that are new where they stand."""
        return self.distinct / self.words

    @property
    def keyword_share(self) -> float:
        return self.hits / self.words


def repetition_of(text: bytes, title: bytes, url: bytes) -> Repetition:
    """Return the counts of a text in UTF-8, given its title and its address (without the domain), in UTF-8 too."""
    return Repetition(*_count(text, title, url))


def plain_repetition(
    text: bytes, title: bytes, url: bytes, /
) -> tuple[int, int, int, int, bytes, int, int, int, int, int, int, int, int, int, int, int, int, int, int]:
    """Return the fields of `Repetition`; in pure Python."""
    of_title = _keys(title)
    of_url = _keys(url)
    keys = dict.fromkeys([*of_title, *of_url])
    counted = _Counts(keys)
    end = 0
    for token, stop in _words(text[:HEAD_BYTES], HEAD_WORDS):
        if token is None:
            counted.end_line(in_head=True)
            continue
        counted.add(token, in_head=True)
        end = stop
    counted.end_line(in_head=True)
    if counted.words < HEAD_WORDS:
        end = min(len(text), HEAD_BYTES)
    rest = text[max(end, len(text) - TAIL_BYTES) :]
    blank = re.search(rb"[\x00-\x20]", rest)
    for token, _ in _words(rest[blank.start() :] if blank else b"", TAIL_WORDS):
        if token is None:
            counted.end_line(in_head=False)
        else:
            counted.add(token, in_head=False)
    counted.end_line(in_head=False)
    top = max(keys, key=lambda each: counted.count.get(each, 0), default=b"")
    top_hits = counted.count.get(top, 0)
    return (
        counted.words,
        counted.codes,
        counted.codes + len(counted.count),
        sum(counted.count.get(each, 0) for each in keys),
        top if top_hits else b"",
        top_hits,
        max((counted.head.get(each, 0) for each in of_url), default=0),
        counted.rest,
        counted.rest_words,
        counted.tail_words,
        counted.tail_codes + len(counted.tail),
        sum(counted.tail.get(each, 0) for each in keys),
        counted.run.words,
        counted.run.codes,
        counted.run.codes + len(counted.run.different),
        counted.long.words,
        counted.long.codes + len(counted.long.different),
        counted.tail_long.words,
        counted.tail_long.codes + len(counted.tail_long.different),
    )


class _Lines:
    """The words of some lines."""

    def __init__(self) -> None:
        self.words = self.codes = 0
        self.different: set[bytes] = set()

    def add(self, line: list[bytes]) -> None:
        self.words += len(line)
        self.codes += line.count(b"")
        self.different.update(filter(None, line))


class _Counts:
    """The words so far."""

    def __init__(self, keys: dict[bytes, None]) -> None:
        self._keys = keys
        self.words = self.codes = self.tail_words = self.tail_codes = self.rest = self.rest_words = 0
        self.count: dict[bytes, int] = {}
        self.head: dict[bytes, int] = {}
        self.tail: dict[bytes, int] = {}
        self.run = _Lines()
        self.long = _Lines()
        self.tail_long = _Lines()
        self._line: list[bytes] = []

    def end_line(self, *, in_head: bool) -> None:
        line = self._line
        self._line = []
        if len(line) >= MIN_LINE:
            self.run.add(line)
        if in_head and len(line) >= MIN_PARAGRAPH:
            for word in line:
                if word and word not in self._keys:
                    self.rest = (self.rest * _FOLD + _hash(word)) & _MASK
                    self.rest_words += 1
        if len(line) >= MIN_LONG:
            self.long.add(line)
            if not in_head:
                self.tail_long.add(line)

    def add(self, word: bytes, *, in_head: bool) -> None:
        self._line.append(word)
        self.words += 1
        self.tail_words += not in_head
        if not word:
            self.codes += 1
            self.tail_codes += not in_head
            return
        self.count[word] = self.count.get(word, 0) + 1
        if in_head:
            self.head[word] = self.head.get(word, 0) + 1
        else:
            self.tail[word] = self.tail.get(word, 0) + 1


def _keys(text: bytes) -> list[bytes]:
    cut = text[:KEY_BYTES].translate(_KEY_BLANKS)
    return [word for word, _ in _words(cut, MAX_KEYS) if word is not None and len(word) >= MIN_KEY_BYTES]


def _words(text: bytes, limit: int) -> Iterator[tuple[bytes | None, int]]:
    """Yield the words of a text, and where the run that each belongs to ends; a code is empty, a new line None."""
    seen = 0
    for match in re.finditer(_RUN, text):
        if match.lastgroup is None and b"\n" in match[0]:
            yield None, match.end()
        for word in _of_run(match):
            yield word, match.end()
            seen += 1
            if seen >= limit:
                return


def _of_run(match: re.Match[bytes]) -> Iterator[bytes]:
    run = match["ideographs"]
    if run is not None:
        if len(run) == 3:
            yield run
        for at in range(0, len(run) - 3, 3):
            yield run[at : at + 6]
        return
    word = (match["word"] or b"").strip(_ENDS)
    if word:
        is_code = _CODE.search(word) or (_SMALL.search(word) and _INNER_CAPITAL.match(word))
        yield b"" if is_code else word.lower()


def _hash(word: bytes) -> int:
    value = len(word) * _FOLD & _MASK
    chunks = max(2, -(-len(word) // 8))
    for at in range(0, 8 * chunks, 8):
        value = (value ^ int.from_bytes(word[at : at + 8], "little")) * _MIX & _MASK
        value ^= value >> 29
    return value or 1


_count = words_kernel.repetition if words_kernel is not None else plain_repetition
