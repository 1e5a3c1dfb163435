"""The compiled kernels, or None: every caller has the same in Python.

They are missing if the package was installed without a C compiler, and are not loaded
if `GOSSAMER_NO_KERNEL` is set in the environment.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct


class Bands(Protocol):
    """See `gossamer.core.dedup.bands`."""

    def add(self, number: int, signature: bytes, /) -> None:
        """Add a page."""
        ...

    def add_many(self, first: int, records: bytes, stride: int, /) -> None:
        """Add pages with consecutive numbers; each record ends with a signature."""
        ...

    def candidates(self, signature: bytes, /) -> list[int]:
        """Return the pages that may be similar."""
        ...

    def size_in_bytes(self) -> int:
        """Return the memory used."""
        ...


class Kernel(Struct, frozen=True):
    """The functions of the compiled kernel."""

    minhash: Callable[[str | bytes], bytes]
    simhash: Callable[[str | bytes], bytes]
    equal_lanes: Callable[[bytes, bytes], int]
    bare: Callable[[bytes, list[bytes]], bytes]
    bare_short: Callable[[bytes, bytes], bytes]
    numbers_beside: Callable[[bytes, str], bytes | None]
    mentions: Callable[[bytes, list[bytes]], bool]
    join_plain: Callable[[str, list[str]], list[str | None]]
    word_pairs: Callable[[bytes], bytes]
    path_patterns: Callable[[str], tuple[str, ...] | None]
    record_lanes: Callable[[bytes, bytearray, bytearray, bytearray, int, int], int]
    band_table: Callable[[], Bands]


def _load() -> Kernel | None:
    try:
        from gossamer.foundation import _kernel
    except ImportError:
        return None
    return Kernel(
        _kernel.minhash,
        _kernel.simhash,
        _kernel.equal_lanes,
        _kernel.bare,
        _kernel.bare_short,
        _kernel.numbers_beside,
        _kernel.mentions,
        _kernel.join_plain,
        _kernel.word_pairs,
        _kernel.path_patterns,
        _kernel.record_lanes,
        _kernel.BandTable,
    )


class RankKernel(Struct, frozen=True):
    """The functions of the compiled rank of hosts, see `gossamer.core.rank`."""

    sort_unique: Callable[[array[int]], int]
    link_rank: Callable[[array[int], array[float], array[float], array[float], float, float, int], int]


def _load_rank() -> RankKernel | None:
    try:
        from gossamer.foundation import _rank
    except ImportError:
        return None
    return RankKernel(_rank.sort_unique, _rank.link_rank)


class WordsKernel(Struct, frozen=True):
    """The functions of the compiled count of repeated words, see `gossamer.core.spam.words`."""

    repetition: Callable[
        [bytes, bytes, bytes],
        tuple[int, int, int, int, bytes, int, int, int, int, int, int, int, int, int, int, int, int, int, int],
    ]


def _load_words() -> WordsKernel | None:
    try:
        from gossamer.foundation import _words
    except ImportError:
        return None
    return WordsKernel(_words.repetition)


kernel = _load()
rank_kernel = _load_rank()
words_kernel = _load_words()
