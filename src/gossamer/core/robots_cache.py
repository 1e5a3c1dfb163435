"""Which rules of robots.txt files are in memory?

Equal texts share one object. Rules that take more than `LARGE_BYTES`, and those of texts that were read in slices,
count against `max_rules_bytes`; beyond that the ones that were used least recently are shed. The text is in the ledger:
it is read again before the next decision. Small ones are counted with their host.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from weakref import WeakValueDictionary

from gossamer.core.limits import FrontierLimits
from gossamer.core.robots import RobotsReading, RobotsRules, parse_robots

LARGE_BYTES = 4_000
REREAD_S_PER_BYTE = 120e-6  # a text that does not fit into memory is read again at most this often: 1 MB in 2 minutes
_KEY_BYTES = 16


class RobotsCache:
    """The rules in memory for one product token, by text."""

    def __init__(self, limits: FrontierLimits, token: str) -> None:
        self._limits = limits
        self._token = token
        self._rules: WeakValueDictionary[bytes, RobotsRules] = WeakValueDictionary()
        self._large: OrderedDict[bytes, RobotsRules] = OrderedDict()  # the least recently used first
        self._reading: tuple[bytes, RobotsReading] | None = None  # a long text, of which a part has been read
        self.large_bytes = 0

    def read_on(self, body: bytes) -> bool:
        """Read a slice of a text; return whether its rules are in memory, so that `read` takes no time.

        Only one text is in work, since half of it takes as much memory as rules do. A call for another one continues
        the one in work, so that each call is progress, whoever calls again first.
        """
        key = _key_of(body)
        if self._known(key) is not None:
            return True
        if self._reading is None:
            self._reading = key, RobotsReading(body, self._token)
        current, reading = self._reading
        parsed = reading.read_slice()
        if parsed is None:
            return False
        self._reading = None
        self._store(current, parsed, is_long=True)
        return current == key

    def read(self, body: bytes) -> RobotsRules:
        """Return the rules of a text, always the same object: those in memory, if there are any."""
        key = _key_of(body)
        rules = self._known(key)
        if rules is None:
            rules = self._store(key, parse_robots(body, self._token))
        return rules

    def _known(self, key: bytes) -> RobotsRules | None:
        rules = self._rules.get(key)
        if rules is None or rules.is_shed:
            return None
        self.use(rules)
        return rules

    def _store(self, key: bytes, parsed: RobotsRules, *, is_long: bool = False) -> RobotsRules:
        rules = self._rules.get(key)
        if rules is None:
            rules = self._rules[key] = parsed
            rules.key = key
        else:
            rules.restore(parsed)
        if is_long or rules.size_bytes > LARGE_BYTES:
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


def _counted_bytes(rules: RobotsRules) -> int:
    return max(LARGE_BYTES, rules.size_bytes)


def _key_of(body: bytes) -> bytes:
    return blake2b(body, digest_size=_KEY_BYTES).digest()
