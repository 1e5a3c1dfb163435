"""How often Python's garbage collector runs.

A full collection visits every object of the process, while all of its threads are stopped: 100 ms with 10,000 hosts,
and longer with more. The old objects of a crawl are its hosts and queues, which are freed by reference counting: four
full collections in a crawl of 21,000 requests found nothing, and without them 28 objects were left at its end, as many
as after 1,400 pages of hostile servers. So they run a hundred times less often, for what may accumulate in weeks.
Young objects are collected as usual, in a few milliseconds.
"""

from __future__ import annotations

import gc

_SELDOM = 1000  # collections of the middle generation before a full one; Python 3.14 has none, and ignores it


def leave_old_objects_alone() -> None:
    """Make full collections rare in this process, and exclude what is loaded by now: modules are not garbage.

    For our own program: a program that uses the library decides for itself.
    """
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _SELDOM)
