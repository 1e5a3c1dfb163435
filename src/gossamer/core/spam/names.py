"""Does a label of a host name look made by a machine? A chain of words, or random letters.

Many honest labels do (previews of a build, shards of a CDN, blogs with long names), so it only counts beside other
evidence: see `core/spam/hosts.py` and the signal `link_farm`.
"""

from __future__ import annotations

from gossamer.expressions import expression

MIN_CHAIN_WORDS = 3
MIN_WORD_LETTERS = 3
MIN_RANDOM_LETTERS = 8
_SWITCH = expression(r"[a-z](?=[0-9])|[0-9](?=[a-z])")
_CONSONANTS = expression(r"[bcdfghjklmnpqrstvwxz]{6}")
_VOWELS = expression(r"[aeiouy]")
MIN_SWITCHES = 3
MIN_VOWELS = 0.1


def is_machine_made(label: str) -> bool:
    """Return whether a label is a chain of words, or random."""
    return _is_chain(label) or _is_random(label)


def _is_chain(label: str) -> bool:
    words = label.split("-")
    return len(words) >= MIN_CHAIN_WORDS and all(word.isalpha() and len(word) >= MIN_WORD_LETTERS for word in words)


def _is_random(label: str) -> bool:
    if len(label) < MIN_RANDOM_LETTERS or "-" in label or not label.isascii():
        return False
    if len(_SWITCH.findall(label)) >= MIN_SWITCHES:
        return True
    return label.isalpha() and (
        len(_VOWELS.findall(label)) < MIN_VOWELS * len(label) or _CONSONANTS.search(label) is not None
    )
