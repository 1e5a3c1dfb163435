"""The rivals: how each is set up, and how it is told to crawl one site as fast as it can, politely told nothing.

All keep to robots.txt (there is none), make up to 16 requests at once without delay and follow every
link within the host. What they keep differs, and is said in `keeps`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
PEERS_VENV = PROJECT / ".venv-peers"
LOCKED = PROJECT / "requirements" / "peers.txt"
GOSSAMER = (sys.executable, "-m", "gossamer.cli.main")
_BUILD_WITHIN_S = 300

Command = Callable[[str, Path], list[str]]  # a start URL, a folder to write to


class Rival(Struct, frozen=True):
    """A crawler that can be run."""

    name: str
    keeps: str
    command: Command
    good_statuses: frozenset[int] = frozenset({0})


class Absent(Struct, frozen=True):
    """A crawler that cannot be run here, and why."""

    name: str
    why: str


def gossamer_command(url: str, out: Path, *more: str) -> list[str]:
    """Return the command line of a crawl of one host at full speed."""
    return [
        *(*GOSSAMER, "crawl", url, "--out", str(out / "crawl"), "--json", "--no-progress", "--scope", "host"),
        *("--politeness-ms", "0", "--host-connections", "16", "--max-pages", "100000", "--max-depth", "1000"),
        *("--include-pattern", "/admin/", *more),  # left out by default; the others do not know of that
    ]


def gossamer_options() -> str:
    """Return what `gossamer crawl --help` lists."""
    return subprocess.run([*GOSSAMER, "crawl", "--help"], check=True, capture_output=True, text=True).stdout


def all_rivals(work: Path) -> tuple[list[Rival], list[Absent]]:
    """Set up every rival; return those that can run, and those that cannot."""
    found = [*_gossamers(), *_python_rivals(), _wget2(), _colly(work), _spider()]
    return [one for one in found if isinstance(one, Rival)], [one for one in found if isinstance(one, Absent)]


def _gossamers() -> list[Rival]:
    plain = Rival("gossamer", "WARC, index, text, near duplicates, catalog, events", gossamer_command)
    if "--near-dup" not in gossamer_options():
        return [plain]
    without = Rival(
        "gossamer, no near-dup",
        "WARC, index, text, catalog, events",
        lambda url, out: gossamer_command(url, out, "--near-dup", "off"),
    )
    return [plain, without]


def _python_rivals() -> list[Rival | Absent]:
    about = {
        "scrapy": "an item a page, in memory",
        "crawlee": "an item a page, in memory",
        "script": "nothing",
    }
    why = _set_up_venv()
    if why:
        return [Absent(name, why) for name in about]
    return [Rival(name, keeps, _python_command(name)) for name, keeps in about.items()]


def _python_command(name: str) -> Command:
    program = str(HERE / "programs" / f"{name}_peer.py")
    return lambda url, _out: [str(PEERS_VENV / "bin" / "python"), program, url]


def _set_up_venv() -> str:
    """Make the rivals' own environment from its lock file; return what went wrong.

    It has the interpreter that Gossamer's has (venv takes the one behind the environment that is running), and is made
    anew when that changes: an optimised one beside another would be no comparison.
    """
    mark = PEERS_VENV / "made-from.txt"
    wanted = f"{sys.base_prefix}\n{sys.version}\n{LOCKED.read_text('utf-8')}"
    if mark.exists() and mark.read_text("utf-8") == wanted:
        return ""
    venv.create(PEERS_VENV, with_pip=True, clear=True)
    pip = [str(PEERS_VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "--require-hashes", "--no-deps", "-r", str(LOCKED)], check=False, capture_output=True, text=True
    )
    if done.returncode:
        return f"its packages could not be installed: {_last_line(done.stderr)}"
    mark.write_text(wanted, "utf-8")
    return ""


def _wget2() -> Rival | Absent:
    if shutil.which("wget2") is None:
        return Absent("wget2", "not installed; expected: make bench-tools")
    # Links of anchors only: style sheets, scripts and pictures are no pages.
    options = ["--quiet", "--recursive", "--level=inf", "--max-threads=16", "--follow-tags=a/href", "--no-cookies"]
    return Rival(
        "wget2",
        "files",
        lambda url, out: ["wget2", *options, f"--directory-prefix={out}", url],
        good_statuses=frozenset({0, 8}),  # 8: some link led to a 404
    )


def _colly(work: Path) -> Rival | Absent:
    if shutil.which("go") is None:
        return Absent("colly", "no Go toolchain")
    binary = work / "colly"
    try:
        done = subprocess.run(
            ["go", "build", "-o", str(binary), "."],
            cwd=HERE / "colly",
            check=False,
            capture_output=True,
            text=True,
            timeout=_BUILD_WITHIN_S,
        )
    except subprocess.TimeoutExpired:
        return Absent("colly", f"not built within {_BUILD_WITHIN_S} s")
    if done.returncode:
        return Absent("colly", f"cannot be built: {_last_line(done.stderr)}")
    return Rival("colly", "nothing", lambda url, _out: [str(binary), url])


def _spider() -> Rival | Absent:
    """Building it takes minutes of two cores: one that is installed is used."""
    binary = shutil.which("spider-peer")
    if binary is None:
        return Absent("spider", "not built (minutes); to include it: cargo install --path benchmarks/peers/spider")
    return Rival("spider", "nothing", lambda url, _out: [binary, url])


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1][:200]
