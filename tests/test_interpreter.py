"""Which interpreters are fit, usable or refused, and what is said of them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from gossamer.__main__ import run_program
from gossamer.cli.check.doctor import _build, _check_python
from gossamer.foundation.interpreter import NEWEST_TESTED, OLDEST, USABLE, faults, is_optimised, missing_modules

PROJECT = Path(__file__).resolve().parent.parent
JUDGE = PROJECT / "src" / "gossamer" / "foundation" / "interpreter.py"
# Faults, planted by a statement.
OLD = "sys.version_info = (3, 10, 14, 'final', 0)"
WRONG_MATCHES = "re.compile = lambda *given: None"
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


@pytest.fixture
def nowhere(tmp_path: Path) -> Path:
    """A PATH on which the file that judges is not found, so that /usr/bin/python3, whatever it is, is not found fit."""
    _script(tmp_path, "dirname", "echo /nowhere")
    return tmp_path


def _choice(path: Path) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", str(PROJECT / "requirements" / "python")]
    return subprocess.run(command, check=True, capture_output=True, text=True, env={"PATH": str(path)})


def _script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n", "ascii")
    (folder / name).chmod(0o755)


def _judge(folder: Path, name: str, planted: str) -> None:
    """Write a Python that judges itself, with a fault planted in it."""
    program = f"import runpy, sys, re; {planted}; runpy.run_path({str(JUDGE)!r}, run_name='__main__')"
    _script(folder, name, f'exec {sys.executable} -c "{program}"')


def test_the_first_python_that_is_fit_is_chosen(nowhere: Path) -> None:
    _script(nowhere, "python3", "exit 3")
    _script(nowhere, "python3.12", "exit 0")
    _script(nowhere, "python3.13", "exit 0")
    assert _choice(nowhere).stdout == "python3.12\n"


def test_without_any_that_is_fit_it_is_the_first_that_is_usable(nowhere: Path) -> None:
    for name, status in (("python3", 1), ("python3.11", 2), ("python3.12", 3), ("python3.13", 3)):
        _script(nowhere, name, f"echo something >&2; exit {status}")
    done = _choice(nowhere)
    assert (done.stdout, done.stderr) == ("python3.12\n", "")


def test_a_python_with_a_fault_is_never_chosen(nowhere: Path) -> None:
    _judge(nowhere, "python3", OLD)
    _judge(nowhere, "python3.11", WRONG_MATCHES)
    done = _choice(nowhere)
    assert done.stdout == "false\n"  # with which `make` ends
    assert done.stderr.startswith("no Python was found that can run gossamer; expected CPython 3.11 or newer; ")
    assert "Python 3.10.14 is too old" in done.stderr
    assert "matches regular expressions wrongly" in done.stderr
    assert done.stderr.count("\n") == 1
    _judge(nowhere, "python3.13", "pass")
    assert _choice(nowhere).stdout == "python3.13\n"


def test_the_judgement_needs_nothing_but_the_interpreter() -> None:
    done = subprocess.run([sys.executable, "-I", "-S", str(JUDGE)], check=False, capture_output=True)
    assert done.stderr == b""
    assert done.returncode in (0, USABLE)


def test_this_python_has_no_fault() -> None:
    assert (faults(), missing_modules()) == ([], [])


def test_an_old_version_is_told_which_one_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 14, "final", 0))
    assert faults() == ["Python 3.10.14 is too old; expected CPython 3.11 or newer"]


def test_another_python_and_a_small_one_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="pypy"))
    monkeypatch.setattr(sys, "maxsize", 2**31 - 1)
    pypy, small = faults()
    assert pypy.startswith("this is pypy 3.")
    assert "32-bit" in small


@pytest.mark.parametrize("quantifier", ["*+", "}+"])
def test_an_engine_that_goes_back_behind_a_possessive_quantifier_is_found(
    monkeypatch: pytest.MonkeyPatch, quantifier: str
) -> None:
    right = re.compile

    def greedy(pattern: bytes) -> re.Pattern[bytes]:
        return right(pattern.replace(quantifier.encode(), quantifier[:-1].encode()))

    monkeypatch.setattr(re, "compile", greedy)
    [fault] = faults()
    assert "matches regular expressions wrongly; expected" in fault


@pytest.mark.parametrize(("planted", "expected"), [("OLD", "is too old"), ("WRONG_MATCHES", "matches regular")])
@pytest.mark.parametrize("words", [["crawl", "http://a.test/", "-o", "out"], ["doctor"], ["--version"]])
def test_the_program_does_not_start_on_a_python_with_a_fault(
    tmp_path: Path, planted: str, expected: str, words: list[str]
) -> None:
    # msgspec cannot be imported, as nothing that an old version does not know: the question comes first.
    code = f"import re, sys; {globals()[planted]}; sys.modules['msgspec'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(code, "ascii")
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{tmp_path}:{PROJECT / 'src'}"}
    command = [sys.executable, "-m", "gossamer", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gossamer: Python 3.")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_script_that_is_installed_asks_too() -> None:
    [script] = metadata.entry_points(group="console_scripts", name="gossamer")
    assert script.load() is run_program


def test_doctor_tells_what_is_wrong_with_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _check_python()[0] is True
    monkeypatch.setattr(sys, "version_info", (3, 99, 0, "final", 0))
    verdict, text = _check_python()
    assert verdict is None
    assert text.endswith("; the newest version that was tested is 3.14")
    monkeypatch.setattr("gossamer.cli.check.doctor.missing_modules", lambda: ["_sqlite3 (SQLite)"])
    assert _check_python()[0] is False
    monkeypatch.setattr(sys, "version_info", (3, 10, 14, "final", 0))
    assert _check_python() == (False, "Python 3.10.14 is too old; expected CPython 3.11 or newer")


def test_the_versions_that_are_declared_are_those_that_are_tested() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["requires-python"] == f">={OLDEST[0]}.{OLDEST[1]}"
    versions = [f"Programming Language :: Python :: 3.{minor}" for minor in range(OLDEST[1], NEWEST_TESTED[1] + 1)]
    assert [each for each in project["classifiers"] if " :: 3." in each] == versions
