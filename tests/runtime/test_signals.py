"""Signals and time limits in a process of its own, whose event loop is held."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gossamer.runtime.session import signals

HELD_BY = {
    "python": "while True: pass",
    "c code with the interpreter's lock": "collections.deque(itertools.repeat(0), maxlen=0)",
}
COMMAND = "gossamer resume /crawls/städte"
PROGRAM = """
import asyncio, collections, itertools, signal, sys
import uvloop
from gossamer.runtime.session import signals

def hold():
    print("held", flush=True)
    {hold}

async def main():
    {before}
    signals.stop_on_signals(lambda command: print("stop", flush=True), lambda name: None, {command!r})
    if {max_time_s} is not None:
        signals.TimeAlarm({command!r}).set({max_time_s})
    asyncio.get_running_loop().call_soon(hold)
    await asyncio.sleep(3600)

uvloop.run(main())
"""


STARTED: list[subprocess.Popen[str]] = []


def started(hold: str, *, before: str = "pass", max_time_s: float | None = None) -> subprocess.Popen[str]:
    """Start a process and return it when its loop is held."""
    program = PROGRAM.format(hold=hold, before=before, max_time_s=max_time_s, command=COMMAND)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    STARTED.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    yield
    while STARTED:
        STARTED.pop().kill()


def test_the_handler_is_compiled_here() -> None:
    assert signals.IS_COMPILED


@pytest.mark.parametrize("holder", HELD_BY)
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_ends_a_process_whose_loop_is_held(holder: str, second: signal.Signals) -> None:
    process = started(HELD_BY[holder])
    process.send_signal(signal.SIGTERM if second is signal.SIGINT else signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)  # the first one waits for the loop
    process.send_signal(second)
    _, stderr = process.communicate(timeout=10)
    assert process.returncode == signals.STATUS_KILLED
    assert stderr.endswith(f"\ngossamer: ended by a second signal; to continue: {COMMAND}\n")


def test_without_the_compiled_part_python_ends_it() -> None:
    process = started(HELD_BY["python"], before="signals._forced_exit = None")
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=10)
    assert process.returncode == signals.STATUS_KILLED
    assert f"to continue: {COMMAND}\n" in stderr


@pytest.mark.parametrize("holder", HELD_BY)
def test_a_time_limit_ends_a_process_whose_loop_is_held(holder: str) -> None:
    process = started(HELD_BY[holder], before="signals.HELD_LIMIT_S = 0.3", max_time_s=0.2)
    _, stderr = process.communicate(timeout=10)
    assert process.returncode == signals.STATUS_KILLED
    assert "the time limit is over and the event loop is held" in stderr
    assert f"to continue: {COMMAND}\n" in stderr


def test_a_time_limit_that_the_loop_notices_ends_nothing_by_force() -> None:
    hold = "asyncio.get_running_loop().call_later(0.8, sys.exit, 7)"
    process = started(hold, before="signals.HELD_LIMIT_S = 0.2", max_time_s=0.1)
    process.communicate(timeout=10)
    assert process.returncode == 7


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    hold = "asyncio.get_running_loop().call_later(0.5, sys.exit, 7)"
    process = started(hold, before="signal.signal(signal.SIGHUP, signal.SIG_IGN)")
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGHUP)
    stdout, _ = process.communicate(timeout=10)
    assert process.returncode == 7
    assert "stop" not in stdout
