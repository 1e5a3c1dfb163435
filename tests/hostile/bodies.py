"""Bodies that misbehave, made small and quickly."""

from __future__ import annotations

import gzip
import zlib

import brotli


def gzip_bomb(megabytes: int = 1000) -> bytes:
    """Zeros by the gigabyte, as gzip members of 10 MB one after another."""
    member = gzip.compress(bytes(10_000_000), 9, mtime=0)
    return member * (megabytes // 10)


def one_stream_bomb(megabytes: int = 100) -> bytes:
    """Zeros as one gzip stream, flushed so that it can be repeated."""
    coder = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = coder.compress(bytes(1_000_000)) + coder.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(b"", mtime=0)[:10] + block * megabytes


def brotli_bomb(megabytes: int = 64) -> bytes:
    coder = brotli.Compressor(quality=1, lgwin=24)
    chunk = bytes(1_000_000)
    coded: list[bytes] = [coder.process(chunk) for _ in range(megabytes)]
    end: bytes = coder.finish()
    return b"".join(coded) + end


def nested_gzip(layers: int) -> bytes:
    body = b"<html>at the bottom</html>"
    for _ in range(layers):
        body = gzip.compress(body, mtime=0)
    return body


# RFC 8878: magic, a frame header whose window descriptor says 2^31, one raw block.
ZSTD_HUGE_WINDOW = b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([21 << 3]) + b"\x29\x00\x00hello"

BILLION_LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a0 "ha">'
    + b"".join(b'<!ENTITY a%d "%b">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 11))
    + b"]><urlset><url><loc>http://s02.test/&a10;</loc></url></urlset>"
)

PDF_LOOP = (
    b"%PDF-1.5\n1 0 obj\n<< /Type /Catalog /Pages 1 0 R /Kids [1 0 R] /Length 99999999999 >>\nendobj\n"
    b"2 0 obj << /Type /ObjStm /N 99999999 /First 3 /Length 2147483647 >>\nstream\n"
    + zlib.compress(b"/URI (http://elsewhere.example/inside)" + bytes(30_000_000), 9)[:20_000]
    + b"\nendstream\n"
    + b"(" * 100_000
    + b"/URI (http://elsewhere.example/never-closed"
    + b"xref\n0 1\ntrailer << /Prev 9 >>\n"
    b"startxref\n9\n%%EOF"
)
