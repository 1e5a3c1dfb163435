"""What does `gossamer verify` check, and in which order? A check is added by a line here."""

from __future__ import annotations

from gossamer.reading.folder import CrawlReader
from gossamer.reading.view import CrawlView
from gossamer.verify import archive, catalogs, files, index, objects, page_objects, pages
from gossamer.verify.agreement import Agreement, Check, OnBytes

CHECKS = (
    Check("archive, index and ledger", archive.find, index.mend, while_running=True, of_nodes=True),
    Check("archive files in a store", objects.find, objects.mend, while_running=True, of_nodes=True),
    Check("plain files", files.find, while_running=True, of_nodes=True),
    Check("a page store", pages.find, pages.mend),
    Check("pages as objects in a store", page_objects.find, page_objects.mend),
    Check("catalogs", catalogs.find, catalogs.mend, of_nodes=True),
)


def find_problems(crawl: CrawlView, on_bytes: OnBytes = lambda _: None) -> Agreement:
    """Return what does not agree."""
    found = Agreement()
    is_folder = isinstance(crawl, CrawlReader)
    for check in CHECKS:
        if (check.while_running or not crawl.is_running) and (check.of_nodes or is_folder):
            check.find(crawl, found, on_bytes)
    return found


def mend_all(crawl: CrawlReader) -> list[str]:
    """Mend what can be mended; return what was done. The caller owns the folder."""
    return [line for check in CHECKS if check.mend is not None for line in check.mend(crawl)]
