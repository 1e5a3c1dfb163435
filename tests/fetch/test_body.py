from __future__ import annotations

import gzip
import random
import time
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gossamer.fetch.body import SLOW_BYTES, Decoded, decode, is_slow

TEXT = b"".join(b"<p>line %d</p>\n" % number for number in range(20_000))
CAP = 5_000_000


def raw_deflate(data: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(data) + coder.flush()


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("data", [b"", b"x", TEXT], ids=["empty", "one", "text"])
def test_every_coding_comes_off(coding: str, data: bytes) -> None:
    decoded = decode(CODERS[coding](data), coding, CAP)
    assert decoded == Decoded(data)


@pytest.mark.parametrize("coding", ["", "identity", " Identity ", ","])
def test_what_is_not_coded_stays(coding: str) -> None:
    assert decode(TEXT, coding, CAP).content == TEXT


def test_names_are_taken_as_servers_write_them() -> None:
    assert decode(gzip.compress(TEXT), " X-GZIP ", CAP).content == TEXT
    assert decode(gzip.compress(TEXT), "GZip", CAP).content == TEXT


def test_deflate_without_its_wrapping() -> None:
    assert decode(raw_deflate(TEXT), "deflate", CAP).content == TEXT


def test_several_codings_come_off_in_reverse_order() -> None:
    body = brotli.compress(gzip.compress(TEXT))
    assert decode(body, "gzip, br", CAP).content == TEXT


def test_gzip_members_are_joined_and_padding_ignored() -> None:
    body = gzip.compress(b"one ") + gzip.compress(b"two") + bytes(20)
    assert decode(body, "gzip", CAP) == Decoded(b"one two")


def test_zstd_frames_are_joined() -> None:
    body = zstandard.compress(b"one ") + zstandard.compress(b"two")
    assert decode(body, "zstd", CAP) == Decoded(b"one two")


def test_z02_too_many_codings_are_left_on() -> None:
    body = TEXT
    for _ in range(10):
        body = gzip.compress(body)
    decoded = decode(body, ", ".join(["gzip"] * 10), CAP)
    assert decoded.content == body
    assert not decoded.is_decoded


def test_z02_three_codings_come_off_and_four_do_not() -> None:
    three = gzip.compress(gzip.compress(gzip.compress(TEXT)))
    assert decode(three, "gzip, gzip, gzip", CAP) == Decoded(TEXT)
    four = gzip.compress(three)
    assert decode(four, "gzip, gzip, gzip, gzip", CAP) == Decoded(four, is_decoded=False)


@pytest.mark.parametrize("coding", CODERS)
def test_z01_z03_z04_a_bomb_costs_no_more_than_the_cap(coding: str) -> None:
    bomb = CODERS[coding](bytes(40_000_000)) if coding != "br" else brotli.compress(bytes(40_000_000), quality=1)
    tracemalloc.start()
    decoded = decode(bomb, coding, CAP)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert decoded.is_truncated
    assert len(decoded.content) == min(CAP, max(1024 * 1024, 100 * len(bomb)))
    assert peak < 4 * CAP


def test_a_small_bomb_is_cut_by_its_ratio() -> None:
    bomb = brotli.compress(bytes(20_000_000))
    assert len(bomb) < 1000
    decoded = decode(bomb, "br", CAP)
    assert decoded.is_truncated
    assert len(decoded.content) == 1024 * 1024


def test_nested_bombs_are_cut_too() -> None:
    bomb = gzip.compress(gzip.compress(bytes(200_000_000), 1))
    decoded = decode(bomb, "gzip, gzip", CAP)
    assert len(decoded.content) <= CAP


def test_z04_a_huge_window_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, compression_level=1)
    coder = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = coder.compress(TEXT) + coder.flush()
    decoded = decode(body, "zstd", CAP)
    assert not decoded.is_decoded
    assert decoded.content == body


@pytest.mark.parametrize("coding", CODERS)
def test_z05_plain_text_that_says_it_is_coded(coding: str) -> None:
    page = b"<!doctype html><title>plain</title>"
    assert decode(page, coding, CAP) == Decoded(page)


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_z06_a_cut_stream_keeps_its_prefix(coding: str, share: float) -> None:
    body = CODERS[coding](TEXT)
    decoded = decode(body[: int(len(body) * share)], coding, CAP)
    assert decoded.is_cut
    assert TEXT.startswith(decoded.content)
    if coding != "zstd":  # which decodes whole blocks of 128 KiB
        assert decoded.content


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_fault_in_the_middle_keeps_what_came_before(coding: str) -> None:
    body = bytearray(CODERS[coding](TEXT))
    middle = len(body) // 2
    body[middle : middle + 200] = bytes(200)
    decoded = decode(bytes(body), coding, CAP)
    assert decoded.is_cut
    assert decoded.content[:1000] == TEXT[:1000]


def test_z07_an_unknown_coding_gives_the_raw_body() -> None:
    decoded = decode(TEXT, "foo", CAP)
    assert decoded.content == TEXT
    assert not decoded.is_decoded


def test_a_body_over_the_cap_is_cut() -> None:
    decoded = decode(gzip.compress(TEXT), "gzip", 1000)
    assert decoded == Decoded(TEXT[:1000], is_truncated=True)
    assert decode(gzip.compress(TEXT[:1000]), "gzip", 1000) == Decoded(TEXT[:1000])


@given(st.binary(), st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br"]), st.integers(0, 2000))
def test_no_bytes_make_it_fail(data: bytes, coding: str, cap: int) -> None:
    heads = {"gzip": b"\x1f\x8b\x08\0\0\0\0\0\0\0", "zstd": b"\x28\xb5\x2f\xfd"}
    for body in (data, heads.get(coding, b"") + data):
        assert len(decode(body, coding, cap).content) <= max(cap, len(body))


def empty_blocks(count: int) -> bytes:
    """Return deflate blocks that each declare their own codes, for nothing: 90 bits."""
    block = 1 << 2 | 14 << 13  # dynamic codes, of which 18 lengths follow
    block |= 1 << 17 + 3 * 2 | 1 << 17 + 3 * 17  # in the order of the format: of "many zeros" and of "1"
    block |= (1 | 127 << 1 | 1 << 8 | 107 << 9) << 71  # 256 literals without a code; then 1, 1, and the end
    eight = sum(block << 90 * number for number in range(8)).to_bytes(90, "little")
    return eight * (count // 8)


def framed(blocks: bytes) -> bytes:
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + blocks + b"\x03\0" + bytes(8)


EMPTY: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip blocks": ("gzip", lambda: framed(empty_blocks(4_000_000))),
    "deflate blocks": ("deflate", lambda: empty_blocks(4_000_000) + b"\x03\0"),
    "nested blocks": ("gzip, gzip", lambda: gzip.compress(framed(empty_blocks(4_000_000)), 1)),
    "gzip members": ("gzip", lambda: gzip.compress(b"") * 2_500_000),
    "zstd blocks": ("zstd", lambda: b"\x28\xb5\x2f\xfd\0\x58" + bytes(48_000_000) + b"\1\0\0"),
    "zstd frames": ("zstd", lambda: b"\x28\xb5\x2f\xfd\0\x58\1\0\0" * 5_000_000),
    "brotli blocks": ("br", lambda: b"\x0c" + b"\x06" * 50_000_000 + b"\x03"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_a_stream_that_says_nothing_is_cut_early(name: str) -> None:
    coding, make = EMPTY[name]
    body = make()
    begun = time.process_time()
    decoded = decode(body, coding, 50_000_000)
    assert time.process_time() - begun < 0.5  # up to 4 s for all of it
    assert decoded.content == b""
    assert decoded.is_cut or decoded.is_truncated


def test_members_before_a_long_one_cost_no_copy_of_it() -> None:
    long = random.Random(1).randbytes(45_000_000)
    begun = time.process_time()
    decoded = decode(gzip.compress(b"") * 998 + gzip.compress(long, 0), "gzip", 50_000_000)
    assert time.process_time() - begun < 2  # 28 s with a copy per member
    assert decoded == Decoded(long)


def test_what_follows_too_many_members_is_said_to_be_missing() -> None:
    assert decode(gzip.compress(b"a") * 1000, "gzip", CAP) == Decoded(b"a" * 1000)
    assert decode(gzip.compress(b"a") * 1001, "gzip", CAP) == Decoded(b"a" * 1000, is_truncated=True)


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("size", [64 * 1024, 300_000])
def test_content_that_cannot_be_compressed_is_no_stream_that_says_nothing(coding: str, size: int) -> None:
    data = random.Random(2).randbytes(size)
    assert decode(CODERS[coding](data), coding, CAP) == Decoded(data)


def test_a_fault_in_a_late_slice_keeps_what_came_before() -> None:
    data = random.Random(3).randbytes(400_000)
    body = bytearray(gzip.compress(b"first") + gzip.compress(data, 0))
    body[-100_000:-50_000] = b"\xff" * 50_000
    decoded = decode(bytes(body), "gzip", CAP)
    assert decoded.is_cut
    assert decoded.content.startswith(b"first" + data[:250_000])


def test_what_is_long_or_coded_twice_is_slow() -> None:
    assert not is_slow(bytes(SLOW_BYTES), "gzip")
    assert is_slow(bytes(SLOW_BYTES + 1), "gzip")
    assert is_slow(b"x", "gzip, br")
