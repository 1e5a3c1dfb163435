"""A disk that fails for a while: the crawl says so and ends, never hangs, and goes on later without a loss."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.archive.reader import ArchiveReader
from gossamer.sim.web.server_judge import JudgeRules
from gossamer.sim.web.web import preset
from tests.amount import crossed
from tests.e2e.program import crawl_options, run, start
from tests.e2e.test_faults import pages_stored
from tests.servers.web import RunningWeb

SHIM = Path(__file__).with_name("failing_disk.c")
FAILS_FOR_S = 1.0
MET_WITHIN_S = 60.0  # however slow the machine is
ENDS_WITHIN_S = 20.0  # the first error, a last sync, the files of two workers

# Which calls fail, of which files, and the error.
FAULTS = {
    "a write of every archive file": ("write,truncate", "archive/", errno.EIO),
    "a write of one worker's file": ("write,truncate", "-00-0", errno.EIO),
    "half a write that cannot be undone": ("write,truncate,half", "archive/", errno.EIO),
    "a sync of every archive file": ("fsync", "archive/", errno.EIO),
    "a sync of one worker's file": ("fsync", "-00-0", errno.EIO),
    "everything in the archive": ("write,truncate,fsync,rename,open,read", "archive/", errno.EIO),
    "a write of the ledger": ("write", "state/", errno.EIO),
    "a sync of the ledger": ("fsync", "state/", errno.EIO),
    "a write of the events": ("write", "events/", errno.EIO),
    "everything in the folder": ("write,truncate,fsync,rename,open,read", "/out/", errno.EIO),
    "no space for the archive": ("write,open", "archive/", errno.ENOSPC),
    "a sync that finds no space": ("fsync", "archive/", errno.ENOSPC),
}


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "failing_disk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SHIM, "-ldl"], check=True)
    return library


@pytest.fixture
def small_web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small")) as web:
        yield web


def environment(shim: Path, flag: Path, fault: str) -> dict[str, str]:
    calls, part, number = FAULTS[fault]
    return {
        "LD_PRELOAD": str(shim),
        "FAILING_DISK_FLAG": str(flag),
        "FAILING_DISK_CALLS": calls,
        "FAILING_DISK_FORM": "half" if "half" in calls else "",
        "FAILING_DISK_PART": part,
        "FAILING_DISK_ERRNO": str(number),
    }


@pytest.mark.parametrize(("fault", "workers"), crossed(FAULTS, (1, 2)))
def test_a_disk_that_fails_for_a_second_ends_the_crawl_with_a_line_and_nothing_is_lost(
    tmp_path: Path, shim: Path, small_web: RunningWeb, fault: str, workers: int
) -> None:
    out, flag = tmp_path / "out", tmp_path / "failing"
    options = [*crawl_options(small_web, out, 40), "--workers", str(workers), "--save-interval", "20"]
    arguments = ["crawl", *small_web.seeds(), *options]
    process = start(*arguments, "-vv", environment=environment(shim, flag, fault))
    said = fail_once_pages_come(process, flag)
    is_full = FAULTS[fault][2] == errno.ENOSPC
    assert process.returncode == (3 if is_full else 1), said
    line = said.strip().splitlines()[-1]
    assert ("no room" if is_full else "Input/output error") in line, said
    assert "Traceback" not in said
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    report = small_web.judge(JudgeRules(politeness_s=0.04, slack_s=0.01))
    assert report.missing == 0, report.render()
    assert report.is_polite, report.render()
    stored = pages_stored(out)
    assert len(stored) == len(set(stored))
    verified = run("verify", str(out))
    assert verified.returncode == 0, verified.stdout


TORN = """
import sys
from pathlib import Path
from tests.archive.samples import NOW, exchange, writer

folder, flag = map(Path, sys.argv[1:])
archive = writer(folder)
archive.write(exchange("http://a.test/1"), date=NOW)
flag.touch()
try:
    archive.write(exchange("http://a.test/2"), date=NOW)
except OSError as error:
    print(error.strerror)
flag.unlink()
archive.write(exchange("http://a.test/3"), date=NOW)
archive.close()
"""


def test_what_a_failed_write_left_is_removed_before_the_next_one(tmp_path: Path, shim: Path) -> None:
    fault = environment(shim, tmp_path / "failing", "half a write that cannot be undone")
    done = subprocess.run(
        [sys.executable, "-c", TORN, tmp_path, tmp_path / "failing"],
        env={**os.environ, **fault},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "Input/output error\n", done.stderr
    reader = ArchiveReader(next((tmp_path / "archive").iterdir()))
    assert [record.target for record in reader if record.type == "response"] == ["http://a.test/1", "http://a.test/3"]
    assert reader.problem == ""


def fail_once_pages_come(process: subprocess.Popen[str], flag: Path) -> str:
    """Let the disk fail for a while once the crawl is on its way; return what it says until it ends."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("heartbeat"):
            break
    flag.touch()
    until = time.monotonic() + MET_WITHIN_S
    while True:
        try:
            said = process.communicate(timeout=FAILS_FOR_S)[1]
            flag.unlink()
            break
        except subprocess.TimeoutExpired:
            if not flag.with_name(f"{flag.name}.met").is_symlink():
                assert time.monotonic() < until, "nothing failed within the time"
                continue
        flag.unlink()
        try:
            said = process.communicate(timeout=ENDS_WITHIN_S)[1]
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            return process.communicate()[1] + "it did not end"
        break
    return said
