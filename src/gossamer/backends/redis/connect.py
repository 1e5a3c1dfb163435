"""From a ledger URL to a connected ledger: `redis://[user:password@]host:port/db/NAME`, `rediss://…` over TLS.

User and password may come from the environment instead: GOSSAMER_REDIS_USER, GOSSAMER_REDIS_PASSWORD.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from gossamer.backends.redis.shared_ledger import RedisSharedLedger
from gossamer.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_EXPECTED = "expected redis://host:port/db/NAME"
TIMEOUT_S = 5.0


class RedisAddress:
    """The parts of a ledger URL."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port or 6379
        except ValueError as error:
            raise UsageError(f"{without_password(url)}: {error}; {_EXPECTED}") from None
        database, _, name = parts.path.strip("/").partition("/")
        if parts.scheme not in ("redis", "rediss") or not parts.hostname or not database.isdigit():
            raise UsageError(f"{without_password(url)}: not a ledger URL; {_EXPECTED}")
        if not _NAME.fullmatch(name):
            raise UsageError(f"{without_password(url)}: the name of a crawl has letters, digits and ._-; {_EXPECTED}")
        self.host, self.port, self.database, self.name = parts.hostname, port, int(database), name
        self.user = unquote(parts.username or "") or os.environ.get("GOSSAMER_REDIS_USER") or None
        self.password = unquote(parts.password or "") or os.environ.get("GOSSAMER_REDIS_PASSWORD") or None
        self.is_tls = parts.scheme == "rediss"


def connect(url: str, warn: Callable[[str], None]) -> RedisSharedLedger:
    """Return the ledger behind a URL; raises `EngineUnavailableError` if the server cannot be reached."""
    address = RedisAddress(url)
    client = redis.Redis(
        host=address.host,
        port=address.port,
        db=address.database,
        username=address.user,
        password=address.password,
        ssl=address.is_tls,
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),  # the callers try again, as long as they may
        protocol=2,
    )
    ledger = RedisSharedLedger(client, address.name)
    if caveat := ledger.check_server():
        warn(caveat)
    return ledger


def without_password(url: str) -> str:
    """Return a URL for people: without the password."""
    return re.sub(r"//[^/@]*@", "//", url)
