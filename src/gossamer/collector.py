"""When does Python's garbage collector look for cycles?

A full collection looks at every object of the process, while all of its threads stand still: 100 ms with 10,000 hosts,
and longer with more. What grows old in a crawl is its books, and those go by their reference counts: four full
collections in a crawl of 21,000 requests found nothing, and without them 28 objects were left at its end, as many as
after 1,400 pages of hostile servers. So they are made a hundred times less often, for what may gather in weeks. Young
objects are looked at as ever, for a few milliseconds.
"""

from __future__ import annotations

import gc

_SELDOM = 1000  # collections of the middle generation before a full one; Python 3.14 has none, and ignores it


def leave_old_objects_alone() -> None:
    """Have few full collections in this process, and none of what is loaded by now: modules are no garbage.

    For a program of its own: the host of a library decides for itself.
    """
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _SELDOM)
