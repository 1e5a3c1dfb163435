"""Digests reckoned together are those that hashlib reckons one by one."""

from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gossamer.archive.digests import plain_sha1_base32, plain_sha1_pair, sha1_base32

try:
    from gossamer.archive import _sha1
except ImportError:  # installed without a compiler
    COMPILED = None
else:
    COMPILED = _sha1.sha1_pair if _sha1.is_quick() else None

needs_compiled = pytest.mark.skipif(COMPILED is None, reason="need compiled parts, and a processor with SHA extensions")


@needs_compiled
@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(1, 9))
@example(b"", b"", 1)
@example(b"a" * 64, b"", 1)
@example(b"a" * 63, b"b", 1)
@example(b"a" * 55, b"b" * 56, 1)
@example(b"a" * 119, b"b" * 120, 1)
def test_both_ways_give_the_same_digests(head: bytes, body: bytes, repeats: int) -> None:
    assert COMPILED is not None
    assert COMPILED(head, body * repeats) == plain_sha1_pair(head, body * repeats)


@needs_compiled
def test_every_length_of_head_and_body_is_closed_rightly() -> None:
    assert COMPILED is not None
    text = bytes(range(256))
    for head in range(130):
        for body in range(130):
            assert COMPILED(text[:head], text[:body]) == plain_sha1_pair(text[:head], text[:body])


@needs_compiled
def test_large_bodies_are_reckoned_alike() -> None:
    assert COMPILED is not None
    body = bytes(range(251)) * 10_000
    assert COMPILED(b"head", body) == plain_sha1_pair(b"head", body)


@given(st.binary(min_size=20, max_size=20))
def test_digests_are_written_in_base32(digest: bytes) -> None:
    assert sha1_base32(digest) == plain_sha1_base32(digest) == "sha1:" + base64.b32encode(digest).decode()
