"""Calls of one Redis server: scripts, commands, and their errors as ours, in one line.

The scripts are in `lua/`. Each begins with `common.lua`, which lists the keys, and with what it includes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

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

from gossamer.backends.clients.errors import DriverErrors, Rule
from gossamer.core.dedup.index import MIN_SIMILARITY
from gossamer.core.dedup.minhash import LANES
from gossamer.foundation.expressions import expression
from gossamer.model.errors import (
    GossamerError,
    LeaseLostError,
    LedgerUnavailableError,
    NodeNameTakenError,
    UsageError,
)

Argument = str | bytes | float
CONTROL_SCRIPTS = (
    "start", "change_record", "join", "renew", "leave", "take", "release", "receive", "claim", "try_end", "sizes",
    "reserve",
)  # fmt: skip
# Run by a server that is full, too: they store next to nothing, and nodes that wait for memory keep their shards.
_WHEN_FULL = frozenset({"renew", "leave", "release", "claim"})
_INCLUDED: Mapping[str, Sequence[str]] = {
    "commit": ("arguments", "basis", "rows", "pages"),
    "decide": ("arguments", "basis"),
    "apply": ("arguments", "rows", "pages"),
    "candidates": ("pages",),
}


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
    first = "#!lua flags=allow-oom\n" if name in _WHEN_FULL else "#!lua\n"
    return first + constants + "".join(folder.joinpath(f"{part}.lua").read_text() for part in parts)


class ServerCalls:
    """A server. Thread-safe."""

    def __init__(self, client: redis.Redis, name: str) -> None:
        self._client: Any = client  # its stubs say that every answer may be text
        self.name = name
        self.errors = errors_of(name)
        scripts = (*CONTROL_SCRIPTS, "commit")
        self._scripts = {each: client.register_script(script_text(each, is_spread=False)) for each in scripts}

    def run(self, script: str, prefix: str, *args: Argument) -> Any:  # noqa: ANN401
        """Run a script on the keys that begin with the prefix."""
        with self.errors:
            return self._scripts[script](args=[prefix, *args])

    def command(self, *words: Argument) -> Any:  # noqa: ANN401
        """Run a command; its second word is a key."""
        with self.errors:
            return self._client.execute_command(*words)

    def pipelined(self, commands: Sequence[tuple[Argument, ...]]) -> list[Any]:
        """Run commands in one round trip."""
        if not commands:
            return []
        with self.errors, self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            answers: list[Any] = pipeline.execute()
            return answers

    def now_us(self, prefix: str) -> int:
        """Return the time of the server that has the keys with this prefix."""
        del prefix
        with self.errors:
            seconds, microseconds = self._client.time()
        return int(seconds * 1_000_000 + microseconds)

    def info(self, section: str) -> list[dict[str, Any]]:
        """Return a section of what each server says of itself."""
        with self.errors:
            return [self._client.info(section)]

    def mend_log(self, run_id: str, key: str) -> None:
        """Have the server write its append-only file anew, once after it was started.

        If the file ended within a transaction, the server leaves that out, but not in the file: what is appended to it
        completes the transaction, and with the next start a part of a commit that was lost is there again.
        """
        with suppress(RedisError):  # a user without the right to do so, or a server that does it already
            if self._client.set(key, run_id, get=True) != run_id.encode():
                self._client.bgrewriteaof()

    def close(self) -> None:
        self._client.close()


_DATABASE_OF_CLUSTER = "ledger {name}: a Redis Cluster has database 0 only; expected redis://host:port/0/NAME"
_REFUSAL = (
    "ledger {name}: {text}; give a user and a password that may run scripts (EVALSHA, SCRIPT LOAD, INFO) and use the "
    "keys gossamer:{name}:*, in the URL or as GOSSAMER_REDIS_USER and GOSSAMER_REDIS_PASSWORD"
)
_FULL = "ledger {name}: Redis is full (maxmemory); give it more memory"
_AWAY = (RedisConnectionError, RedisTimeoutError)
_RULES = (
    Rule(UsageError, _REFUSAL, (AuthenticationError, AuthorizationError, NoPermissionError)),
    # Of a script that the user may not run to its end: by Redis, and by Valkey.
    Rule(
        UsageError,
        _REFUSAL,
        pattern=expression("The user executing the script can't|ACL failure in script"),
    ),
    Rule(
        UsageError,
        "ledger {name}: the server has no database of this number; expected redis://host:port/0/NAME",
        pattern=expression("DB index is out of range"),
    ),
    Rule(
        UsageError,
        _DATABASE_OF_CLUSTER,
        pattern=expression("SELECT is not allowed in cluster mode"),
    ),
    Rule(
        LedgerUnavailableError,
        "ledger {name}: Redis cannot be reached: {text}; without a password (requirepass) it accepts connections from "
        "its own machine only",
        _AWAY,
        pattern=expression("Broken pipe|reset by peer|closed by server"),
    ),
    Rule(LedgerUnavailableError, "ledger {name}: Redis cannot be reached: {text}", _AWAY),
    Rule(
        LedgerUnavailableError,
        "ledger {name}: the Redis Cluster is not complete: {text}",
        (ClusterDownError, TryAgainError, RedisClusterException),
    ),
    Rule(
        LeaseLostError,
        "ledger {name}: {said}",
        pattern=expression("^LEASELOST (?P<said>.*)"),
    ),
    Rule(
        NodeNameTakenError,
        "ledger {name}: a live node has the name {said}",
        pattern=expression("^NAMETAKEN (?P<said>.*)"),
    ),
    Rule(
        RecordChangedError,
        "ledger {name}: {said}",
        pattern=expression("^RECORDCHANGED (?P<said>.*)"),
    ),
    Rule(
        BehindError,
        "ledger {name}: {said}",
        pattern=expression("^BEHIND (?P<said>.*)"),
    ),
    Rule(LedgerUnavailableError, _FULL, (OutOfMemoryError,)),
    Rule(
        LedgerUnavailableError,
        _FULL,
        pattern=expression("OOM command not allowed"),
    ),
    Rule(
        LedgerUnavailableError, "ledger {name}: {text}", pattern=expression("LOADING|MASTERDOWN|READONLY|non local key")
    ),
    Rule(GossamerError, "ledger {name}: {text}"),
)


def errors_of(name: str) -> DriverErrors:
    """Return how errors of Redis are raised as ours, with the name of the ledger."""
    return DriverErrors((RedisError, RedisClusterException), _RULES, name=name)


def database_of_cluster(name: str) -> UsageError:
    """Return the error of a URL that names another database of a cluster than the first."""
    return UsageError(_DATABASE_OF_CLUSTER.format(name=name))
