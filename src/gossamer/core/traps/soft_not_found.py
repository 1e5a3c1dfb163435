"""Which hosts answer "not found" with status 200? Suspected by repeated text, proven by one probe.

If `suspicious` URLs of a host have the same text, a page that cannot exist is requested from it. The text of that
answer is its "not found", whatever the status. No host is probed without such a reason. Pure.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection

from gossamer.core.url.identity import host_id, shard_of


class SoftNotFound:
    """The texts that hosts repeat; at most `max_hosts` hosts, each with `texts` fingerprints."""

    def __init__(self, suspicious: int = 10, max_hosts: int = 2000, texts: int = 32) -> None:
        self._suspicious = suspicious
        self._max_hosts = max_hosts
        self._texts = texts
        self._counts: OrderedDict[str, dict[bytes, int]] = OrderedDict()
        self._probed: OrderedDict[str, None] = OrderedDict()
        self._changed: set[str] = set()

    def record(self, host: str, fingerprint: bytes) -> bool:
        """Record a page; return whether its host should be probed now (once)."""
        if host in self._probed:
            return False
        counts = self._counts.get(host)
        if counts is None:
            counts = self._counts[host] = {}
            if len(self._counts) > self._max_hosts:
                self._counts.popitem(last=False)
        count = counts.get(fingerprint, 0) + 1
        if count < self._suspicious:
            if count > 1 or len(counts) < self._texts:
                counts[fingerprint] = count
            if count > 1:
                self._changed.add(host)
            return False
        del self._counts[host]
        self._set_probed(host)
        self._changed.add(host)
        return True

    def _set_probed(self, host: str) -> None:
        self._probed[host] = None
        if len(self._probed) > 10 * self._max_hosts:
            self._probed.popitem(last=False)

    # -- what survives a restart ------------------------------------------------------------------

    def is_probed(self, host: str) -> bool:
        return host in self._probed

    def repeated(self, host: str) -> dict[bytes, int]:
        """Return the texts that a host sent more than once, and how often. A text sent once is no suspicion."""
        return {text: count for text, count in self._counts.get(host, {}).items() if count > 1}

    def restore(self, host: str, repeated: dict[bytes, int], *, is_probed: bool) -> None:
        if is_probed:
            self._set_probed(host)
        elif repeated:
            self._counts[host] = dict(repeated)

    def take_changed(self) -> set[str]:
        """Return the hosts whose suspicion changed since the last call."""
        changed = self._changed
        self._changed = set()
        return changed

    def release(self, shards: Collection[int]) -> None:
        for host in [name for name in self._counts if shard_of(host_id(name)) in shards]:
            del self._counts[host]
