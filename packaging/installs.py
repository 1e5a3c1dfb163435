"""Install the package in every way that the documentation names, each into a new environment, and use it.

    python packaging/installs.py [PYTHON]          (make installs; PYTHON: the one that runs this)

pip from the source, with all extras, without a compiler, and from a wheel; `uv tool install`, `pipx install` and
`uvx --from` with that wheel. Needs the network; uv and pipx are installed from it too. Of what all extras bring, no
licence may be the GPL or AGPL.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from wheels import copied_source

URL = "https://example.org/"
CLIENTS = "boto3 cassandra confluent_kafka maxminddb psycopg pyarrow pymongo pypdf redis"
LICENCES = """
import re, sys
from importlib import metadata
stated = {}
for found in metadata.distributions():
    about = found.metadata
    lines = [about["License-Expression"] or about["License"] or "", *about.get_all("Classifier", [])]
    named = " ".join(line for line in lines if line in lines[:1] or line.startswith("License ::"))
    stated[about["Name"]] = re.sub(r"LGPL|Lesser General Public", "", named)
bad = {name: text for name, text in stated.items() if re.search(r"\\bA?GPL|General Public", text[:500])}
sys.exit(f"GPL or AGPL: {bad}" if bad else 0)
"""


def main() -> int:
    """Install in every way; stop at the first that fails."""
    python = sys.argv[1] if sys.argv[1:] else sys.executable
    with tempfile.TemporaryDirectory(prefix="gossamer-installs-") as name:
        folder = Path(name)

        def source(way: str) -> Path:
            return copied_source(folder / "source" / way)  # so that no earlier build gets into it

        tools = new_environment(python, folder / "tools")
        pip_install(tools, "uv", "pipx")
        run(tools / "pip", "wheel", "--quiet", "--no-deps", "-w", folder / "dist", source("dist"))
        (wheel,) = (folder / "dist").glob("*.whl")
        owned = {
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            **{f"{key}_DIR": str(folder / key.lower()) for key in ("UV_TOOL", "UV_TOOL_BIN", "PIPX_BIN", "PIPX_MAN")},
            "UV_PYTHON": python,
            "PIPX_HOME": str(folder / "pipx"),
            "PIPX_DEFAULT_PYTHON": python,
        }
        uv, pipx = tools / "uv", tools / "pipx"
        ways: dict[str, Callable[[], None]] = {
            "pip install .": lambda: by_pip(python, folder / "pip", source("pip")),
            "pip install '.[all]'": lambda: with_all_extras(python, folder / "all", source("all")),
            "pip install ., no compiler": lambda: without_compiler(python, folder / "bare", source("bare")),
            f"pip install {wheel.name}": lambda: by_pip(python, folder / "wheel", wheel),
            "uv tool install .": lambda: by_tool(
                folder / "uv_tool_bin", owned, uv, "tool", "install", "-q", source("uv")
            ),
            "pipx install .": lambda: by_tool(folder / "pipx_bin", owned, pipx, "install", "-q", source("pipx")),
            "uvx --from WHEEL": lambda: use(tools / "uvx", "-q", "--from", wheel, "gossamer", environment=owned),
        }
        for what, install in ways.items():
            started = time.monotonic()
            install()
            print(f"ok   {what:<70} {time.monotonic() - started:4.0f} s", flush=True)
    return 0


def run(*words: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program and return what it prints; exit with all that it said if it fails."""
    done = subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def new_environment(python: str, folder: Path) -> Path:
    """Return the folder of the programs of a new virtual environment."""
    run(python, "-m", "venv", folder)
    return folder / "bin"


def pip_install(programs: Path, *what: str, environment: Mapping[str, str] | None = None) -> None:
    """Install into a virtual environment."""
    run(programs / "pip", "install", "--quiet", "--disable-pip-version-check", *what, environment=environment)


def use(*program: str | Path, environment: Mapping[str, str] | None = None) -> None:
    """Check that an installed program runs and knows a URL."""
    if ["domain", "example.org"] not in map(str.split, run(*program, "url", URL, environment=environment).splitlines()):
        raise SystemExit(f"{program[0]}: does not tell the domain of {URL}")


def compiled(programs: Path, *, are_there: bool) -> None:
    """Check what `gossamer doctor` says of the compiled parts."""
    told = subprocess.run([programs / "gossamer", "doctor"], check=False, capture_output=True, text=True).stdout
    line = next((line for line in told.splitlines() if " compiled" in line), told)
    if line.startswith("ok ") is not are_there:
        raise SystemExit(f"compiled parts: {line}")


def by_pip(python: str, folder: Path, what: Path) -> None:
    """Install source or a wheel with pip."""
    programs = new_environment(python, folder)
    pip_install(programs, str(what))
    use(programs / "gossamer")
    compiled(programs, are_there=True)


def with_all_extras(python: str, folder: Path, source: Path) -> None:
    """Install all extras; check that every client can be imported, and the licences."""
    programs = new_environment(python, folder)
    pip_install(programs, f"{source}[all]")
    run(programs / "python", "-c", f"import {', '.join(CLIENTS.split())}")
    run(programs / "python", "-c", LICENCES)


def without_compiler(python: str, folder: Path, source: Path) -> None:
    """Install where nothing can be compiled: everything works, and `doctor` says what is missing."""
    programs = new_environment(python, folder)
    bare = {**os.environ, "PATH": str(programs), "CC": "no-compiler"}
    pip_install(programs, str(source), environment=bare)
    use(programs / "gossamer")
    compiled(programs, are_there=False)


def by_tool(programs: Path, environment: Mapping[str, str], *words: str | Path) -> None:
    """Install with a tool that makes the environment itself."""
    run(*words, environment=environment)
    use(programs / "gossamer")


if __name__ == "__main__":
    sys.exit(main())
