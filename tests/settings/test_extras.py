"""The hint that names the pip of this installation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gossamer.settings.extras import pip_install


@pytest.fixture
def pips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a virtual environment, `own`, and another place that has a pip, `other`."""
    for place in ("own", "other"):
        pip = tmp_path / place / "bin" / "pip"
        pip.parent.mkdir(parents=True)
        pip.touch(mode=0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "own"))
    return tmp_path


def test_the_pip_of_an_environment_that_is_not_active_is_named_in_full(
    pips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(pips / "other" / "bin"))
    assert pip_install("parquet") == f"{pips}/own/bin/pip install 'gossamer[parquet]'"


def test_pip_is_enough_if_the_environment_is_active_or_there_is_none(
    pips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{pips}/own/bin:{pips}/other/bin")
    assert pip_install("parquet") == "pip install 'gossamer[parquet]'"
    monkeypatch.setenv("PATH", str(pips / "other" / "bin"))
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    assert pip_install("parquet") == "pip install 'gossamer[parquet]'"


def test_an_environment_without_a_pip_of_its_own_names_none(pips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(pips / "other" / "bin"))
    (pips / "own" / "bin" / "pip").unlink()
    assert pip_install("s3") == "pip install 'gossamer[s3]'"


@pytest.mark.parametrize(
    ("record", "command"), [("uv-receipt.toml", "uv tool install"), ("pipx_metadata.json", "pipx install")]
)
def test_what_uv_or_pipx_installed_is_installed_by_them_again(pips: Path, record: str, command: str) -> None:
    (pips / "own" / record).touch()
    assert pip_install("pdf") == f"{command} --force 'gossamer[pdf]'"
