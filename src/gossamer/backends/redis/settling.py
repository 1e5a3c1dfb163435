"""Makes the servers of a Redis Cluster agree on which commits were made.

A commit is journaled, decided (control keys), and applied (each range that it changes). Two things can be in the way:
a node ended between two steps, or a server went back in time (its append-only file lacks the last second, or a replica
was promoted). Both look alike: a range has fewer commits of a node than the control keys say, or more. So there is
one remedy. What a range lacks is applied again from the journal, and what the control keys lack is decided again: a
commit that any range has was decided once. A commit that is in the journal only was never made.

Parts of commits of several nodes are sent again in the order in which they were made (`CommitPlan.seen_us`), so a
shard's rows end as its last owner wrote them. Each step can be repeated, and by several nodes at once.

What the journal does not have any more is lost. That is an error which names the keys: never a silent loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from msgspec import Struct

from gossamer.backends.redis import arguments, ranges
from gossamer.backends.redis.cluster_calls import ClusterCalls
from gossamer.backends.redis.cluster_plan import CommitPlan, decode_plan
from gossamer.backends.redis.ranges import RANGES, KeyRanges
from gossamer.core.cluster.record_additions import Additions
from gossamer.model.errors import GossamerError

Applied = dict[int, dict[str, int]]  # range -> node -> its last commit there


class Decided(Struct):
    """What the control keys say of a node."""

    commit: int = 0
    heads: dict[int, int] = {}  # range -> the last commit that changed it


class Settling:
    """See the module."""

    def __init__(self, calls: ClusterCalls, keys: KeyRanges, extend: Callable[[Additions], None]) -> None:
        self._calls = calls
        self._keys = keys
        self._extend = extend  # the crawl's record

    def settle(self) -> bool:
        """Complete all commits; return whether there was anything to do."""
        # In this order a commit that is made meanwhile is not taken for one that the control keys have lost.
        applied = self._read_applied()
        decided = self._read_decided()
        nodes = {node for some in applied.values() for node in some}
        lost = {
            node: top
            for node in nodes
            if (top := max(some.get(node, 0) for some in applied.values())) > decided.setdefault(node, Decided()).commit
        }
        behind = {
            node
            for node, its in decided.items()
            if any(head > applied[number].get(node, 0) for number, head in its.heads.items())
        }
        if not lost and not behind:
            return False
        journal = _Journal(self._calls, self._keys)
        self._decide_again(lost, decided, journal)
        self._apply_again(applied, decided, journal)
        return True

    def _read_applied(self) -> Applied:
        found = self._calls.pipelined([("HGETALL", self._keys.prefix(number) + "applied") for number in RANGES])
        return {
            number: {node.decode(): int(commit) for node, commit in some.items()}
            for number, some in zip(RANGES, found, strict=True)
        }

    def _read_decided(self) -> dict[str, Decided]:
        found: list[Any] = self._calls.run("decided", self._keys.control, "")
        return {node.decode(): Decided(int(commit), arguments.pairs(heads)) for node, commit, heads in found}

    def _decide_again(self, lost: dict[str, int], decided: dict[str, Decided], journal: _Journal) -> None:
        plans: list[CommitPlan] = []
        for node, top in lost.items():
            for number in range(decided[node].commit + 1, top + 1):
                plan = journal.entry(node, number) or self._fail_decision(node, decided[node].commit, top)
                plans.append(plan)
                decided[node].heads |= dict.fromkeys(plan.touched, number)
        for plan in sorted(plans, key=_made_at):
            if plan.added:
                self._extend(plan.added)
            self._calls.run("decide", self._keys.control, plan.node, *plan.decision, "again")

    def _apply_again(self, applied: Applied, decided: dict[str, Decided], journal: _Journal) -> None:
        missing: list[tuple[CommitPlan, int]] = []
        for node, its in decided.items():
            for number, head in its.heads.items():
                has = applied[number].get(node, 0)
                commit = head
                while commit > has:
                    plan = journal.entry(node, commit)
                    if plan is None or number not in plan.parts or plan.parts[number].predecessor < has:
                        self._fail_part(node, number, has, head)
                    missing.append((plan, number))
                    commit = plan.parts[number].predecessor
        missing.sort(key=lambda each: _made_at(each[0]))
        self._calls.run_many([apply_call(self._keys, plan, number) for plan, number in missing])

    def _fail_decision(self, node: str, has: int, top: int) -> NoReturn:
        raise GossamerError(
            f"ledger {self._calls.name}: the server of the control keys has lost commits {has + 1} to {top} of node "
            f"{node}, and the journal does not have them any more; restore its data, or give up their totals and "
            f"links: HSET {self._keys.control}node:{node} commit {top}"
        )

    def _fail_part(self, node: str, number: int, has: int, head: int) -> NoReturn:
        first = number << ranges.SHARD_BITS
        last = first + (1 << ranges.SHARD_BITS) - 1
        raise GossamerError(
            f"ledger {self._calls.name}: the server of shards {first} to {last} has lost commits {has + 1} to {head} "
            f"of node {node}, and the journal does not have them any more; restore its data, or give up what they "
            f"changed there: HDEL {self._keys.control}heads:{node} {number}"
        )


class _Journal:
    """Entries of the journal, each read from all servers when it is needed."""

    def __init__(self, calls: ClusterCalls, keys: KeyRanges) -> None:
        self._calls = calls
        self._keys = keys
        self._entries: dict[tuple[str, int], CommitPlan | None] = {}

    def entry(self, node: str, number: int) -> CommitPlan | None:
        """Return a commit with all parts that are known, or None."""
        if (node, number) not in self._entries:
            places = [("HGET", f"{self._keys.prefix(each)}journal:{node}", number) for each in RANGES]
            found = [decode_plan(entry) for entry in self._calls.pipelined(places) if entry is not None]
            for plan in found[1:]:
                found[0].parts.update(plan.parts)
            self._entries[node, number] = found[0] if found else None
        return self._entries[node, number]


def apply_call(keys: KeyRanges, plan: CommitPlan, number: int) -> tuple[str, str, list[Any]]:
    """Return the call that applies a part of a commit."""
    part = plan.parts[number]
    return "apply", keys.prefix(number), [plan.node, plan.number, part.predecessor, *part.changes]


def _made_at(plan: CommitPlan) -> tuple[int, str, int]:
    return plan.seen_us, plan.node, plan.number
