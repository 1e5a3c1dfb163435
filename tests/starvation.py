"""Did the machine give a test the CPU time that it wanted?

Others may take most of the CPU time of a virtual machine: `steal` in /proc/stat. A test that measures time (marked
`timed`) and fails while more than `MAX_STOLEN` of the wanted time was taken is run again, up to `TRIES` times, and
skipped if that does not help; the last lines of a run say how many were repeated. Every other test runs once: what
fails only now and then is a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

TRIES = 3
MAX_STOLEN = 0.1
MARK = "timed"
REPEATED = "repeated"  # a property of a test's reports
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
    """Run a test that measures time, again if it fails on a starved machine: the hook `pytest_runtest_protocol`."""
    if item.get_closest_marker(MARK) is None:
        return False
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for tried in range(1, TRIES + 1):
        before = cpu_times()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        stolen = stolen_share(before, cpu_times())
        failed = [report for report in reports if report.failed]
        if not failed or stolen <= MAX_STOLEN:
            break
        if tried == TRIES:
            for report in failed:
                report.outcome = "skipped"
                report.longrepr = (str(item.path), item.location[1] or 0, "Skipped: measure time, which others took")
        else:
            item._initrequest()  # type: ignore[attr-defined]  # fixtures of the function are made anew
    for report in reports:
        if tried > 1 and report.when == "call":
            report.user_properties.append((REPEATED, tried - 1))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
