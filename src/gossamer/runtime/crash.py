"""What happens if our code raises where no caller can catch it?

An exception in a callback, or in a task that is not awaited, reaches the event loop's exception
handler. Then the crawl stops, the details are written to `events/crash.txt`, and nothing that is
stored is lost. In another program's loop only exceptions that passed through this package are
handled; all others go to the previous handler.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from gossamer.errors import GossamerError

_PACKAGE = str(Path(__file__).parent.parent)
OnFailure: TypeAlias = Callable[[GossamerError], None]


class CrashReporter:
    """Writes the details of an internal error and stops the crawl."""

    def __init__(self, folder: Path, on_failure: OnFailure) -> None:
        self._path = folder / "crash.txt"
        self._on_failure = on_failure

    def report(self, error: BaseException | None, message: str) -> None:
        """Record an internal error."""
        details = "".join(traceback.format_exception(error)) if error is not None else ""
        with suppress(OSError):
            self._path.write_text(f"{message}\n{details}", "utf-8")
        self._on_failure(GossamerError(f"internal error: {error!r}; see {self._path}"))

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
