"""How an interpreter was built, as its records tell; and what is said of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.cli.doctor import _build
from gossamer.interpreter import is_optimised

PROJECT = Path(__file__).resolve().parent.parent
USE = "-fprofile-use -fprofile-correction"

# What the records of real builds say.
PLAIN = {"CONFIG_ARGS": "'--enable-shared'", "PGO_PROF_GEN_FLAG": "-fprofile-generate", "PGO_PROF_USE_FLAG": USE}
CONFIGURED = {**PLAIN, "CONFIG_ARGS": "'--enable-optimizations' '--with-lto'"}
PROFILE_OPT = {**PLAIN, "PY_CFLAGS_NODIST": f"-std=c11 {USE}"}
CLANG = {**PLAIN, "PY_CFLAGS_NODIST": "-std=c11 -fprofile-instr-use=code.profclangd"}
DEBIAN = {**PLAIN, "PY_CFLAGS_NODIST": "-std=c11", "PGO_PROF_USE_FLAG": ""}
OTHER_COMPILER = {"CONFIG_ARGS": "'CC=cc'", "PGO_PROF_GEN_FLAG": "", "PGO_PROF_USE_FLAG": ""}


@pytest.mark.parametrize("build", [CONFIGURED, PROFILE_OPT, CLANG, DEBIAN])
def test_a_build_with_a_profile_is_known(build: dict[str, str]) -> None:
    assert is_optimised(build)
    assert _build(build) == "built with optimisation"


@pytest.mark.parametrize("build", [PLAIN, OTHER_COMPILER, {}])
def test_a_build_without_a_profile_is_known(build: dict[str, str]) -> None:
    assert not is_optimised(build)
    assert "--enable-optimizations" in _build(build)


def _chosen(path: str) -> str:
    command = ["/bin/sh", str(PROJECT / "requirements" / "python")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={"PATH": path})
    assert done.stderr == ""
    return done.stdout.strip()


def _script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n", "ascii")
    (folder / name).chmod(0o755)


def test_the_first_python_that_is_fit_is_chosen(tmp_path: Path) -> None:
    _script(tmp_path, "dirname", 'exec /usr/bin/dirname "$@"')
    _script(tmp_path, "python3", "exit 0")
    assert _chosen(str(tmp_path)) == "python3"


def test_without_any_that_is_fit_it_is_python3_as_ever(tmp_path: Path) -> None:
    for name in ("python3", "python3.11", "python3.13"):
        _script(tmp_path, name, "echo no such thing >&2; exit 1")
    _script(tmp_path, "dirname", "echo /nowhere")  # so that /usr/bin/python3, whatever it is, is not found fit
    assert _chosen(str(tmp_path)) == "python3"


def test_the_judgement_needs_nothing_but_the_interpreter() -> None:
    command = [sys.executable, "-I", "-S", str(PROJECT / "src" / "gossamer" / "interpreter.py")]
    assert subprocess.run(command, check=False, capture_output=True).stderr == b""
