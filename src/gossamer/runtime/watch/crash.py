"""What happens if our own code raises?

If it raises while it handles one page (fetching, decoding, parsing, storing), that page ends with the
outcome `internal_error` and the crawl goes on: a `Crash` says what happened, and reaches the hub from
whichever process it happened in. An exception in a callback, or in a task that is not awaited, belongs to
no page: it reaches the event loop's exception handler, and the crawl stops, since nobody knows what was
left undone. In both cases the details are appended to `events/crash.txt`, and nothing that is stored is
lost. In another program's loop only exceptions that passed through this package are handled; all others
go to the previous handler.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from gossamer.model.errors import GossamerError, PluginError

MAX_FILE_BYTES = 1_000_000
PLUGIN_PLACE = "plugin "  # begins the place of what a plugin raised
_PACKAGE = str(Path(__file__).parents[2])
OnFailure: TypeAlias = Callable[[GossamerError], None]


class Crash(Struct, frozen=True):
    """Our code raised while it handled a page."""

    url: str
    error: str  # type and message
    place: str  # the innermost line of this package, as "parse/html/html.py:12"
    details: str  # the traceback


def crash_of(url: str, error: BaseException) -> Crash:
    """Describe an exception that was raised while a page was handled."""
    if isinstance(error, PluginError):
        return Crash(url, describe(error), PLUGIN_PLACE + error.plugin, "".join(traceback.format_exception(error)))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(_PACKAGE)]
    place = f"{Path(frames[-1].filename).relative_to(_PACKAGE)}:{frames[-1].lineno}" if frames else "unknown"
    return Crash(url, describe(error), place, "".join(traceback.format_exception(error)))


def describe(error: BaseException) -> str:
    """Return the type and message of an exception, in one line."""
    name = "" if isinstance(error, PluginError) else f"{type(error).__name__}: "
    return " ".join(f"{name}{error}".split())[:300]


class CrashFile:
    """Appends the details of internal errors to `crash.txt`, up to a limit."""

    def __init__(self, folder: Path, shown: Callable[[str], str] = str) -> None:
        self.path = folder / "crash.txt"
        self._shown = shown  # masks what must not be shown

    def add(self, message: str, details: str) -> None:
        """Append an error. A file that cannot be written must not hide it: the caller reports it as well."""
        with suppress(OSError):
            if not self.path.exists() or self.path.stat().st_size < MAX_FILE_BYTES:
                with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(self._shown(f"{message}\n{details}\n"))


class CrashReporter:
    """Writes the details of an internal error that belongs to no page, and stops the crawl."""

    def __init__(self, file: CrashFile, on_failure: OnFailure) -> None:
        self._file = file
        self._on_failure = on_failure

    def report(self, error: BaseException | None, message: str) -> None:
        self._file.add(message, "".join(traceback.format_exception(error)) if error is not None else "")
        self._on_failure(GossamerError(f"internal error: {error!r}; see {self._file.path}"))

    @contextmanager
    def installed(self, *, is_guest: bool) -> Iterator[None]:
        """Install the running loop's exception handler; as a guest, only for what passed through this package."""
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()

        def on_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if not is_guest or is_ours(error):
                self.report(error, str(context.get("message")))
            elif before is not None:
                before(loop, context)
            else:
                loop.default_exception_handler(context)

        loop.set_exception_handler(on_exception)
        try:
            yield
        finally:
            loop.set_exception_handler(before)


def is_ours(error: BaseException | None) -> bool:
    """Return whether an error passed through code of this package."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    return any(frame.filename.startswith(_PACKAGE) for frame in frames)
