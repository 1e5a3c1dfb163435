"""What binds a crawl: each case, and one that is nearly the same and is another."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gossamer.model.figures import NextRetry, ParkedHost, RunState
from gossamer.telemetry.bound_by import Load, LoadLimits, bound_by

LIMITS = LoadLimits(connections=100, set_connections=100)
# 430 hosts, most of which wait for their delay.
HOSTS = {"waiting": 412, "busy": 18, "ready": 0, "at_limit": 0}
POLITE = Load(at_s=20.0, queued=5000, in_flight=18, hosts=HOSTS, limits=LIMITS)


def judged(before: dict[str, Any] | None = None, **now: Any) -> tuple[str, str]:
    found = bound_by(replace(POLITE, at_s=10.0, **(before or {})), replace(POLITE, **now))
    assert found is not None
    return str(found.resource), found.evidence


def test_a_crawl_whose_hosts_wait_is_bound_by_politeness() -> None:
    assert judged() == ("politeness", "412 of 430 hosts wait for their delay")
    hosts = {"waiting": 400, "parked": 12, "busy": 18}
    resource, evidence = judged(hosts=hosts)
    assert (resource, evidence) == ("politeness", "400 of 430 hosts wait for their delay, 12 are parked")


@pytest.mark.parametrize(
    ("hosts", "evidence"),
    [
        ({"waiting": 1}, "the only host waits for its delay"),
        ({"waiting": 1, "ready": 1}, "1 of 2 hosts waits for its delay"),
        ({"waiting": 2}, "2 of 2 hosts wait for their delay"),
        ({"busy": 1}, "the only host has as many requests in flight as it may (--host-connections 1)"),
    ],
)
def test_one_host_waits_and_two_wait(hosts: dict[str, int], evidence: str) -> None:
    assert judged(hosts=hosts)[1] == evidence


def test_a_crawl_that_waits_for_parked_hosts_alone_names_the_first_of_them() -> None:
    first = ParkedHost("slow.test", 1058.7, "429 Retry-After: 60")
    resource, evidence = judged(hosts={"parked": 9}, next_parked=first, next_parked_in_s=58.7)
    assert resource == "politeness"
    host = "slow.test may be contacted in 58.7 s: 429 Retry-After: 60"
    assert evidence == f"all 9 hosts with queued URLs are parked; {host}"
    _, evidence = judged(hosts={"parked": 1}, next_parked=first, next_parked_in_s=58.7)
    assert evidence == f"the only host with queued URLs is parked; {host}"


def test_a_crawl_that_waits_for_retries_alone_names_the_first_of_them() -> None:
    first = NextRetry("http://a.test/broken?key=secret", 1014.0)
    assert judged(queued=1, in_flight=0, hosts={"waiting": 1}, retried=1, next_retry=first, next_retry_in_s=14.0) == (
        "retries",
        "1 URL waits 14.0 s for its retry: http://a.test/broken?…",
    )
    _, evidence = judged(queued=4, in_flight=1, retried=3, next_retry=first, next_retry_in_s=14.0)
    assert evidence == "3 URLs wait for their retries, the first 14.0 s: http://a.test/broken?…"
    assert judged(queued=5, in_flight=1, retried=3, next_retry=first, next_retry_in_s=14.0)[0] == "politeness"


def test_a_crawl_whose_hosts_are_busy_is_bound_by_connections_to_each_host() -> None:
    hosts = {"waiting": 3, "busy": 20}
    resource, evidence = judged(hosts=hosts)
    assert resource == "connections"
    assert evidence == "20 of 23 hosts have as many requests in flight as they may (--host-connections 1)"


def test_hosts_that_wait_for_their_address_are_bound_by_connections_to_it() -> None:
    hosts = {"waiting": 3, "busy": 20, "at_limit": 900}
    resource, evidence = judged(hosts=hosts)
    assert resource == "connections"
    assert evidence == "900 of 923 hosts wait for others at their address or domain (--address-connections 20)"
    slow = replace(LIMITS, has_gate_delay=True)
    resource, evidence = judged(hosts=hosts, limits=slow)
    assert resource == "politeness"
    assert "--address-politeness-ms" in evidence


@pytest.mark.parametrize(("in_flight", "resource"), [(100, "connections"), (95, "connections"), (94, "politeness")])
def test_a_crawl_with_no_free_connection_is_bound_by_them(in_flight: int, resource: str) -> None:
    assert judged(in_flight=in_flight)[0] == resource


def test_the_limit_that_leaves_few_connections_is_named() -> None:
    assert judged(in_flight=100)[1] == "100 of 100 connections are in use (--connections)"
    assert "--memory" in judged(in_flight=100, limits=replace(LIMITS, set_connections=256))[1]


@pytest.mark.parametrize(("lookups", "resource"), [(60, "dns"), (40, "connections"), (0, "connections")])
def test_connections_that_look_names_up_are_bound_by_the_dns(lookups: int, resource: str) -> None:
    assert judged(in_flight=100, lookups=lookups)[0] == resource


def test_names_that_wait_for_their_turn_are_bound_by_the_dns() -> None:
    limits = replace(LIMITS, dns_rate=10.0)
    resource, evidence = judged(lookups=40, limits=limits)
    assert (resource, evidence) == ("dns", "40 names wait to be looked up; --dns-rate allows 10 per second")
    assert judged(lookups=9, limits=limits)[0] == "politeness"
    assert judged(lookups=40)[0] == "politeness", "without a limit they wait for nothing of ours"


@pytest.mark.parametrize(
    ("shares", "resource"),
    [({"hub": 0.97}, "cpu"), ({"hub": 0.5, "worker": 0.92}, "cpu"), ({"hub": 0.89, "worker": 0.6}, "politeness")],
)
def test_a_busy_event_loop_binds_a_crawl(shares: dict[str, float], resource: str) -> None:
    assert judged(core_share=shares)[0] == resource


def test_the_busy_process_is_named() -> None:
    assert judged(core_share={"hub": 0.97})[1] == "the process that schedules uses 97.0 % of a core"
    assert judged(core_share={"hub": 0.9, "worker": 0.92})[1] == "a worker uses 92.0 % of a core"


@pytest.mark.parametrize(
    ("commit_s", "flush_s", "resource"), [(6.0, 5.0, "disk"), (6.0, 1.0, "ledger"), (4.0, 3.5, "politeness")]
)
def test_commits_that_take_most_of_the_time_bind_a_crawl(commit_s: float, flush_s: float, resource: str) -> None:
    before = {"commit_s": 100.0, "flush_s": 50.0}
    assert judged(before, commit_s=100.0 + commit_s, flush_s=50.0 + flush_s)[0] == resource


def test_a_crawl_with_nothing_left_is_bound_by_nothing() -> None:
    assert judged(queued=0, in_flight=0) == ("nothing_left", "no URL is queued")
    assert judged(queued=3, in_flight=3) == ("nothing_left", "no URL is queued besides 3 in flight")
    assert judged(queued=4, in_flight=3)[0] == "politeness"


def test_a_crawl_whose_last_pages_are_in_flight_has_nothing_left() -> None:
    assert judged(pages_left=0) == ("nothing_left", "--max-pages is reached with 18 requests in flight")
    assert judged(pages_left=1)[0] == "politeness"


def test_a_paused_crawl_is_bound_by_its_pause() -> None:
    paused: dict[str, Any] = {"state": RunState.PAUSED, "core_share": {"hub": 1.0}}
    assert judged(**paused, paused_by="operator") == ("paused", "the operator has paused it")
    assert judged(**paused, paused_by="store") == ("paused", "it is paused: store")


def test_a_crawl_that_has_just_begun_is_bound_by_nothing_known() -> None:
    begun = replace(POLITE, hosts={"ready": 2})
    assert bound_by(begun, begun) is None
