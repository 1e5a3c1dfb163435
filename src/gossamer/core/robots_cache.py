"""Which rules of robots.txt files are in memory?

Equal texts share one object. Rules that take more than `LARGE_BYTES` count against `max_rules_bytes`; beyond that
the ones that were used least recently are shed. The text is in the ledger: it is read again before the next decision.
Small ones are counted with their host.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from weakref import WeakValueDictionary

from gossamer.core.limits import FrontierLimits
from gossamer.core.robots import RobotsRules, parse_robots

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
        self._ahead: tuple[bytes, RobotsRules] | None = None
        self.large_bytes = 0

    def read_ahead(self, body: bytes) -> None:
        """Read a text for the next call of `read` with it. Can be called in a thread."""
        self._ahead = (_key_of(body), parse_robots(body, self._token))

    def read(self, body: bytes) -> RobotsRules:
        """Return the rules of a text, always the same one: those in memory, if there are any."""
        key = _key_of(body)
        rules = self._rules.get(key)
        if rules is not None and not rules.is_shed:
            if key in self._large:
                self._large.move_to_end(key)
            return rules
        ahead, self._ahead = self._ahead, None
        parsed = ahead[1] if ahead is not None and ahead[0] == key else parse_robots(body, self._token)
        if rules is None:
            rules = self._rules[key] = parsed
            rules.key = key
        else:
            rules.restore(parsed)
        size = rules.size_bytes
        if size > LARGE_BYTES:
            self._large[key] = rules
            self.large_bytes += size
            self._shed_excess()
        return rules

    def use(self, rules: RobotsRules) -> None:
        """Record that rules are used for a decision."""
        if rules.key in self._large:
            self._large.move_to_end(rules.key)

    def _shed_excess(self) -> None:
        while self.large_bytes > self._limits.max_rules_bytes and len(self._large) > 1:
            _, oldest = self._large.popitem(last=False)
            self.large_bytes -= oldest.size_bytes
            oldest.shed()


def _key_of(body: bytes) -> bytes:
    return blake2b(body, digest_size=_KEY_BYTES).digest()
