"""What an operator sets outlasts a restart with the same file; what was given for one run does not."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.program import crawl_options, run, summary_of
from tests.servers.web import RunningWeb


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", pages=200, slow=0.0)) as web:
        yield web


class Service:
    """A crawl as its unit starts it: always by the same command, with a file."""

    def __init__(self, web: RunningWeb, folder: Path, text: str) -> None:
        self._web = web
        self._file = folder / "books.toml"
        self._file.write_text(text)
        self.out = folder / "c"

    def start(self) -> dict[str, Any]:
        words = ["--config", str(self._file), *crawl_options(self._web, self.out, 5), "--no-progress"]
        return summary_of(run("crawl", *self._web.seeds(), *words).stdout)

    def write(self, text: str) -> None:
        self._file.write_text(text)

    def stored(self) -> dict[str, Any]:
        return tomllib.loads((self.out / "crawl.toml").read_text())


def test_set_wins_over_the_file_at_a_restart(web: RunningWeb, tmp_path: Path) -> None:
    service = Service(web, tmp_path, "max-pages = 20\nmax-depth = 9\n")
    assert service.start()["pages"] == 20
    assert run("set", str(service.out), "max-pages", "40").returncode == 0
    assert service.start()["pages"] == 40
    assert service.start()["pages"] == 40, "and at every later one"
    assert service.stored()["set-by-command"] == ["max-pages"]


def test_what_no_command_has_set_follows_the_file_and_the_command_line_wins(web: RunningWeb, tmp_path: Path) -> None:
    service = Service(web, tmp_path, "max-pages = 20\n")
    service.start()
    service.write("max-pages = 30\n")
    assert service.start()["pages"] == 30
    assert "set-by-command" not in service.stored()
    assert run("set", str(service.out), "max-pages", "40").returncode == 0
    assert summary_of(run("resume", str(service.out), "-n", "50", "--json").stdout)["pages"] == 50


def test_a_host_that_either_blocks_is_blocked(web: RunningWeb, tmp_path: Path) -> None:
    one, other, third = (web.web.plan.host_name_at(number) for number in range(3))
    service = Service(web, tmp_path, f'max-pages = 20\nblock-host = ["{one}"]\n')
    service.start()
    assert run("block", str(service.out), other).returncode == 0
    service.write(f'max-pages = 20\nblock-host = ["{one}", "{third}"]\n')
    service.start()
    assert service.stored()["block-host"] == [one, other, third]


def test_a_time_limit_that_is_given_to_resume_is_for_that_run(web: RunningWeb, tmp_path: Path) -> None:
    service = Service(web, tmp_path, "max-pages = 20\n")
    service.start()
    assert run("resume", str(service.out), "-n", "30", "--max-time", "50", "--json").returncode == 0
    assert "max-time" not in service.stored()
    assert service.stored()["max-pages"] == 30, "a raised limit stays raised"
    assert run("set", str(service.out), "max-time", "70").returncode == 0
    assert run("resume", str(service.out), "-n", "35", "--max-time", "50", "--json").returncode == 0
    assert service.stored()["max-time"] == 70.0
