"""The names of archive files: `gossamer[-NODE]-TIME-WORKER-SERIAL.warc.gz`.

In a cluster a name contains the node that has the file, so no two nodes use the same one, and the catalog's position
of a page says whose folder its bytes are in.
"""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.model.errors import CorruptFolderError

_PREFIX = "gossamer"
_MAX_NAME_BYTES = 255


def archive_prefix(node: str = "") -> str:
    """Return how the names of a node's files begin; without a node, those of a crawl on one machine."""
    return f"{_PREFIX}-{node}" if node else _PREFIX


def node_of(file: str) -> str:
    """Return the node that has an archive file; empty if its name has none."""
    return file.rsplit("-", 3)[0].removeprefix(_PREFIX).removeprefix("-")


def is_archive_name(file: str) -> bool:
    """Return whether a name is that of a file within a folder of archive files, not a way to somewhere else."""
    is_plain = not file.startswith(".") and "/" not in file and "\0" not in file
    return bool(file) and is_plain and len(file.encode("utf-8", "replace")) <= _MAX_NAME_BYTES


def checked_ends(ends: Mapping[str, int], place: str) -> dict[str, int]:
    """Return archive files with their lengths, as `place` has them; raise if they are somewhere else."""
    for file in ends:
        if not is_archive_name(file):
            raise CorruptFolderError(f"{place} names the archive file {file[:_MAX_NAME_BYTES]!r}, which is elsewhere")
    return dict(ends)
