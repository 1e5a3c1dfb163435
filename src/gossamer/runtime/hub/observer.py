"""What does a hub report while it runs, and to whom?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from gossamer.model.records import FetchTask, Result
from gossamer.runtime.watch.crash import Crash

OnResult: TypeAlias = Callable[[FetchTask, Result], None]


def all_of(first: OnResult | None, second: OnResult | None) -> OnResult | None:
    """Return a function that calls both; one of them if the other is None."""
    if first is None or second is None:
        return first or second

    def call(task: FetchTask, result: Result) -> None:
        first(task, result)
        second(task, result)

    return call


class HubObserver(Struct, frozen=True):
    """Receives what a hub reports while it runs."""

    on_result: OnResult | None = None  # every result, after the engine has completed it
    on_warning: Callable[[str, str], None] | None = None  # the name of a rule, and a text for people
    on_crash: Callable[[Crash], None] | None = None
    on_beat: Callable[[], None] | None = None  # after every 50th page
    is_needed: Callable[[], bool] | None = None  # whether somebody may still add URLs: it does not end by itself then
    on_request: Callable[[str, float], None] | None = None  # the host and the time of every request that was sent
