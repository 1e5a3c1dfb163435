"""One signal stops a crawl cleanly, a second one ends the process immediately."""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial

from gossamer.runtime.control import Stop, Submit

STATUS_KILLED = 13


def stop_on_signals(submit: Submit) -> None:
    """Submit a stop on SIGINT or SIGTERM to the crawl that runs in this loop."""
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        if len(received) > 1:
            os._exit(STATUS_KILLED)
        submit(Stop("signal"))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, partial(on_signal, number))
