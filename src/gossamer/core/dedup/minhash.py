"""How similar are two texts? MinHash: 128 lanes, each the minimum of all shingles in its own permutation.

The share of equal lanes estimates the Jaccard similarity of the two sets of shingles, with a
standard deviation of 0.027 at 0.9. A lane's permutation is `hash * a + b` modulo 2**32
of the upper half of a shingle's hash. 17 µs for 10 KB of text in C, about 6 ms in Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq
from typing import Final

from gossamer.core.dedup.shingles import MASK, shingle_hashes
from gossamer.foundation.kernel import kernel

LANES: Final = 128
SIGNATURE_BYTES: Final = 4 * LANES
SEED: Final = int.from_bytes(b"gossamer", "big")
_LANE_BITS: Final = 64  # in the number that contains all lanes: 32 of the value, 32 for the carry of a product


def _random_numbers(state: int) -> Iterator[int]:
    """Yield 32-bit numbers (splitmix64)."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        yield (z ^ z >> 31) >> 32


def _permutations() -> tuple[list[int], list[int]]:
    numbers = _random_numbers(SEED)
    pairs = [(next(numbers) | 1, next(numbers)) for _ in range(LANES)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _side_by_side(values: list[int]) -> int:
    return sum(value << _LANE_BITS * lane for lane, value in enumerate(values))


_FACTORS, _ADDENDS = map(_side_by_side, _permutations())
_VALUES = _side_by_side([0xFFFFFFFF] * LANES)
_GUARDS = _side_by_side([1 << 32] * LANES)


def plain_minhash(text: str | bytes) -> bytes:
    """Return the signature of a text, in pure Python; empty if there are no words.

    All lanes are in one number, so that one multiplication computes them all: 3 µs per shingle, while a loop
    over the lanes takes 20. After a subtraction, a guard bit above each value shows which of two was less.
    """
    hashes = {value >> 32 for value in shingle_hashes(text)}
    if not hashes:
        return b""
    factors = _FACTORS
    addends = _ADDENDS
    values = _VALUES
    guards = _GUARDS
    least = values
    for value in hashes:
        lanes = (value * factors + addends) & values
        is_not_less = ((lanes | guards) - least) & guards
        kept = is_not_less - (is_not_less >> 32)
        least = lanes ^ ((lanes ^ least) & kept)
    wide = least.to_bytes(LANES * _LANE_BITS // 8, "little")
    return b"".join(wide[at : at + 4] for at in range(0, len(wide), 8))


def plain_equal_lanes(one: bytes, other: bytes) -> int:
    """Return how many lanes of two signatures are equal, in pure Python."""
    if len(one) != SIGNATURE_BYTES or len(other) != SIGNATURE_BYTES:
        raise ValueError(f"a MinHash signature has {SIGNATURE_BYTES} bytes, not {len(one)} and {len(other)}")
    return sum(map(eq, memoryview(one).cast("I"), memoryview(other).cast("I")))


minhash = kernel.minhash if kernel is not None else plain_minhash
equal_lanes = kernel.equal_lanes if kernel is not None else plain_equal_lanes
