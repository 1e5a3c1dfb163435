"""A wheel, built offline and without a compiler, has all that the program needs beside its dependencies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import gossamer

ROOT = Path(__file__).resolve().parent.parent.parent


def python(*words: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], check=True, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True
    )
    return done.stdout


def test_a_wheel_without_compiled_parts_is_built_installed_and_run(tmp_path: Path) -> None:
    source, place = tmp_path / "source", tmp_path / "place"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(tmp_path)!r})"  # what pip calls
    python("-c", build, cwd=source, GOSSAMER_PLATFORM="any")
    (wheel,) = tmp_path.glob("gossamer-*-py3-none-any.whl")
    install = ("install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--target", str(place), str(wheel))
    python("-m", "pip", *install, cwd=tmp_path)
    run = "import gossamer; print(gossamer.__file__); from gossamer.cli.main import main; main(['--version'])"
    told = python("-c", run, cwd=tmp_path, PYTHONPATH=str(place))
    assert told.split() == [f"{place}/gossamer/__init__.py", "gossamer", gossamer.__version__]
    sources = {path.relative_to(ROOT / "src") for path in (ROOT / "src" / "gossamer").rglob("*.py")}
    assert sources <= {path.relative_to(place) for path in place.rglob("*.py")}
    assert (place / "gossamer" / "web" / "static").is_dir()
