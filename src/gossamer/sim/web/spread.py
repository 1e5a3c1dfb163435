"""How a fixed total is spread over many members, without a table.

Everything is arithmetic on (seed, index), so a plan of a million hosts costs nothing
until a host is used. Invariants: the shares of all members add up to the total
exactly; a permutation contains every index once; the same arguments have the same result
in every process. Costs: O(1) per call, O(log n) for `owner_of`.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from math import gcd

from xxhash import xxh3_64_intdigest

_MASK64 = 2**64 - 1


def mix(seed: int, text: str) -> int:
    """64 pseudo-random bits that depend on the seed and the text."""
    return xxh3_64_intdigest(text.encode(), seed & _MASK64)


def step(state: int) -> int:
    """The next state of a 64-bit linear congruential generator (Knuth's MMIX constants); use the high bits."""
    return (state * 6364136223846793005 + 1442695040888963407) & _MASK64


@lru_cache(maxsize=256)
def _affine(count: int, seed: int, salt: str) -> tuple[int, int, int]:
    """Factor, offset and inverse factor of a permutation of range(count)."""
    draw = mix(seed, salt)
    factor = draw % count or 1
    while gcd(factor, count) != 1:
        factor += 1
    return factor % count or 1, (draw >> 32) % count, pow(factor, -1, count) if count > 1 else 0


def permute(index: int, count: int, seed: int, salt: str) -> int:
    """The place of `index` in a fixed shuffling of range(count)."""
    factor, offset, _ = _affine(count, seed, salt)
    return (index * factor + offset) % count


def unpermute(place: int, count: int, seed: int, salt: str) -> int:
    """The index that `permute` puts at `place`."""
    _, offset, inverse = _affine(count, seed, salt)
    return (place - offset) * inverse % count


def is_chosen(index: int, count: int, fraction: float, seed: int, salt: str) -> bool:
    """Whether `index` is among the round(fraction * count) members drawn for `salt`; the number is exact."""
    return fraction > 0 and permute(index, count, seed, salt) < round(fraction * count)


def before(total: int, count: int, tail: float, rank: int) -> int:
    """The shares of the members before `rank` together; `tail` 1 is even, towards 0 the first have most."""
    return int(total * (rank / count) ** tail)


def share(total: int, count: int, tail: float, rank: int) -> int:
    """The share of the member at `rank` in the total."""
    return before(total, count, tail, rank + 1) - before(total, count, tail, rank)


def owner_of(item: int, total: int, count: int, tail: float) -> int:
    """The rank of the member that has the item."""
    return bisect_right(range(count + 1), item, key=lambda rank: before(total, count, tail, rank)) - 1
