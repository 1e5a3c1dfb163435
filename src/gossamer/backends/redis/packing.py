"""Rows of URLs are compressed in Redis, one by one, with a dictionary that all nodes have.

Memory is what a shared ledger costs: a row of a fetched page shrinks from 260 bytes to 170 or less, for 2.6 µs of CPU,
and 1.5 when it is read back. The dictionary is part of the protocol: `rows.zdict`, made by
`benchmarks/row_dictionary.py`.
"""

from __future__ import annotations

from importlib.resources import files

import zstandard
from zstandard import FORMAT_ZSTD1_MAGICLESS, ZstdCompressionDict, ZstdCompressionParameters

_MARK = b"\0"  # no row begins with it: a row is a list in MessagePack
_MAX_BYTES = 1 << 20
_LEVEL = 3


class RowPacking:
    """Compresses and decompresses rows. Not thread-safe: each thread has its own."""

    def __init__(self) -> None:
        dictionary = ZstdCompressionDict(files("gossamer.backends.redis").joinpath("rows.zdict").read_bytes())
        parameters = ZstdCompressionParameters.from_level(
            _LEVEL,
            format=FORMAT_ZSTD1_MAGICLESS,
            write_content_size=True,
            write_checksum=False,
            write_dict_id=False,
        )
        dictionary.precompute_compress(compression_params=parameters)
        self._compress = zstandard.ZstdCompressor(dict_data=dictionary, compression_params=parameters).compress
        self._decompress = zstandard.ZstdDecompressor(
            dict_data=dictionary, format=FORMAT_ZSTD1_MAGICLESS, max_window_size=_MAX_BYTES
        ).decompress

    def pack(self, row: bytes) -> bytes:
        """Return a row compressed, if that is shorter."""
        packed = self._compress(row)
        return _MARK + packed if len(packed) + 1 < len(row) else row

    def unpack(self, value: bytes) -> bytes:
        """Return the row."""
        return self._decompress(value[1:], max_output_size=_MAX_BYTES) if value[:1] == _MARK else value
