"""Calls of the servers of a Redis Cluster: each goes to the server that has the hash slot of its keys.

The prefix of a script's keys contains the hash tag. Several calls are written to all servers before the first answer
is read, so they take as long as the slowest server.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha1
from typing import Any

from redis.cluster import RedisCluster
from redis.exceptions import NoScriptError, RedisError

from gossamer.backends.redis.calls import CONTROL_SCRIPTS, Argument, ServerCalls, errors_of, script_text

_SCRIPTS = (*CONTROL_SCRIPTS, "decide", "decided", "apply", "journal", "candidates")
Call = tuple[str, str, Sequence[Argument]]  # script, prefix, arguments


class ClusterCalls(ServerCalls):
    """The servers of a cluster. Thread-safe."""

    def __init__(self, client: RedisCluster, name: str) -> None:
        self._client: Any = client
        self.name = name
        self.errors = errors_of(name)
        self._texts = {each: script_text(each, is_spread=True) for each in _SCRIPTS}
        self._digests = {
            each: sha1(text.encode(), usedforsecurity=False).hexdigest() for each, text in self._texts.items()
        }

    def run(self, script: str, prefix: str, *args: Argument) -> Any:  # noqa: ANN401
        """Run a script on the keys that begin with the prefix. It is sent once: not all of them may be repeated."""
        words = ("EVALSHA", self._digests[script], 1, prefix, prefix, *args)
        with self.errors:
            try:
                return self._client.execute_command(*words)
            except NoScriptError:
                self._load_scripts()
            return self._client.execute_command(*words)

    def run_many(self, calls: Sequence[Call]) -> list[Any]:
        """Run scripts, in their order on each server, and return their answers; raise the first error, if any.

        One whose connection breaks is sent again.
        """
        commands = [("EVALSHA", self._digests[script], 1, prefix, prefix, *args) for script, prefix, args in calls]
        return self._many(commands, [prefix for _, prefix, _ in calls])

    def command(self, *words: Argument) -> Any:  # noqa: ANN401
        """Run a command; its second word is a key."""
        return self.pipelined([words])[0]

    def pipelined(self, commands: Sequence[tuple[Argument, ...]]) -> list[Any]:
        """Run commands; the second word of each is a key."""
        return self._many(commands, [str(command[1]) for command in commands])

    def _many(self, commands: Sequence[tuple[Argument, ...]], keys: Sequence[str]) -> list[Any]:
        """Run commands where their keys are. A server that does not know the scripts gets them first."""
        if not commands:
            return []
        with self.errors:
            answers = self._sent(commands, keys)
            unknown = [place for place, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
            if unknown:
                self._load_scripts()
                places = [(commands[each], keys[each]) for each in unknown]
                for place, answer in zip(unknown, self._sent(*zip(*places, strict=True)), strict=True):
                    answers[place] = answer
            for answer in answers:
                if isinstance(answer, Exception):
                    raise answer
            return answers

    def _load_scripts(self) -> None:
        for text in self._texts.values():
            self._client.script_load(text)

    def _sent(self, commands: Sequence[tuple[Argument, ...]], keys: Sequence[str]) -> list[Any]:
        with self._client.pipeline(transaction=False) as pipeline:
            for command, key in zip(commands, keys, strict=True):
                # Without a target the client would ask a server for the keys of a script's call, arguments and all.
                pipeline.execute_command(*command, target_nodes=[self._client.get_node_from_key(key)])
            answers: list[Any] = pipeline.execute(raise_on_error=False)
            return answers

    def server_of(self, prefix: str) -> str:
        """Return the name of the server that has the keys with this prefix."""
        with self.errors:
            name: str = self._client.get_node_from_key(prefix).name
            return name

    def now_us(self, prefix: str) -> int:
        """Return the time of the server that has the keys with this prefix."""
        with self.errors:
            node = self._client.get_node_from_key(prefix)
            seconds, microseconds = self._client.time(target_nodes=[node])
        return int(seconds * 1_000_000 + microseconds)

    def info(self, section: str) -> list[dict[str, Any]]:
        """Return a section of what each server that has slots says of itself."""
        targets = self._client.PRIMARIES
        with self.errors:
            found: dict[str, Any] = self._client.info(section, target_nodes=targets)
        return list(found.values()) if all(isinstance(each, dict) for each in found.values()) else [found]

    def mend_log(self, run_id: str, key: str) -> None:
        """Have a server write its append-only file anew, once after it was started; the key is that of a set."""
        with suppress(RedisError):  # a user without the right to do so, or a server that does it already
            if self._client.sadd(key, run_id):
                for node in self._client.get_primaries():
                    if self._client.info("server", target_nodes=node)["run_id"] == run_id:
                        self._client.bgrewriteaof(target_nodes=node)
