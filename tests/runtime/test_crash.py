"""Errors that nobody waits for: ours stop the crawl, those of others are theirs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from gossamer.model.errors import GossamerError
from gossamer.runtime.session.opt_out import name_in
from gossamer.runtime.watch.crash import CrashFile, CrashReporter

Context = dict[str, Any]


def fail_in_our_code() -> None:
    name_in(None)  # type: ignore[arg-type]


def fail_elsewhere() -> None:
    raise ZeroDivisionError("of others")


async def failures_of(reporter: CrashReporter, *, is_guest: bool, others: list[Context] | None = None) -> None:
    """Have one callback of ours and one of others fail while the reporter is installed."""
    loop = asyncio.get_running_loop()
    if others is not None:
        loop.set_exception_handler(lambda _loop, context: others.append(context))
    before = loop.get_exception_handler()
    with reporter.installed(is_guest=is_guest):
        loop.call_soon(fail_elsewhere)
        loop.call_soon(fail_in_our_code)
        await asyncio.sleep(0)
    assert loop.get_exception_handler() is before


def test_an_error_of_ours_stops_the_crawl_and_its_details_are_written(tmp_path: Path) -> None:
    failures: list[GossamerError] = []
    asyncio.run(failures_of(CrashReporter(CrashFile(tmp_path), failures.append), is_guest=True))
    (failure,) = failures
    assert "internal error: AttributeError" in str(failure)
    assert "name_in" in (tmp_path / "crash.txt").read_text()


def test_a_guest_leaves_the_errors_of_others_to_their_handler(tmp_path: Path) -> None:
    failures: list[GossamerError] = []
    others: list[Context] = []
    asyncio.run(failures_of(CrashReporter(CrashFile(tmp_path), failures.append), is_guest=True, others=others))
    assert [type(context["exception"]) for context in others] == [ZeroDivisionError]
    assert len(failures) == 1


def test_in_a_loop_of_its_own_every_error_stops_the_crawl(tmp_path: Path) -> None:
    failures: list[GossamerError] = []
    asyncio.run(failures_of(CrashReporter(CrashFile(tmp_path), failures.append), is_guest=False))
    assert len(failures) == 2


def test_a_folder_that_cannot_be_written_to_hides_no_error(tmp_path: Path) -> None:
    failures: list[GossamerError] = []
    CrashReporter(CrashFile(tmp_path / "missing"), failures.append).report(ValueError("x"), "")
    assert "ValueError" in str(failures[0])
