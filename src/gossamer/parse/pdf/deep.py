"""Reads a PDF by its structure, in a process of its own: its text, its title, and the links that it shows.

For `--pdf deep`. The library (pypdf, the extra `gossamer[pdf]`) reads whatever a stranger wrote, so it works under
limits that the system enforces: memory and CPU time of the process, and its wall time from here. It gives back what it
read until a limit; if it dies, nothing but one line about it. About 0.2 s per file, most of it to start Python.
A crawl that stops ends the reading of its process (`end_reading`): that file is as if it had not been fetched.
"""

from __future__ import annotations

import subprocess
import sys
import weakref
from importlib import import_module

import msgspec
from msgspec import Struct

from gossamer.model.errors import UsageError
from gossamer.settings.extras import pip_install


class DeepLimits(Struct, frozen=True):
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
    if not parses_pdf:
        raise UsageError("--pdf deep contradicts --no-parse-pdf-links; expected one of them")
    try:
        import_module("pypdf")
    except ImportError:
        raise UsageError(f"--pdf deep needs pypdf, which is not installed: {pip_install('pdf')}") from None


def read_deep(content: bytes, limits: DeepLimits = DEFAULT_LIMITS) -> DeepPdf:
    """Return the contents of a PDF. Blocks for up to `wall_s`: not for the event loop."""
    command = [sys.executable, "-P", "-m", "gossamer.parse.pdf.child", msgspec.json.encode(limits).decode()]
    pipe = subprocess.PIPE
    # In a session of its own: Ctrl-C is for the crawl, which decides what becomes of the files that it is reading.
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as child:  # noqa: S603
        _reading.add(child)
        try:
            output, _ = child.communicate(content, timeout=limits.wall_s)
        except subprocess.TimeoutExpired:
            child.kill()
            return DeepPdf(problem=f"pdf: not read within {limits.wall_s:g} s")
        finally:
            _reading.discard(child)
    if child in _stopped:
        _stopped.discard(child)
        raise ReadingStoppedError
    try:
        return msgspec.json.decode(output, type=DeepPdf)
    except msgspec.DecodeError:
        return DeepPdf(problem=f"pdf: its reader ended with status {child.returncode}")


class ReadingStoppedError(Exception):
    """The file is not read to its end, because the crawl stops."""


# Of this process: whoever stops a worker has no way to a call that its thread is in.
_reading: set[subprocess.Popen[bytes]] = set()
_stopped: weakref.WeakSet[subprocess.Popen[bytes]] = weakref.WeakSet()


def end_reading() -> None:
    """End what `read_deep` is reading in other threads of this process; these calls raise `ReadingStoppedError`."""
    for child in list(_reading):
        _stopped.add(child)
        child.kill()
