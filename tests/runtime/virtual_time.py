"""An event loop in which time passes only while nothing is to be done.

A wait for a timer takes no time: the clock leaps to it. Functions for threads run at once, in
the loop's own thread. So asyncio code that waits for seconds runs in milliseconds, and the same way each time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _LeapingSelector(selectors.DefaultSelector):
    """Never blocks: a wait is added to the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "nothing will ever happen"
            self.now_s += max(0.0, timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the head of this module."""

    def __init__(self) -> None:
        self._clock = _LeapingSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now_s

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
