"""Whether a row of a shared ledger can be what a node has stored there: anybody who can write there can write anything.

A node checks the rows of a shard before it begins to crawl it. One that cannot be read, or that has a number that
nothing can count to, would end it later at some other place. About 2 µs per row, in the thread that copies them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import msgspec

from gossamer.core.ledger.rows import decode_domain, decode_host, decode_robots, decode_shard, decode_url
from gossamer.core.ledger.tables import RECORD_TABLES
from gossamer.core.url.forms import canonical
from gossamer.core.url.identity import SHARD_PREFIX_BYTES, shard_of
from gossamer.model.records import HostRecord, UrlRecord

MAX_COUNT = 1 << 53
MAX_STEPS = 100  # in which a delay is doubled
MAX_TIME_S = 1e11  # since 1970: more than a calendar has
_KEY_BYTES: Mapping[str, int] = {
    "urls": 16,
    "queue": 28,
    "hosts": 8,
    "domains": 8,
    "robots": 16,
    "swapped_out": 18,
    "changes": 10,
    "shards": 2,
}
_CHANGE_BYTES = 17


def row_problem(table: str, key: bytes, value: bytes | None, shards: frozenset[int]) -> str:
    """Return what is impossible in a row that is said to belong to one of some shards; empty if nothing is."""
    wanted = _KEY_BYTES.get(table)
    if len(key) < SHARD_PREFIX_BYTES or (wanted is not None and len(key) != wanted):
        return "its key has an impossible length"
    if shard_of(key) not in shards:
        return "its key belongs to another shard"
    check = _CHECKS.get(table)
    if check is None or value is None:
        return ""
    try:
        return check(value)
    except (msgspec.MsgspecError, ValueError, LookupError, RecursionError) as error:
        return f"it cannot be decoded ({error})"


def _url_problem(value: bytes) -> str:
    record: UrlRecord = decode_url(value)
    if canonical(record.url) is None:
        return "it has an impossible URL"
    counts = (record.depth, record.hops, record.attempt, record.seq)
    is_possible = all(0 <= count < MAX_COUNT for count in counts) and -(1 << 31) <= record.priority < 1 << 31
    return "" if is_possible and _are_times(record.not_before, record.found_at, record.fetched_at) else _NUMBER


def _host_problem(value: bytes) -> str:
    host: HostRecord = decode_host(value)
    counts = (host.queued, host.pages, host.fetches, host.errors, host.failures_in_a_row, host.bytes, host.requisites)
    steps = (host.backoff, host.slow_steps)
    times = (host.next_at, host.parked_until, host.delay_s, host.latency_s, host.first_seen_at, host.last_fetch_at)
    more = (host.swapped_out_until, host.best_latency_s, host.slowed_at, host.rank)
    is_possible = all(0 <= count < MAX_COUNT for count in counts) and all(0 <= step <= MAX_STEPS for step in steps)
    if canonical(f"http://{host.name}/") is None:
        return "it has an impossible name"
    is_known_until = host.addresses_until >= 0  # a name that is an address is known for ever; no NaN
    return "" if is_possible and is_known_until and _are_times(*times, *more) else _NUMBER


def _robots_problem(value: bytes) -> str:
    robots = decode_robots(value)
    if canonical(robots.origin + "/") is None:
        return "it has an impossible origin"
    return "" if _are_times(robots.fetched_at, robots.expires_at) else _NUMBER


def _are_times(*seconds: float) -> bool:
    return all(isfinite(each) and abs(each) < MAX_TIME_S for each in seconds)


def _decoded(decode: Callable[[bytes], Any]) -> Callable[[bytes], str]:
    def problem(value: bytes) -> str:
        decode(value)
        return ""

    return problem


_NUMBER = "it has an impossible number"
_CHECKS: Mapping[str, Callable[[bytes], str]] = {
    "urls": _url_problem,
    "hosts": _host_problem,
    "domains": _decoded(decode_domain),
    "robots": _robots_problem,
    "shards": _decoded(decode_shard),
    "swapped_out": _decoded(bytes.decode),
    "changes": lambda value: "" if len(value) == _CHANGE_BYTES else "it has an impossible length",
    **{table.name: _decoded(table.decode) for table in RECORD_TABLES},
}
