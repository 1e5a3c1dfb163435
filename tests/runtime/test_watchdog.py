"""A loop that is held is reported with the place, once, while it is held."""

from __future__ import annotations

import asyncio
import threading
from time import monotonic

from gossamer.runtime.watch.vitals import StallProbe
from gossamer.runtime.watch.watchdog import RULE, Watchdog


def hold_until(seen: threading.Event) -> None:
    """Hold the loop until the watchdog has seen it, as an endless computation would."""
    end = monotonic() + 20
    while not seen.is_set() and monotonic() < end:
        pass


def test_a_held_loop_is_reported_with_its_place_while_it_is_held() -> None:
    at_once: list[str] = []
    events: list[tuple[str, str]] = []
    seen = threading.Event()

    def on_held(text: str) -> None:
        at_once.append(text)
        assert events == [], "the loop cannot have run"
        seen.set()

    async def main() -> None:
        probe = StallProbe()
        probe.start()
        watchdog = Watchdog(
            lambda: probe.last_run_at,
            on_held,
            lambda rule, text: events.append((rule, text)),
            held_s=0.3,
            look_s=0.02,
        )
        with watchdog:
            await asyncio.sleep(0.1)
            hold_until(seen)
            await asyncio.sleep(0.2)
        probe.stop()

    asyncio.run(main())
    (text,) = at_once
    assert "the event loop has been held for" in text
    assert "hold_until" in text
    assert events == [(RULE, text)]


def test_a_loop_that_runs_is_not_reported() -> None:
    reported: list[str] = []

    async def main() -> None:
        probe = StallProbe()
        probe.start()
        with Watchdog(lambda: probe.last_run_at, reported.append, lambda _rule, _text: None, held_s=5.0, look_s=0.01):
            await asyncio.sleep(0.3)
        probe.stop()

    asyncio.run(main())
    assert reported == []
