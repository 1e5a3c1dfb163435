"""Reads a PDF by its structure, in a process of its own: its text, its title, and the links that it shows.

For `--pdf deep`. The library (pypdf, the extra `gossamer[pdf]`) reads whatever a stranger wrote, so it works under
limits that the system enforces: memory and CPU time of the process, and its wall time from here. It gives back what it
read until a limit; if it dies, nothing but one line about it. About 0.2 s per file, most of it to start Python.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import msgspec
from msgspec import Struct

from gossamer.model.errors import UsageError
from gossamer.settings.extras import pip_install


class DeepLimits(Struct, frozen=True):
    """What the process may use."""

    read_s: float = 10.0  # then no further page is begun
    cpu_s: int = 15
    wall_s: float = 20.0  # then it is killed
    memory_bytes: int = 1 << 30  # of address space; Python with the library takes 100 MB of it


DEFAULT_LIMITS = DeepLimits()


class DeepPdf(Struct):
    """What was read. `problem` says in one line what was not, or is empty."""

    text: str = ""
    title: str = ""
    hrefs: list[str] = []
    problem: str = ""


def check_deep(*, parses_pdf: bool) -> None:
    """Check that `--pdf deep` can be done."""
    if not parses_pdf:
        raise UsageError("--pdf deep contradicts --no-parse-pdf-links; expected one of them")
    try:
        import_module("pypdf")
    except ImportError:
        raise UsageError(f"--pdf deep needs pypdf, which is not installed: {pip_install('pdf')}") from None


def read_deep(content: bytes, limits: DeepLimits = DEFAULT_LIMITS) -> DeepPdf:
    """Return the contents of a PDF. Blocks for up to `wall_s`: not for the event loop."""
    command = [sys.executable, "-P", "-m", "gossamer.parse.pdf.child", msgspec.json.encode(limits).decode()]
    try:
        # In a session of its own: Ctrl-C is for the crawl, which waits for the files that it is reading.
        child = subprocess.run(  # noqa: S603 - nothing in the command comes from outside
            command, input=content, capture_output=True, timeout=limits.wall_s, check=False, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        return DeepPdf(problem=f"pdf: not read within {limits.wall_s:g} s")
    try:
        return msgspec.json.decode(child.stdout, type=DeepPdf)
    except msgspec.DecodeError:
        return DeepPdf(problem=f"pdf: its reader ended with status {child.returncode}")
