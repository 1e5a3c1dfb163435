"""Calls of one Redis server: scripts, commands, and their errors as ours, in one line.

The scripts are in `lua/`. Each begins with `common.lua`, which lists the keys, and with what it includes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any, TypeVar

import redis
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    NoPermissionError,
    OutOfMemoryError,
    RedisClusterException,
    RedisError,
    TryAgainError,
)
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
)
from redis.exceptions import (
    TimeoutError as RedisTimeoutError,
)

from gossamer.core.dedup.index import MIN_SIMILARITY
from gossamer.core.dedup.minhash import LANES
from gossamer.model.errors import (
    EngineUnavailableError,
    GossamerError,
    LeaseLostError,
    NodeNameTakenError,
    UsageError,
)

Argument = str | bytes | float
CONTROL_SCRIPTS = (
    "start", "change_record", "join", "renew", "leave", "take", "release", "receive", "claim", "try_end", "sizes",
    "reserve",
)  # fmt: skip
_INCLUDED: Mapping[str, Sequence[str]] = {
    "commit": ("arguments", "basis", "rows", "pages"),
    "decide": ("arguments", "basis"),
    "apply": ("arguments", "rows", "pages"),
    "candidates": ("pages",),
}
_RETRIED = (RedisConnectionError, RedisTimeoutError)
_REFUSED = (AuthenticationError, AuthorizationError, NoPermissionError)
_DOWN = (ClusterDownError, TryAgainError, RedisClusterException)
_ERRORS = (RedisError, RedisClusterException)
# Of a script that the user may not run to its end: by Redis, and by Valkey.
_SCRIPT_REFUSED = ("The user executing the script can't", "ACL failure in script")
T = TypeVar("T")


class BehindError(GossamerError):
    """A server has not what a commit is based on: see `settling`."""


class RecordChangedError(GossamerError):
    """The record that a commit was to change is another one now: make the commit with that."""


def script_text(name: str, *, is_spread: bool) -> str:
    """Return a script as a server gets it; `is_spread`: on Redis Cluster."""
    constants = f"local MIN_EQUAL_LANES = {math.ceil(MIN_SIMILARITY * LANES)}\n"
    constants += f"local IS_SPREAD = {str(is_spread).lower()}\n"
    parts = ("common", *_INCLUDED.get(name, ()), name)
    folder = files("gossamer.backends.redis").joinpath("lua")
    return "#!lua\n" + constants + "".join(folder.joinpath(f"{part}.lua").read_text() for part in parts)


class ServerCalls:
    """A server. Thread-safe."""

    def __init__(self, client: redis.Redis, name: str) -> None:
        self._client: Any = client  # its stubs say that every answer may be text
        self.name = name
        scripts = (*CONTROL_SCRIPTS, "commit")
        self._scripts = {each: client.register_script(script_text(each, is_spread=False)) for each in scripts}

    def run(self, script: str, prefix: str, *args: Argument) -> Any:  # noqa: ANN401
        """Run a script on the keys that begin with the prefix."""
        return self.guarded(lambda: self._scripts[script](args=[prefix, *args]))

    def command(self, *words: Argument) -> Any:  # noqa: ANN401
        """Run a command; its second word is a key."""
        return self.guarded(lambda: self._client.execute_command(*words))

    def pipelined(self, commands: Sequence[tuple[Argument, ...]]) -> list[Any]:
        """Run commands in one round trip."""
        if not commands:
            return []
        with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return self.guarded(pipeline.execute)

    def now_us(self, prefix: str) -> int:
        """Return the time of the server that has the keys with this prefix."""
        del prefix
        seconds, microseconds = self.guarded(self._client.time)
        return int(seconds * 1_000_000 + microseconds)

    def info(self, section: str) -> list[dict[str, Any]]:
        """Return a section of what each server says of itself."""
        return [self.guarded(lambda: self._client.info(section))]

    def mend_log(self, run_id: str, key: str) -> None:
        """Have the server write its append-only file anew, once after it was started.

        If the file ended within a transaction, the server leaves that out, but not in the file: what is appended to it
        completes the transaction, and with the next start a part of a commit that was lost is there again.
        """
        with suppress(RedisError):  # a user without the right to do so, or a server that does it already
            if self._client.set(key, run_id, get=True) != run_id.encode():
                self._client.bgrewriteaof()

    def guarded(self, act: Callable[[], T]) -> T:
        """Do something; raise an error of Redis as one of ours."""
        return guarded(self.name, act)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def guarded(name: str, act: Callable[[], T]) -> T:
    """Do something; raise an error of Redis as one of ours, with the name of the ledger."""
    try:
        return act()
    except _ERRORS as error:
        raise as_ours(error, name) from error


def database_of_cluster(name: str) -> UsageError:
    """Return the error of a URL that names another database of a cluster than the first."""
    return UsageError(f"ledger {name}: a Redis Cluster has database 0 only; expected redis://host:port/0/NAME")


def as_ours(error: Exception, name: str) -> GossamerError:
    """Return an error of Redis as one of ours, in one line."""
    text = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, _REFUSED) or any(words in text for words in _SCRIPT_REFUSED):
        return UsageError(
            f"ledger {name}: {text}; give a user and a password that may run scripts (EVALSHA, SCRIPT LOAD, INFO) and "
            f"use the keys gossamer:{name}:*, in the URL or as GOSSAMER_REDIS_USER and GOSSAMER_REDIS_PASSWORD"
        )
    if "DB index is out of range" in text:
        return UsageError(
            f"ledger {name}: the server has no database of this number; expected redis://host:port/0/NAME"
        )
    if "SELECT is not allowed in cluster mode" in text:
        return database_of_cluster(name)
    if isinstance(error, _RETRIED):
        closed = any(word in text for word in ("Broken pipe", "reset by peer", "closed by server"))
        hint = "; without a password (requirepass) it accepts connections from its own machine only" if closed else ""
        return EngineUnavailableError(f"ledger {name}: Redis cannot be reached: {text}{hint}")
    if isinstance(error, _DOWN):
        return EngineUnavailableError(f"ledger {name}: the Redis Cluster is not complete: {text}")
    if text.startswith("LEASELOST "):
        return LeaseLostError(f"ledger {name}: {text.removeprefix('LEASELOST ')}")
    if text.startswith("NAMETAKEN "):
        return NodeNameTakenError(f"ledger {name}: a live node has the name {text.removeprefix('NAMETAKEN ')}")
    if text.startswith("RECORDCHANGED "):
        return RecordChangedError(f"ledger {name}: {text.removeprefix('RECORDCHANGED ')}")
    if text.startswith("BEHIND "):
        return BehindError(f"ledger {name}: {text.removeprefix('BEHIND ')}")
    if isinstance(error, OutOfMemoryError) or "OOM command not allowed" in text:
        return EngineUnavailableError(f"ledger {name}: Redis is full (maxmemory); give it more memory")
    is_passing = any(word in text for word in ("LOADING", "MASTERDOWN", "READONLY", "non local key"))
    return (EngineUnavailableError if is_passing else GossamerError)(f"ledger {name}: {text}")
