"""The folder of a node: its archive as the cluster knows it, and a copy of its shards that is made anew.

Whatever an earlier incarnation stored and did not commit is not part of the crawl: another node may have fetched the
page since. It is moved to `aside/`, and the page is fetched again by whoever owns its shard.
"""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.archive.cdxj import final_name
from gossamer.archive.excision import remove_unfinished_copies
from gossamer.archive.recovery import ASIDE_FOLDER, close_file, cut_back, mend_parts
from gossamer.backends.local.folder import CrawlFolder


def drop_copy(folder: CrawlFolder) -> None:
    """Remove the copy of the shards of an earlier incarnation. The folder is locked."""
    for path in folder.state.glob("*.mdb"):
        path.unlink()


def restore_archive(folder: CrawlFolder, ends: Mapping[str, int]) -> list[str]:
    """Cut the archive files back to their committed lengths, and close them; return what was done, for events."""
    remove_unfinished_copies(folder.archive)
    done: list[str] = []
    for path in sorted(folder.archive.glob("*.warc.gz*")):
        name = final_name(path)
        if cut_bytes := cut_back(path, ends.get(name, 0)):
            done.append(f"{name}: {cut_bytes} bytes that were not committed were moved to {ASIDE_FOLDER}/")
        close_file(path, folder.index)
    mend_parts(folder.archive, folder.index)
    return done
