"""The tutorial's commands, run one after the other as a reader would."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.e2e.program import run

TUTORIAL = Path(__file__).resolve().parent.parent / "docs" / "tutorial.md"


def test_every_command_of_the_tutorial_works(tmp_path: Path) -> None:
    blocks = re.findall(r"^```console\n(.*?)^```", TUTORIAL.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    commands = [line.removeprefix("$ gossamer ") for block in blocks for line in block.splitlines()]
    assert len(commands) > 10
    assert sum(command.startswith("demo ") for command in commands) == 1
    for command in commands:
        words = shlex.split(command)
        done = run(*words, *(["--pages", "60"] if words[0] == "demo" else []), cwd=tmp_path)
        assert done.returncode == 0, f"gossamer {command}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "pages.jsonl").stat().st_size
    assert (tmp_path / "pages.csv").stat().st_size
    assert 'seeds = [\n  "https://example.org/",\n]' in (tmp_path / "example.toml").read_text()
