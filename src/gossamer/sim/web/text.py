"""The words on the pages: titles, paragraphs, anchor texts.

A pool of paragraphs in three invented languages is made once from the seed (30 ms); a page is a selection of them, and
the gaps of each are filled with a word that the page chooses. Without gaps the pages of a large host would be
combinations of a closed set, which a crawler rightly takes for a trap. Invariants: the same seed results in the same
bytes; everything is valid UTF-8 without characters that HTML would need escaped.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random

from msgspec import Struct

LANGUAGES = ("en", "de", "fr")
PARAGRAPHS = 256  # per language; a power of two, so that a choice is a mask
ANCHORS = 256
PARAGRAPH_BYTES = 900  # about
WORDS = 1024  # that fill gaps; a power of two
GAP = b"_"
_GAP_BYTES = 7  # that filling one adds, on average
_GAP_EVERY = 8  # words: more than half of all runs of five words then contain one
_SYLLABLES = {
    "en": "ta ren sol mi ver dan cor li pre ston wa ble ing ter na quo th sha ker low",
    "de": "ge schen ver ung lich bau mei stra ße zü ger ön heit ab kun land er fähr tis zer",
    "fr": "é cou lé tion mar vi eux re pas sé ment là bou que ri ère çon fil ou ne",
}


class Pool(Struct, frozen=True):
    """Ready-made pieces of text in one language."""

    language: str
    paragraphs: tuple[bytes, ...]  # with gaps
    words: tuple[bytes, ...]  # for the gaps of a paragraph
    anchors: tuple[str, ...]  # two or three words
    headings: tuple[str, ...]


def _vocabulary(draw: Random, syllables: list[str]) -> list[str]:
    return ["".join(draw.choices(syllables, k=1 + n % 4)) for n in range(1200)]


def _paragraph(draw: Random, words: list[str], n: int) -> bytes:
    sentences = []
    size = 0
    wanted = PARAGRAPH_BYTES * (50 + n * 100 // PARAGRAPHS) // 100
    while size < wanted:
        chosen = draw.choices(words, k=draw.randint(6, 22))
        chosen[_GAP_EVERY // 2 :: _GAP_EVERY] = [GAP.decode()] * len(chosen[_GAP_EVERY // 2 :: _GAP_EVERY])
        sentence = " ".join(chosen).capitalize() + "."
        sentences.append(sentence)
        size += len(sentence.encode()) + 1 + _GAP_BYTES * sentence.count(GAP.decode())
    return f"<p>{' '.join(sentences)}</p>\n".encode()


@lru_cache(maxsize=8)
def pools(seed: int) -> tuple[Pool, ...]:
    """One pool per language, in the order of LANGUAGES."""
    made = []
    for language in LANGUAGES:
        # One generator per language and web, not per page: 10 ms each, once.
        draw = Random(f"{seed} {language}")
        words = _vocabulary(draw, _SYLLABLES[language].split())
        made.append(
            Pool(
                language=language,
                paragraphs=tuple(_paragraph(draw, words, n) for n in range(PARAGRAPHS)),
                words=tuple(word.encode() for word in words[:WORDS]),
                anchors=tuple(" ".join(draw.choices(words, k=2 + n % 2)) for n in range(ANCHORS)),
                headings=tuple(" ".join(draw.choices(words, k=3 + n % 4)).capitalize() for n in range(ANCHORS)),
            )
        )
    return tuple(made)
