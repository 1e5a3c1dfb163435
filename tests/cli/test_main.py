"""The program can be started by its name, and by the name of its package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gossamer import __version__
from gossamer.backends.local.folder import CrawlFolder
from gossamer.cli.start.crawl import print_end, program
from gossamer.model.figures import Figures, Totals
from gossamer.telemetry.summary import summary_of


@pytest.mark.parametrize("module", ["gossamer", "gossamer.cli.main"])
def test_the_package_can_be_run_as_a_program(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--version"], check=True, capture_output=True, text=True)
    assert done.stdout == f"gossamer {__version__}\n"


def test_its_exit_status_is_that_of_the_verb() -> None:
    done = subprocess.run([sys.executable, "-m", "gossamer", "crawll"], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "did you mean 'crawl'?" in done.stderr


def test_hints_name_the_program_by_its_path_only_if_the_shell_would_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = tmp_path / "bin" / "gossamer"
    called.parent.mkdir()
    called.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(called), "crawl"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == str(called)
    monkeypatch.setenv("PATH", str(called.parent))
    assert program() == "gossamer"
    monkeypatch.setattr(sys, "argv", ["-m"])
    assert program() == "gossamer"


def test_a_node_that_left_names_its_ledger_without_the_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = summary_of(Figures(totals=Totals(pages=3), out="b", finished="left"))
    print_end(summary, CrawlFolder(tmp_path), as_json=False, ledger="redis://me:secret@10.0.0.5:6379/0/books")
    out = capsys.readouterr().out
    assert f"  continue  gossamer join redis://10.0.0.5:6379/0/books -o {tmp_path}\n" in out
    assert "secret" not in out
