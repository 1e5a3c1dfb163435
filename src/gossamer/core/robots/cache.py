"""Which rules of robots.txt files are in memory?

Equal texts share one object. Rules that take more than `LARGE_BYTES`, and those of texts that were read in slices,
count against `max_rules_bytes`; beyond that the ones that were used least recently are shed. The text is in the ledger:
it is read again before the next decision. Small ones are counted with their host.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from weakref import WeakValueDictionary

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.robots.rules import RobotsReading, RobotsRules, parse_robots

LARGE_BYTES = 4_000
REREAD_S_PER_BYTE = 120e-6  # a text that does not fit into memory is read again at most this often: 1 MB in 2 minutes
AT_ONCE_BYTES = 20_000  # of a text, which takes up to 5 ms to read; a longer one is read in slices
MAX_RESTORING_S = 1.0  # without the next slice: its host has left memory, or has nothing queued any more
_KEY_BYTES = 16
_NOBODY = ("", "")


class RobotsCache:
    """The rules in memory for one product token, by text."""

    def __init__(self, limits: FrontierLimits, token: str) -> None:
        self._limits = limits
        self._token = token
        self._rules: WeakValueDictionary[bytes, RobotsRules] = WeakValueDictionary()
        self._large: OrderedDict[bytes, RobotsRules] = OrderedDict()  # the least recently used first
        self._restoring = _NOBODY, 0.0  # host and origin whose rules are read again in slices, and when they asked last
        self.large_bytes = 0

    def begin_restoring(self, owner: tuple[str, str], now: float) -> bool:
        """Return whether the long text of a host and origin may be read again: not while that of another is.

        By turns, each might be shed again before the host that needs it has its turn.
        """
        current, at = self._restoring
        if current not in (owner, _NOBODY) and at <= now < at + MAX_RESTORING_S:
            return False
        self._restoring = owner, now
        return True

    def end_restoring(self, owner: tuple[str, str]) -> None:
        """Let others read: a text was read to its end, or is not needed any more."""
        if self._restoring[0] == owner:
            self._restoring = _NOBODY, 0.0

    def read(self, body: bytes) -> RobotsRules:
        """Return the rules of a text, always the same object: those in memory, if there are any."""
        key = _key_of(body)
        rules = self.known(key)
        if rules is None:
            rules = self.store(key, parse_robots(body, self._token))
        return rules

    def reader(self) -> SlicedReader:
        """Return a reader of long texts that stores their rules here."""
        return SlicedReader(self, self._token)

    def known(self, key: bytes) -> RobotsRules | None:
        rules = self._rules.get(key)
        if rules is None or rules.is_shed:
            return None
        self.use(rules)
        return rules

    def store(self, key: bytes, parsed: RobotsRules, *, is_long: bool = False) -> RobotsRules:
        """Store what was read of a text; return the rules that all share who have the text."""
        rules = self._rules.get(key)
        if rules is None:
            rules = self._rules[key] = parsed
            rules.key = key
        else:
            rules.restore(parsed)
        if (is_long or rules.size_bytes > LARGE_BYTES) and key not in self._large:
            self._large[key] = rules
            self.large_bytes += _counted_bytes(rules)
            self._shed_excess()
        return rules

    def use(self, rules: RobotsRules) -> None:
        """Record that rules are used for a decision."""
        if rules.key in self._large:
            self._large.move_to_end(rules.key)

    def _shed_excess(self) -> None:
        while self.large_bytes > self._limits.max_rules_bytes and len(self._large) > 1:
            _, oldest = self._large.popitem(last=False)
            self.large_bytes -= _counted_bytes(oldest)
            oldest.shed()


class SlicedReader:
    """Reads long texts in slices, each to its end before the next one."""

    def __init__(self, cache: RobotsCache, token: str) -> None:
        self._cache = cache
        self._token = token
        self._reading: tuple[bytes, RobotsReading] | None = None  # a text of which a part has been read

    def read_on(self, body: bytes) -> bool:
        """Read a slice of a text; return whether its rules are in memory, so that `read` takes no time.

        What was read of another text is dropped, since half of it takes as much memory as rules do.
        """
        key = _key_of(body)
        if self._cache.known(key) is not None:
            return True
        if self._reading is None or self._reading[0] != key:
            self._reading = key, RobotsReading(body, self._token)
        parsed = self._reading[1].read_slice()
        if parsed is None:
            return False
        self._reading = None
        self._cache.store(key, parsed, is_long=True)
        return True


def _counted_bytes(rules: RobotsRules) -> int:
    return max(LARGE_BYTES, rules.size_bytes)


def _key_of(body: bytes) -> bytes:
    return blake2b(body, digest_size=_KEY_BYTES).digest()
