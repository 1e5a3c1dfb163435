"""Which language is a text in?

First the script, by Unicode ranges: many languages have a script of their own. Languages that
share one are distinguished by their function words and special letters (`language_words`).
Uses a sample of the text; returns an empty code if there is too little evidence. No model
files, no dependencies. About 0.2 ms per page.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from msgspec import Struct

from gossamer.parse.text.language_words import ARABIC, CYRILLIC, DEVANAGARI, LATIN, LETTERS

SAMPLE_CHARS = 3000
MIN_LETTERS = 12  # of an alphabet; three are enough if a character is a word
MIN_SHARE = 0.08  # of the words that have to be known
_FOR = 0.5  # weight of a letter; a word of one language alone has 1
_AGAINST = -0.5
_WORD = r"[^\W\d_]+(?:[\u0900-\u097f\u0300-\u036f]+[^\W\d_]*)*"

_ASCII_WORD = r"[a-z]+"  # the same in a text of ASCII, in a third of the time
_BEYOND_ASCII = r"[^\x00-\x7f]"
_NOT_LETTERS = bytes(set(range(128)) - set(b"abcdefghijklmnopqrstuvwxyz"))

# First and last code point, and the script's name; other characters are ignored.
_RANGES = (
    (0x41, 0x24F, "latin"),
    (0x370, 0x3FF, "el"),
    (0x400, 0x52F, "cyrillic"),
    (0x531, 0x58F, "hy"),
    (0x591, 0x5F4, "he"),
    (0x600, 0x6FF, "arabic"),
    (0x900, 0x97F, "devanagari"),
    (0x980, 0x9FF, "bn"),
    (0xA00, 0xA7F, "pa"),
    (0xA80, 0xAFF, "gu"),
    (0xB80, 0xBFF, "ta"),
    (0xC00, 0xC7F, "te"),
    (0xC80, 0xCFF, "kn"),
    (0xD00, 0xD7F, "ml"),
    (0xD80, 0xDFF, "si"),
    (0xE00, 0xE7F, "th"),
    (0xE80, 0xEFF, "lo"),
    (0x1000, 0x109F, "my"),
    (0x10A0, 0x10FF, "ka"),
    (0x1200, 0x137F, "am"),
    (0x1780, 0x17FF, "km"),
    (0x1E00, 0x1EFF, "latin"),
    (0x3040, 0x30FF, "kana"),
    (0x3400, 0x9FFF, "han"),
    (0xAC00, 0xD7AF, "ko"),
)
_SHARED = {"latin": LATIN, "cyrillic": CYRILLIC, "arabic": ARABIC, "devanagari": DEVANAGARI}


class DetectedLanguage(Struct, frozen=True, gc=False):
    """A guess: the ISO 639-1 code, empty for none, and the confidence, from 0 to 1."""

    code: str = ""
    confidence: float = 0.0


UNKNOWN = DetectedLanguage()


def detect_language(text: str) -> DetectedLanguage:
    """Return the language that most of a text is in."""
    sample = _sample(text)
    rare = Counter(
        () if sample.isascii() else re.findall(_BEYOND_ASCII, sample)
    )  # counting all characters takes longer than everything else
    scripts = _scripts(sample, rare)
    letters = sum(scripts.values())
    if not letters:
        return UNKNOWN
    # Japanese uses Chinese characters too, so kana decide; and both express more per character than an alphabet.
    if scripts["kana"] and scripts["kana"] * 10 >= scripts["han"]:
        scripts["kana"] += scripts.pop("han", 0)
    script, count = scripts.most_common(1)[0]
    share = count / letters
    if script in ("han", "kana", "ko"):
        return DetectedLanguage({"han": "zh", "kana": "ja"}.get(script, script), share) if count >= 3 else UNKNOWN
    if count < MIN_LETTERS:
        return UNKNOWN
    if script not in _SHARED:
        return DetectedLanguage(script, share)
    return _by_words(sample, rare, script, share)


def _sample(text: str) -> str:
    """Return the beginning and, of a long text, as much from its middle: the beginning may be a menu."""
    if len(text) <= SAMPLE_CHARS:
        return text.lower()
    half = SAMPLE_CHARS // 2
    middle = len(text) // 2
    return (text[:half] + " " + text[middle : middle + half]).lower()


def _scripts(sample: str, rare: Counter[str]) -> Counter[str]:
    """Return how many letters of each script there are; `rare` counts the characters beyond ASCII."""
    plain = sample.encode("ascii", "ignore").translate(None, _NOT_LETTERS)
    counts: Counter[str] = Counter({"latin": len(plain)})
    for char, number in rare.items():
        if char.isalpha():
            point = ord(char)
            name = next((name for first, last, name in _RANGES if first <= point <= last), "")
            if name:
                counts[name] += number
    return counts


def _by_words(sample: str, rare: Counter[str], script: str, share: float) -> DetectedLanguage:
    """Return the language of a script that matches the words and letters of a sample."""
    words = re.findall(_ASCII_WORD, sample) if sample.isascii() else re.findall(_WORD, sample)
    scores: dict[str, float] = dict.fromkeys(_SHARED[script], 0.0)
    known = _function_words(script)
    for word, number in Counter(words).items():
        if word in known:
            for code, weight in _weights(script, word):
                scores[code] += weight * number
    _add_letters(scores, rare, script)
    (best, score), (_, second) = sorted(scores.items(), key=lambda item: -item[1])[:2]
    if score < MIN_SHARE * len(words) or score <= second:
        return UNKNOWN
    return DetectedLanguage(best, round(share * score / (score + max(second, 0.0)), 3))


def _add_letters(scores: dict[str, float], rare: Counter[str], script: str) -> None:
    """Add to the scores of languages that have the letters, and subtract from those that have not."""
    if not rare:
        return
    owners = _letter_owners(script)
    for char, number in rare.items():
        having = owners.get(char)
        if having is None or len(having) == len(scores):
            continue
        for code in scores:
            scores[code] += number * (_FOR * len(having) ** -0.5 if code in having else _AGAINST)


@lru_cache(maxsize=4)
def _words_by_language(script: str) -> dict[str, frozenset[str]]:
    return {code: frozenset(words.split()) for code, words in _SHARED[script].items()}


@lru_cache(maxsize=4)
def _function_words(script: str) -> frozenset[str]:
    return frozenset().union(*_words_by_language(script).values())


@lru_cache(maxsize=4_000)  # more than there are
def _weights(script: str, word: str) -> list[tuple[str, float]]:
    """Return the languages of a script that have a function word, and its weight for each of them."""
    codes = [code for code, words in _words_by_language(script).items() if word in words]
    return [(code, len(codes) ** -0.5) for code in codes]


@lru_cache(maxsize=4)
def _letter_owners(script: str) -> dict[str, frozenset[str]]:
    """Return for each letter in which languages of a script differ those that have it."""
    codes = _SHARED[script]
    letters = {char for code in codes for char in LETTERS.get(code, "")}
    return {char: frozenset(code for code in codes if char in LETTERS.get(code, "")) for char in letters}
