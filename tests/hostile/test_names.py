"""Names that lead elsewhere the second time, to too many places, or nowhere (D)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from gossamer.fetch.names.dns import MAX_ADDRESSES, Resolver
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.records import Outcome
from tests.e2e.program import run, summary_of
from tests.fetch.servers import answer, says, stage
from tests.hostile.crawling import Aftermath, whole_server


def test_d01_a_name_is_resolved_once_and_that_address_is_asked(after: Aftermath) -> None:
    assert {row.outcome for row in after.rows("d01")} >= {"ok"}
    assert after.server.asked["d01.test"] == 1
    assert {event.get("address", "127.0.0.1") for event in after.told("d01", "fetch_ok")} == {"127.0.0.1"}


def test_d01_a_name_that_leads_inside_is_blocked(after: Aftermath) -> None:
    assert after.row("d01inside").outcome == "blocked_address"
    assert after.server.requests("d01inside") == []


def test_d01_the_peer_is_checked_again_at_the_connection() -> None:
    class Turncoat(AddressPolicy):
        """Allows an address when asked first, as a resolver's answer was; not at the connection."""

        def __init__(self) -> None:
            super().__init__()
            self.asked = 0

        def refusal(self, address: str) -> str | None:
            self.asked += 1
            return None if self.asked == 1 else super().refusal(address)

    async def main() -> None:
        async def never(_visit: object) -> None:
            raise AssertionError("connected")

        async with stage(never, policy=Turncoat()) as scene:
            exchange = await scene.get()
            assert exchange.outcome is Outcome.BLOCKED_ADDRESS
            assert exchange.requests_sent == 0
            assert scene.connections == 0

    asyncio.run(main())


def test_d02_many_addresses_and_a_deadline(after: Aftermath) -> None:
    assert {row.outcome for row in after.rows("d02")} == {"ok"}
    assert len(after.host("d02").addresses) <= MAX_ADDRESSES

    async def main() -> None:
        async with Resolver(time.time, server="127.0.0.1:9", deadline_s=0.2, tries=1) as resolver:
            started = time.monotonic()
            assert (await resolver.resolve("slow.test")).outcome is Outcome.DNS_FAILED
            assert time.monotonic() - started < 2

    asyncio.run(main())


def test_d03_a_dead_ipv6_address_costs_nothing(after: Aftermath) -> None:
    assert {row.outcome for row in after.rows("d03")} == {"ok"}
    assert all(event["total_ms"] < 1000 for event in after.told("d03", "fetch_ok"))


def test_d03_the_next_address_is_tried_soon() -> None:
    async def main() -> None:
        policy = AddressPolicy(["127.0.0.0/8", "100::/64"])
        async with stage(says(answer(b"<p>here")), policy=policy) as scene:
            started = time.monotonic()
            exchange = await scene.get(addresses=("100::1", "127.0.0.1"))
            assert exchange.outcome is Outcome.OK
            assert time.monotonic() - started < 1

    asyncio.run(main())


def test_a_seed_that_is_an_address_opens_only_itself(tmp_path: Path) -> None:
    with whole_server() as server:
        done = run(
            "crawl", f"http://127.0.0.1:{server.port}/", f"http://d01inside.test:{server.port}/", "--dns",
            server.dns_address, "--out", str(tmp_path / "out"), "--json", "--retry-wait", "0.02", "--max-wait", "1",
        )  # fmt: skip
        assert summary_of(done.stdout)["fetches"] >= 1
        assert server.requests("d01inside") == []
