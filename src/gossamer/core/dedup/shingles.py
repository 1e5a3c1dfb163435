"""Shingles, by which texts are compared: five consecutive words, hashed.

A word is a run of UTF-8 bytes between ASCII whitespace, its ASCII letters in lower case; so C and
Python agree on any text, including lone surrogates. A text of fewer than five words is one shingle
of all of them. Of a long text the first `MAX_CHARS` characters count (bytes, if the text is in
UTF-8, as in a crawl). Scripts without spaces between words (Chinese, Thai) are compared clause by
clause: coarser, but not wrong.

A word's hash is XXH32. A shingle's is their sum by powers of `FOLD`, mixed, all modulo 2**64.
"""

from __future__ import annotations

from functools import lru_cache

from xxhash import xxh32_intdigest

MAX_CHARS = 100_000
WORDS = 5
MASK = (1 << 64) - 1
FOLD = 0x9E3779B97F4A7C15
MIX = 0xD6E8FEB86659FD93
_FOLD_2 = FOLD**2 & MASK
_FOLD_3 = FOLD**3 & MASK
_FOLD_4 = FOLD**4 & MASK

# Words repeat: a look-up takes 40 ns, hashing 150.
_word_hash = lru_cache(1 << 16)(xxh32_intdigest)


def words_of(text: str | bytes) -> list[bytes]:
    part = text[:MAX_CHARS]
    return (part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")).lower().split()


def shingle_hashes(text: str | bytes) -> list[int]:
    """Return the 64-bit hashes of a text's shingles, in order; empty if there are no words."""
    words = [_word_hash(word) for word in words_of(text)]
    if len(words) < WORDS:
        return [_mixed(_folded(words))] if words else []
    return [
        _mixed(a * _FOLD_4 + b * _FOLD_3 + c * _FOLD_2 + d * FOLD + e)
        for a, b, c, d, e in zip(words, words[1:], words[2:], words[3:], words[4:], strict=False)
    ]


def _folded(words: list[int]) -> int:
    total = 0
    for word in words:
        total = total * FOLD + word
    return total


def _mixed(total: int) -> int:
    total &= MASK
    total = (total ^ total >> 32) * MIX & MASK
    return total ^ total >> 29
