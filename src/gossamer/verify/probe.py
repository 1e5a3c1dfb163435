"""Can the whole ledger of a folder be read? Prints what is wrong with it, or nothing.

    python -m gossamer.verify.probe DIR

A program of its own: damage that LMDB does not notice may end the process that reads it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gossamer.backends.local import damage
from gossamer.model.errors import HOW_TO_REBUILD, CorruptFolderError, damage_of
from gossamer.ports import Catalog
from gossamer.reading.folder import CrawlReader


def problem_of(path: Path) -> str:
    """Return why a ledger cannot be used, found by reading all of it; empty if it can."""
    try:
        with CrawlReader(path) as crawl:
            crawl.ledger.read_all()
            _read_rows(crawl.ledger)
    except Exception as error:
        found = error if isinstance(error, CorruptFolderError) else damage_of(error)
        if found is None:
            raise
        return str(found).partition(HOW_TO_REBUILD)[0]
    return ""


def _read_rows(ledger: Catalog) -> None:
    for _ in ledger.urls():
        pass
    for host in ledger.hosts():
        ledger.read_queue(ledger.host_id(host.name), None, 1 << 30)
        ledger.robots(ledger.host_id(host.name))
    for _ in ledger.domains():
        pass


if __name__ == "__main__":
    damage.end_with_a_line("gossamer", damage.WORKER_STATUS)
    print(problem_of(Path(sys.argv[1])))
