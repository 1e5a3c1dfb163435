"""Checks a Redis: there is nothing to create."""

from __future__ import annotations

from contextlib import closing

from gossamer.backends.redis.connect import RedisAddress, connect, server_version, without_password
from gossamer.model.errors import UsageError
from gossamer.ports.setup import SetupOptions

MIN_VERSION = 7


def init(url: str, _options: SetupOptions) -> list[str]:
    """See `gossamer.ports.setup.Setup`."""
    version = server_version(RedisAddress(url))
    if int(version.partition(".")[0]) < MIN_VERSION:
        raise UsageError(f"{without_password(url)}: Redis {version} is too old; expected {MIN_VERSION}.0 or newer")
    caveats: list[str] = []
    with closing(connect(url, caveats.append)) as ledger:
        has_crawl = ledger.record() is not None
    state = "has this crawl" if has_crawl else "has no such crawl yet"
    lines = [f"Redis {version} at {without_password(url)}: removes no keys when it is full, {state}; nothing to create"]
    return lines + caveats
