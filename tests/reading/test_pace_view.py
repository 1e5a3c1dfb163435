"""Which rule set the pace of a host is named, with its value."""

from __future__ import annotations

import pytest
from msgspec import Struct, field

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.model.figures import Totals
from gossamer.model.records import HostRecord, Outcome, RobotsRecord
from gossamer.reading.pace_view import pace_view
from gossamer.settings.model import PaceSetting, Settings

NOW = 1000.0
SLOW_TEXT = b"User-agent: *\nCrawl-delay: 5\n"


class Moment(Struct):
    """A crawl at one moment."""

    ledger: MemoryLedger
    settings: Settings
    totals: Totals = field(default_factory=Totals)
    now: float = NOW


def lines_of(settings: Settings, host: HostRecord, *robots: tuple[str, bytes, Outcome]) -> list[str]:
    ledger = MemoryLedger()
    ledger.put_host(host)
    for origin, body, outcome in robots:
        ledger.put_robots(RobotsRecord(origin, 200, outcome.value, body, 0.0, 9999.0))
    return pace_view(Moment(ledger, settings), host.name).lines()


def test_without_anything_else_it_is_the_setting() -> None:
    (line,) = lines_of(Settings(politeness_ms=1500), HostRecord("a.test", "a.test"))
    assert line == "one request every 1.5 s, 1 at a time: --politeness-ms 1500"


def test_a_crawl_delay_that_is_longer_counts_of_all_origins() -> None:
    robots = [("http://a.test", b"", Outcome.OK), ("https://a.test", SLOW_TEXT, Outcome.OK)]
    (line,) = lines_of(Settings(), HostRecord("a.test", "a.test"), *robots)
    assert line == "one request every 5 s, 1 at a time: Crawl-delay 5 s of its robots.txt"
    (line,) = lines_of(Settings(), HostRecord("a.test", "a.test"), ("http://a.test", SLOW_TEXT, Outcome.TIMEOUT))
    assert line.endswith(": --politeness-ms 1000")


def test_a_crawl_delay_that_is_shorter_is_told_but_does_not_count() -> None:
    robots = ("http://a.test", SLOW_TEXT, Outcome.OK)
    settings = Settings(pace=(PaceSetting(host="*.test", delay=10.0),))
    (line,) = lines_of(settings, HostRecord("a.test", "a.test"), robots)
    assert line == "one request every 10 s, 1 at a time: the pace of 10 s set for *.test; its Crawl-delay is 5 s"


def test_a_rule_for_connections_alone_leaves_the_delay_to_the_setting() -> None:
    settings = Settings(pace=(PaceSetting(host="a.test", connections=3),))
    (line,) = lines_of(settings, HostRecord("a.test", "a.test"))
    assert line == "one request every 1 s, 3 at a time: --politeness-ms 1000"


@pytest.mark.parametrize(
    ("host", "text"),
    [
        (HostRecord("a.test", "a.test", backoff=2), "every 4 s, 1 at a time: --politeness-ms 1000, doubled 2 times "
         "after failures or refusals (back-off)"),
        (HostRecord("a.test", "a.test", slow_steps=1), "every 2 s, 1 at a time: --politeness-ms 1000, doubled 1 time "
         "because its answers became slower"),
    ],
)  # fmt: skip
def test_what_doubled_the_delay_is_named(host: HostRecord, text: str) -> None:
    (line,) = lines_of(Settings(), host)
    assert line == f"one request {text}"


def test_a_host_that_is_parked_names_the_reason_and_how_long() -> None:
    host = HostRecord("a.test", "a.test", parked_until=NOW + 58.5, park_reason="429 Retry-After")
    assert lines_of(Settings(), host)[1] == "left alone for 58.5 s more: 429 Retry-After"
    over = HostRecord("a.test", "a.test", parked_until=NOW - 1, park_reason="429 Retry-After")
    assert len(lines_of(Settings(), over)) == 1


def test_delays_that_hosts_share_are_named() -> None:
    settings = Settings(domain_politeness_ms=250)
    _, line = lines_of(settings, HostRecord("a.test", "a.test"))
    assert line == "0.25 s between requests to its domain (--domain-politeness-ms)"


def test_a_short_delay_is_doubled_from_half_a_second() -> None:
    (line,) = lines_of(Settings(politeness_ms=50), HostRecord("a.test", "a.test", backoff=2))
    text = "--politeness-ms 50, doubled 2 times from 0.5 s after failures or refusals (back-off)"
    assert line == f"one request every 2 s, 1 at a time: {text}"
