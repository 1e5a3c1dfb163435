"""How similar are two texts? SimHash: 64 bits, each the value that most shingles have in that position.

Texts with nearly the same shingles differ in few bits. Eight bytes per page instead of 512, but
coarse: at distance 3 over half of the pairs with a Jaccard similarity of 0.95 are missed.
"""

from __future__ import annotations

from typing import Final

from gossamer.core.dedup.shingles import shingle_hashes
from gossamer.foundation.kernel import kernel

BITS: Final = 64


def plain_simhash(text: str | bytes) -> bytes:
    """Return the signature of a text, in pure Python; empty if there are no words."""
    hashes = shingle_hashes(text)
    if not hashes:
        return b""
    majority = 0
    for bit in range(BITS):
        mask = 1 << bit
        if 2 * sum([value & mask for value in hashes]) > len(hashes) << bit:
            majority |= mask
    return majority.to_bytes(8, "little")


simhash = kernel.simhash if kernel is not None else plain_simhash
