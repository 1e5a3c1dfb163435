"""How often Python's garbage collector runs.

A full collection visits every object of the process and stops all of its threads: 100 ms with 10,000 hosts, and longer
with more. The long-lived objects of a crawl are its tables, and those are freed by reference counting: four full
collections in a crawl of 21,000 requests found nothing, and without them 28 objects were left at its end, as many as
after 1,400 pages of hostile servers. So they are run a hundred times less often, for what may accumulate in weeks.
Young objects are collected as usual, in a few milliseconds.
"""

from __future__ import annotations

import gc

_FULL_THRESHOLD = 1000  # collections of the middle generation before a full one; Python 3.14 has none, and ignores it


def make_full_collections_rare() -> None:
    """Run few full collections in this process, and exclude what is loaded by now: modules are not garbage.

    For programs only: with the library, the application decides.
    """
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _FULL_THRESHOLD)
