"""A crawl on a terminal: a live view, warnings above it, and nothing left of it at the end."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.preloaded import GOSSAMER
from tests.e2e.program import crawl_options
from tests.servers.web import RunningWeb
from tests.telemetry.terminals import FakeTerminal

WITHIN_S = 30.0


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", seed=5, pages=400, slow=0.0)) as web:
        yield web


class OnTerminal:
    """A crawl whose output goes to a terminal."""

    def __init__(self, web: RunningWeb, out: Path, *options: str, columns: int = 80) -> None:
        self.out = out
        self.screen = FakeTerminal(columns)
        self._main, other = pty.openpty()
        self.resize(columns)
        words = ["crawl", *web.seeds(), *crawl_options(web, out, 500), *options]
        environment = {**os.environ, "TERM": "xterm"}
        self.process = subprocess.Popen(
            [*GOSSAMER, *words], stdin=other, stdout=other, stderr=other, env=environment, start_new_session=True
        )
        os.close(other)

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self._main, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.screen.resize(columns)

    def read(self) -> bool:
        """Show what was written; return whether more may follow."""
        if not select.select([self._main], [], [], 0.1)[0]:
            return True
        try:
            self.screen.write(os.read(self._main, 65536).decode().replace("\r\n", "\n"))
        except OSError:  # the other end is closed
            return False
        return True

    def shown(self) -> list[str]:
        """Return the lines of the screen without those of the first pages."""
        return [line for line in self.screen.shown() if not is_of_first_pages(line)] or [""]

    def read_until(self, is_so: Callable[[list[str]], bool]) -> list[str]:
        until = time.monotonic() + WITHIN_S
        while not is_so(self.shown()):
            assert time.monotonic() < until, self.screen.shown()
            self.read()
        return self.shown()

    def end(self) -> list[str]:
        """Return what is on the screen when the process has ended."""
        while self.read():
            pass
        self.process.wait(WITHIN_S)
        os.close(self._main)
        return self.shown()


def is_of_first_pages(line: str) -> bool:
    return line.startswith("    ") or " · http://site-" in line


def has_view(lines: list[str]) -> bool:
    return any("pages/s" in line for line in lines) and any(line.startswith("bound by ") for line in lines)


def test_a_crawl_begins_with_the_titles_and_first_words_of_three_pages(web: RunningWeb, tmp_path: Path) -> None:
    crawl = OnTerminal(web, tmp_path / "out", columns=70)
    crawl.read_until(lambda lines: has_view(lines) and sum(map(is_of_first_pages, crawl.screen.shown())) == 6)
    lines = crawl.screen.shown()
    assert [bool(is_of_first_pages(line)) for line in lines[:7]] == [*[True] * 6, False]
    assert all(
        " · http://site-" in title and text.startswith("    ")
        for title, text in zip(lines[0:6:2], lines[1:6:2], strict=True)
    )
    assert max(len(line) for line in lines) < 70
    crawl.process.send_signal(signal.SIGINT)
    crawl.end()
    assert crawl.screen.shown()[:6] == lines[:6], "they stay above the summary"


def test_a_stop_leaves_one_line_and_the_summary(web: RunningWeb, tmp_path: Path) -> None:
    crawl = OnTerminal(web, tmp_path / "out")
    shown = crawl.read_until(has_view)
    assert 3 <= len(shown) <= 6
    crawl.resize(120)
    crawl.read_until(lambda lines: has_view(lines) and max(map(len, lines)) >= 80)
    assert len(crawl.shown()) <= 6, "nothing is left of the narrow view"
    crawl.process.send_signal(signal.SIGINT)
    shown = crawl.end()
    assert crawl.process.returncode == 11
    assert shown[0].startswith("gossamer: stopping: waiting for ")
    assert re.search(r" requests?, again to stop at once$", shown[0])
    assert json.loads(shown[1])["finished"] == "signal"
    assert len(shown) == 2


def test_what_is_above_the_view_survives_a_terminal_that_is_made_narrower_and_wider(
    web: RunningWeb, tmp_path: Path
) -> None:
    crawl = OnTerminal(web, tmp_path / "out", "--ui", columns=120)
    address = crawl.read_until(lambda lines: "token=" in lines[0] and has_view(lines))[0]
    for columns in (60, 120):
        crawl.resize(columns)
        crawl.screen.writes.clear()
        crawl.read_until(lambda lines: has_view(lines) and len(crawl.screen.writes) > 2)
        assert crawl.shown()[0] == address
    crawl.process.send_signal(signal.SIGINT)
    assert crawl.end()[0] == address


def test_a_second_signal_leaves_no_view(web: RunningWeb, tmp_path: Path) -> None:
    crawl = OnTerminal(web, tmp_path / "out")
    crawl.read_until(has_view)
    crawl.process.send_signal(signal.SIGINT)
    crawl.read_until(lambda lines: "again to stop at once" in lines[0])
    crawl.process.send_signal(signal.SIGINT)
    assert not has_view(crawl.end())


def test_the_death_of_a_worker_is_told_above_the_view(web: RunningWeb, tmp_path: Path) -> None:
    crawl = OnTerminal(web, tmp_path / "out", "--workers", "2", "--max-time", "8", columns=120)
    crawl.read_until(has_view)
    pid = crawl.process.pid
    workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    os.kill(int(workers[0]), signal.SIGKILL)
    shown = crawl.read_until(lambda lines: has_view(lines) and lines[0].startswith("warning: "))
    assert "was killed by SIGKILL" in shown[0]
    assert len(shown) <= 7
    crawl.end()
    lines = [line for path in (tmp_path / "out" / "events").glob("*.jsonl") for line in path.read_text().splitlines()]
    died = [event for event in map(json.loads, lines) if event.get("rule") == "worker_died"]
    assert ["was killed by SIGKILL" in event["reason"] for event in died] == [True]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert any("was killed by SIGKILL" in line for line in report["warnings"])
