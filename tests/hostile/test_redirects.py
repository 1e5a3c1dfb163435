"""Redirects (R): one task a hop, under the rules of its own host."""

from __future__ import annotations

import asyncio
import time

import pytest

from gossamer.fetch.names.dns import Resolver
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.records import UrlState
from tests.hostile.catalogue_network import LOCATIONS
from tests.hostile.crawling import Aftermath


def test_r01_a_redirect_to_itself(after: Aftermath) -> None:
    assert after.row("r01").outcome == "redirect_loop"
    assert after.times_asked("r01") == 1
    assert len(after.rows("r01")) == 1


def test_r02_an_endless_chain_ends_after_five(after: Aftermath) -> None:
    assert [seen.path for seen in after.server.requests("r02")] == ["/", "/1", "/2", "/3", "/4", "/5"]
    assert after.row("r02", "/5").outcome == "too_many_redirects"
    assert [row.hops for row in sorted(after.rows("r02"), key=lambda row: row.hops)] == [0, 1, 2, 3, 4, 5]


def test_r03_a_file(after: Aftermath) -> None:
    assert after.row("r03").outcome == "bad_redirect"
    assert not any(b"root:" in record.http_parts()[1] for record in after.records() if record.type == "response")


def test_r04_cloud_metadata(after: Aftermath) -> None:
    row = after.row("http://169.254.169.254/latest/meta-data/")
    assert (row.state, row.outcome) == (UrlState.DEAD, "blocked_address")
    assert "link-local" in row.error


@pytest.mark.parametrize("name", [name for name in LOCATIONS if name.startswith("r05")])
def test_r05_odd_spellings_of_private_addresses(after: Aftermath, name: str) -> None:
    assert after.row(name).outcome == "redirect"
    assert after.row(LOCATIONS[name]).outcome == "blocked_address"


def test_r05_localhost_with_a_dot() -> None:
    async def main() -> tuple[str, ...]:
        async with Resolver(time.time) as resolver:
            return (await resolver.resolve("localhost.")).addresses

    addresses = asyncio.run(main())
    assert addresses
    assert all(AddressPolicy().refusal(address) for address in addresses)


def test_r06_line_breaks_in_location(after: Aftermath) -> None:
    asked = [seen for seen in after.server.requests("r06") if seen.path != "/"]
    assert [seen.path.lower() for seen in asked] == ["/a%0d%0aset-cookie:%20x=1", "/last"]
    assert all(b"cookie" not in seen.head.lower().replace(b"set-cookie:%20", b"") for seen in asked)


def test_r07_scripts_and_data(after: Aftermath) -> None:
    for name in ("r07a", "r07b"):
        assert after.row(name).outcome == "bad_redirect"
        assert len(after.rows(name)) == 1


def test_r08_missing_empty_and_relative(after: Aftermath) -> None:
    assert after.row("r08a").outcome == after.row("r08b").outcome == "bad_redirect"
    assert after.row("r08c", "/deeper/page").outcome == "ok"


def test_r09_the_robots_of_the_target_are_asked(after: Aftermath) -> None:
    assert after.row("r09other", "/secret/page").outcome == "robots_denied"
    assert after.times_asked("r09other", "/robots.txt") == 1
    assert after.server.requests("r09other") == []


def test_r10_a_location_too_long(after: Aftermath) -> None:
    assert after.row("r10a").outcome == "header_too_large"
    assert after.row("r10b").outcome == "bad_redirect"
    assert len(after.rows("r10a") + after.rows("r10b")) == 2


def test_r11_bytes_in_location(after: Aftermath) -> None:
    assert after.row("r11", "/caf%E9").outcome == "ok"
    assert after.times_asked("r11", "/caf%E9") == 1


def test_r12_a_refresh_loop_is_a_link_seen_before(after: Aftermath) -> None:
    assert after.row("r12").outcome == "ok"
    assert after.times_asked("r12") == 1
