"""How much may be reported per hour, by a host and by all of them? Fixed windows, bounded in memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

WINDOW_S: Final = 3600.0
MAX_HOSTS: Final = 20_000  # that are remembered: those that reported first are forgotten


class Allowance:
    """Counts what hosts use of an allowance per hour, each by itself and all together."""

    def __init__(self, per_host: int, overall: int) -> None:
        self._per_host = per_host
        self._overall = overall
        self._used: OrderedDict[str, tuple[float, int]] = OrderedDict()  # when the window began, and what was used
        self._total = (0.0, 0)

    def wait_s(self, host: str, count: int, now: float) -> float:
        """Use the allowance and return 0; if there is too little left, use nothing and return the time to wait."""
        began, used = _window(self._used.get(host, (now, 0)), now)
        total_began, total = _window(self._total, now)
        if used + count > self._per_host:
            return max(began + WINDOW_S - now, 1.0)
        if total + count > self._overall:
            return max(total_began + WINDOW_S - now, 1.0)
        self._used[host] = began, used + count
        self._used.move_to_end(host)
        self._total = total_began, total + count
        if len(self._used) > MAX_HOSTS:
            self._used.popitem(last=False)
        return 0.0


def _window(window: tuple[float, int], now: float) -> tuple[float, int]:
    return window if now - window[0] < WINDOW_S else (now, 0)
