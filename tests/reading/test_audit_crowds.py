"""What the audit says about requests at once, to one domain and to one network."""

from __future__ import annotations

from typing import cast

from gossamer.model.events import Promises
from gossamer.reading.requests.audit import Auditor
from gossamer.reading.requests.requests_made import Fact, RunStarted, SentRequest
from gossamer.reading.requests.robots_captures import RobotsCaptures

BEGUN = 1000.0


def _request(host: str, at: float, address: str = "10.0.0.1", seconds: float = 10.0) -> SentRequest:
    return SentRequest(
        url=f"http://{host}/robots.txt",
        host=host,
        origin=f"http://{host}",
        is_robots=True,
        sent_at=BEGUN + at,
        issued_at=BEGUN + at,
        ended_at=BEGUN + at + seconds,
        outcome="client_error",
        requests=1,
        retry_after_s=-1.0,
        address=address,
        run=(0, BEGUN),
    )


def _breaches(promises: Promises, requests: list[SentRequest]) -> dict[str, int]:
    facts: list[Fact] = [RunStarted(BEGUN, promises), *sorted(requests, key=lambda each: each.sent_at)]
    no_texts = cast(RobotsCaptures, None)
    return Auditor(promises, no_texts).check(facts).breaches


def _crowd(count: int) -> list[SentRequest]:
    return [_request(f"h{n}.crowd.test", 5.0 + n / 100, f"10.0.1.{n}") for n in range(count)]


def test_a_domain_with_more_than_its_share_is_found_if_others_had_requests_in_flight() -> None:
    promises = Promises(shared_connections=3)
    other = _request("other.test", 1.0, seconds=20.0)
    assert _breaches(promises, [other, *_crowd(3)]) == {}
    assert _breaches(promises, [other, *_crowd(5)]) == {"domain_crowd": 2}
    assert _breaches(promises, _crowd(5)) == {}, "it is alone"
    late = _request("other.test", 4.9)
    assert _breaches(promises, [late, *_crowd(5)]) == {}, "what was on its way when another domain came"


def test_addresses_of_one_ipv6_network_count_together() -> None:
    promises = Promises(address_connections=2)
    requests = [_request(f"h{n}.test", n / 100, f"2001:db8::{n}") for n in range(3)]
    assert _breaches(promises, requests) == {"address_crowd": 1}
    apart = [_request(f"h{n}.test", n / 100, f"2001:db8:0:{n}::1") for n in range(3)]
    assert _breaches(promises, apart) == {}
