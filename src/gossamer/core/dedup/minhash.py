"""How much of two texts is the same? MinHash: 128 lanes, each the least of all shingles in an order of its own.

The share of equal lanes estimates the Jaccard similarity of the two sets of shingles, with a
standard deviation of 0.027 at 0.9. A lane's order is the permutation `hash * a + b` modulo 2**32
of the upper half of a shingle's hash. 17 µs for 10 KB of text in C, some 6 ms in Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq
from typing import Final

from gossamer.core.dedup.shingles import MASK, shingle_hashes
from gossamer.kernel import kernel

LANES: Final = 128
SIGNATURE_BYTES: Final = 4 * LANES
SEED: Final = int.from_bytes(b"gossamer", "big")
_LANE_BITS: Final = 64  # in the number that holds all lanes: 32 of the value, 32 for what a product carries


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
    """Return the signature of a text, by Python alone; empty where there are no words.

    All lanes stand in one number, so that one multiplication serves them all: 3 µs a shingle, where a loop
    over the lanes takes 20. A guard bit above each value tells after a subtraction which of two was less.
    """
    hashes = {value >> 32 for value in shingle_hashes(text)}
    if not hashes:
        return b""
    factors, addends, values, guards = _FACTORS, _ADDENDS, _VALUES, _GUARDS
    least = values
    for value in hashes:
        lanes = (value * factors + addends) & values
        is_not_less = ((lanes | guards) - least) & guards
        kept = is_not_less - (is_not_less >> 32)
        least = lanes ^ ((lanes ^ least) & kept)
    wide = least.to_bytes(LANES * _LANE_BITS // 8, "little")
    return b"".join(wide[at : at + 4] for at in range(0, len(wide), 8))


def plain_equal_lanes(one: bytes, other: bytes) -> int:
    """Return how many lanes of two signatures are equal, by Python alone."""
    if len(one) != SIGNATURE_BYTES or len(other) != SIGNATURE_BYTES:
        raise ValueError(f"a MinHash signature has {SIGNATURE_BYTES} bytes, not {len(one)} and {len(other)}")
    return sum(map(eq, memoryview(one).cast("I"), memoryview(other).cast("I")))


minhash = kernel.minhash if kernel is not None else plain_minhash
equal_lanes = kernel.equal_lanes if kernel is not None else plain_equal_lanes
