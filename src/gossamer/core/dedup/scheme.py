"""How are pages compared, and with which edition of signatures?

Signatures outlive a program: a ledger stores the edition that made them, and those of another
edition are never compared with ours. A change to how a signature is made (words, hashes,
permutations) needs a new edition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from gossamer.core.dedup.minhash import minhash
from gossamer.core.dedup.simhash import simhash


class NearDup(StrEnum):
    OFF = "off"
    SIMHASH = "simhash"
    MINHASH = "minhash"


class Scheme(Struct, frozen=True):
    edition: str
    sign: Callable[[str | bytes], bytes]


SCHEMES: Final[Mapping[NearDup, Scheme]] = {
    NearDup.MINHASH: Scheme("minhash 1", minhash),
    NearDup.SIMHASH: Scheme("simhash 1", simhash),
}


def signature_of(text: str | bytes, near_dup: NearDup) -> bytes:
    """Return the signature of a page's text; empty if it has no words, or if pages are not compared."""
    scheme = SCHEMES.get(near_dup)
    return scheme.sign(text) if scheme is not None else b""
