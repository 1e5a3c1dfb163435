"""The name of an archive file says which node has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.archive.writer import ArchiveWriter
from gossamer.core.ledger.archive_names import archive_prefix, node_of
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome


@pytest.mark.parametrize("node", ["", "b", "crawler-7-4f1c", "a-00-00001"])
def test_the_name_of_a_file_contains_its_node(tmp_path: Path, node: str) -> None:
    writer = ArchiveWriter(tmp_path, tmp_path / "index", prefix=archive_prefix(node), worker=3, warcinfo={})
    writer.write(Exchange("http://h.example/", Outcome.OK, response_head=b"HTTP/1.1 200 OK\r\n\r\n"), date=1e9)
    writer.close()
    (path,) = tmp_path.glob("*.warc.gz")
    assert node_of(path.name) == node
