"""What are the SHA-1 digests of an answer? Of its body (the payload), and of head and body as stored (the block).

WARC wants both, over nearly the same bytes. Where the package was built with a compiler and the
processor has the SHA extensions, they are reckoned together: 28 µs for 46 KB, instead of 21 each.
`GOSSAMER_NO_KERNEL` in the environment takes hashlib.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

__all__ = ["plain_sha1_pair", "sha1", "sha1_pair"]


def sha1(data: bytes) -> bytes:
    """Return the digest of some bytes."""
    return hashlib.sha1(data, usedforsecurity=False).digest()


def plain_sha1_pair(head: bytes, body: bytes) -> tuple[bytes, bytes]:
    """Return the digests of a body, and of a head with that body, by hashlib."""
    block = hashlib.sha1(head, usedforsecurity=False)
    block.update(body)
    return sha1(body), block.digest()


def _choose() -> Callable[[bytes, bytes], tuple[bytes, bytes]]:
    if not os.environ.get("GOSSAMER_NO_KERNEL"):
        try:
            from gossamer.archive import _sha1
        except ImportError:
            pass
        else:
            if _sha1.is_quick():
                return _sha1.sha1_pair
    return plain_sha1_pair


sha1_pair = _choose()
