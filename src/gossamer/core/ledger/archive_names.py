"""The names of archive files: `gossamer[-NODE]-TIME-WORKER-SERIAL.warc.gz`.

In a cluster a name contains the node that has the file, so no two nodes use the same one, and the catalog's position
of a page says whose folder its bytes are in.
"""

from __future__ import annotations

_PREFIX = "gossamer"


def archive_prefix(node: str = "") -> str:
    """Return how the names of a node's files begin; without a node, those of a crawl on one machine."""
    return f"{_PREFIX}-{node}" if node else _PREFIX


def node_of(file: str) -> str:
    """Return the node that has an archive file; empty if its name has none."""
    return file.rsplit("-", 3)[0].removeprefix(_PREFIX).removeprefix("-")
