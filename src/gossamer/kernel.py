"""The compiled kernel where there is one, else None: who uses it has the same in Python.

It is missing where the package was installed without a C compiler, and refuses to load
where `GOSSAMER_NO_KERNEL` is set in the environment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct


class Bands(Protocol):
    """See `gossamer.core.dedup.bands`."""

    def add(self, number: int, signature: bytes, /) -> None:
        """Remember a page."""
        ...

    def add_many(self, first: int, records: bytes, stride: int, /) -> None:
        """Remember pages with numbers in a row; each record ends with a signature."""
        ...

    def candidates(self, signature: bytes, /) -> list[int]:
        """Return the pages that may be similar."""
        ...

    def size_in_bytes(self) -> int:
        """Return the memory it takes."""
        ...


class Kernel(Struct, frozen=True):
    """What the compiled kernel can do."""

    minhash: Callable[[str | bytes], bytes]
    simhash: Callable[[str | bytes], bytes]
    equal_lanes: Callable[[bytes, bytes], int]
    bare: Callable[[bytes, list[bytes]], bytes]
    band_table: Callable[[], Bands]


def _load() -> Kernel | None:
    try:
        from gossamer import _kernel
    except ImportError:
        return None
    return Kernel(_kernel.minhash, _kernel.simhash, _kernel.equal_lanes, _kernel.bare, _kernel.BandTable)


kernel = _load()
