"""One signal stops a crawl cleanly, a second one ends the process at once; so does a time limit that is exceeded.

A clean stop needs the event loop. The second signal must work if the loop is held, too: by Python code, or by
C code that does not release the interpreter's lock, so that no handler in Python ever runs. Hence it is handled
by the operating system's handler itself (`_forced_exit`); if that is not compiled, by a handler in Python, which
runs as soon as Python code does. The same holds for `--max-time`: if the loop does not notice within
`HELD_LIMIT_S` that the time is over, a timer of the kernel ends the process.

SIGHUP (the terminal is gone) stops a crawl like SIGTERM, unless it is ignored, as under nohup.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn, TypeAlias

from gossamer.model.commands import Stop, Submit
from gossamer.telemetry.text import printable

try:
    from gossamer.runtime.session import _forced_exit
except ImportError:  # not compiled
    _forced_exit = None  # type: ignore[assignment]

STATUS_KILLED = 13
IS_COMPILED = _forced_exit is not None
HELD_LIMIT_S = 30.0
MAX_CHARS = 5000  # of a command with the path of a folder
OnStop: TypeAlias = Callable[[str], None]  # gets the name of the signal


def stop_on_signals(submit: Submit, on_stop: OnStop, how_to_continue: str) -> None:
    """Submit a stop on the first SIGINT, SIGTERM or SIGHUP to the crawl that runs in this loop."""
    last_words = _last_words("ended by a second signal", how_to_continue)
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        submit(Stop("signal"))
        on_stop(signal.Signals(number).name)

    numbers = tuple(
        int(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    )
    for number in numbers:
        loop.add_signal_handler(number, on_signal, number)
    if _forced_exit is not None:
        _forced_exit.on_second(numbers, STATUS_KILLED, last_words)
    else:
        _count_in_python(numbers, last_words)


def _last_words(why: str, how_to_continue: str) -> bytes:
    return f"\ngossamer: {why}; to continue: {printable(how_to_continue, MAX_CHARS)}\n".encode()


def _leave(last_words: bytes) -> NoReturn:
    with suppress(OSError):
        os.write(2, last_words)
    os._exit(STATUS_KILLED)


def _count_in_python(numbers: tuple[int, ...], last_words: bytes) -> None:
    """End the process on a second signal. The loop is woken by each signal, whatever its handler in Python does."""
    received: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            _leave(last_words)

    for number in numbers:
        signal.signal(number, on_signal)


class TimeAlarm:
    """Ends the process if the loop is held when the time is over, and for `HELD_LIMIT_S` longer."""

    def __init__(self, how_to_continue: str) -> None:
        self._noticed: asyncio.TimerHandle | None = None
        why = "the time limit is over and the event loop is held: ended at once"
        last_words = _last_words(why, how_to_continue)
        if _forced_exit is not None:
            _forced_exit.at_alarm(STATUS_KILLED, last_words)
        else:
            signal.signal(signal.SIGALRM, lambda _number, _frame: _leave(last_words))

    def set(self, left_s: float) -> None:
        self.clear()
        left_s = max(0.0, left_s)
        signal.setitimer(signal.ITIMER_REAL, left_s + HELD_LIMIT_S)
        # If the loop runs then, it has noticed, and what is left to do may take its time.
        self._noticed = asyncio.get_running_loop().call_later(left_s + HELD_LIMIT_S / 2, self.clear)

    def clear(self) -> None:
        if self._noticed is not None:
            self._noticed.cancel()
            self._noticed = None
            signal.setitimer(signal.ITIMER_REAL, 0.0)
