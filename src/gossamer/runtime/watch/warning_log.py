"""What must the operator know while a crawl runs? Each warning is an event and a line on stderr.

A condition that lasts (many errors, a full disk) is reported when it begins, and again only after it has
ended: `begin` and `end`. What happens once (the death of a worker) is reported by `warn`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from gossamer.engine.event_emitter import EventEmitter
from gossamer.model.events import EventName
from gossamer.model.figures import ActiveWarning
from gossamer.runtime.watch.crash import PLUGIN_PLACE, Crash, CrashFile

OnWarning: TypeAlias = Callable[[str], None]
INTERNAL_ERROR = "internal_error"
MAX_RECENT = 20


class WarningLog:
    def __init__(
        self,
        emitter: EventEmitter,
        crashes: CrashFile,
        now: Callable[[], float],
        on_warning: OnWarning | None = None,
        *,
        masked: Callable[[str], str] = str,
    ) -> None:
        self._emitter = emitter
        self._crashes = crashes
        self._now = now
        self._on_warning = on_warning
        self._masked = masked  # for texts that are shown; the emitter masks events itself
        self._lasting: dict[str, ActiveWarning] = {}  # by rule
        self._recent: deque[ActiveWarning] = deque(maxlen=MAX_RECENT)  # that happened once
        self._crash_places: set[str] = set()

    def active(self) -> list[ActiveWarning]:
        """Return the conditions that last now, then the last that happened once."""
        return [*self._lasting.values(), *self._recent]

    def warn(self, rule: str, text: str, *, url: str = "") -> None:
        """Report something that happened once."""
        self._remember(rule, text)
        self._report(rule, text, url)

    def record(self, rule: str, text: str, *, url: str = "") -> None:
        """Emit the event only: the operator was told already."""
        self._remember(rule, text)
        self._emit(rule, text, url)

    def _remember(self, rule: str, text: str) -> None:
        self._recent.append(ActiveWarning(rule, self._masked(text), self._now()))

    def _report(self, rule: str, text: str, url: str = "") -> None:
        if self._on_warning is not None:
            self._on_warning(self._masked(text))
        self._emit(rule, text, url)

    def _emit(self, rule: str, text: str, url: str) -> None:
        self._emitter.emit(EventName.WARNING, self._now(), url=url, rule=rule, reason=text)

    def begin(self, rule: str, text: str) -> None:
        """Report a condition, unless it is known to last already."""
        known = self._lasting.get(rule)
        self._lasting[rule] = ActiveWarning(
            rule, self._masked(text), known.since if known else self._now(), is_lasting=True
        )
        if known is None:
            self._report(rule, text)

    def end(self, rule: str) -> None:
        """Record that a condition is over: if it begins again, it is reported again."""
        self._lasting.pop(rule, None)

    def crash(self, crash: Crash) -> None:
        """Report that our code raised on a page: each place in the code once, the details in any case."""
        self._crashes.add(f"{crash.url}: {crash.error}", crash.details)
        if crash.place not in self._crash_places:
            self._crash_places.add(crash.place)
            where = "" if crash.place.startswith(PLUGIN_PLACE) else f"internal error at {crash.place}: "
            text = f"{where}{crash.error}; the page ends with it, see {self._crashes.path}"
            self.warn(INTERNAL_ERROR, text, url=crash.url)
