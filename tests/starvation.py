"""Did the machine give a test the CPU time that it wanted?

Others may take most of the CPU time of a virtual machine: `steal` in /proc/stat. A process then stands still for
seconds without having done anything, so that leases end, servers call each other dead, and bounds of time are missed.
A test that fails while more than `MAX_STOLEN` of the wanted time was taken is run again, up to `TRIES` times. What
fails every time has failed; only tests that measure time (marked `timed`) are skipped then, and say so. On a machine
that is left alone nothing is run twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

TRIES = 3
MAX_STOLEN = 0.1
MARK = "timed"
_STOLEN = 7
_WANTED = (0, 1, 2, 5, 6, _STOLEN)  # user, nice, system, interrupts: all but idle time


def cpu_times() -> list[int]:
    """Return the first line of /proc/stat, in hundredths of seconds; nothing where there is none."""
    try:
        return [int(word) for word in Path("/proc/stat").read_text("ascii").partition("\n")[0].split()[1:]]
    except OSError:
        return []


def stolen_share(before: Sequence[int], after: Sequence[int]) -> float:
    """Return which part of the CPU time that was wanted in between others got."""
    if len(after) <= _STOLEN or len(before) <= _STOLEN:
        return 0.0
    wanted = sum(after[place] - before[place] for place in _WANTED)
    return (after[_STOLEN] - before[_STOLEN]) / wanted if wanted else 0.0


def run_test(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test, again if it fails on a starved machine: the hook `pytest_runtest_protocol`."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for rest in reversed(range(TRIES)):
        before = cpu_times()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        stolen = stolen_share(before, cpu_times())
        failed = [report for report in reports if report.failed]
        if not failed or stolen <= MAX_STOLEN:
            break
        if rest:
            item._initrequest()  # type: ignore[attr-defined]  # fixtures of the function are made anew
        elif item.get_closest_marker(MARK):
            for report in failed:
                report.outcome = "skipped"
                place = item.location[1] or 0
                report.longrepr = (
                    str(item.path),
                    place,
                    f"others took {stolen:.0%} of the CPU time: {report.longrepr}",
                )
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
