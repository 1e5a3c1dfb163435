"""Which orders have had no result for too long?"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from gossamer.runtime.workers.pool import WorkerPool

LOOKS_PER_LIMIT = 20


async def end_overdue(pool: WorkerPool, limit_s: float, end: Callable[[Sequence[int], str], None]) -> None:
    """End orders without a result, until cancelled.

    Time is counted in looks: while this process stands still, none is made.
    """
    looks: deque[int] = deque([0], LOOKS_PER_LIMIT + 1)  # the last order that was given out, at each look
    while True:
        await asyncio.sleep(limit_s / LOOKS_PER_LIMIT)
        if len(looks) > LOOKS_PER_LIMIT and (overdue := pool.outstanding_up_to(looks[0])):
            end(overdue, f"no result within {limit_s:g} s")
        looks.append(pool.last_order_id)
