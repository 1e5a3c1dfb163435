"""The program can be started by its name, and by the name of its package."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gossamer import __version__


@pytest.mark.parametrize("module", ["gossamer", "gossamer.cli.main"])
def test_the_package_can_be_run_as_a_program(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--version"], check=True, capture_output=True, text=True)
    assert done.stdout == f"gossamer {__version__}\n"


def test_its_exit_status_is_that_of_the_verb() -> None:
    done = subprocess.run([sys.executable, "-m", "gossamer", "crawll"], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "did you mean 'crawl'?" in done.stderr
