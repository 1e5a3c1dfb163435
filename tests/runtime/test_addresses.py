from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from gossamer.fetch.access import UNRESOLVED, AccessRules, AccessTable
from gossamer.fetch.names.dns import Resolver
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.route import Proxy
from gossamer.model.records import Outcome
from gossamer.runtime.workers.addresses import AddressAnswer, AddressFinder


def found(tmp_path: Path, host: str, policy: AddressPolicy, access: AccessTable | None = None) -> AddressAnswer:
    """Return the answer for a host of a hosts file."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.9 inside.test\n127.0.0.9 mixed.test\n192.88.98.1 mixed.test\n", "utf-8")

    async def main() -> AddressAnswer:
        answer: asyncio.Future[AddressAnswer] = asyncio.get_running_loop().create_future()
        async with Resolver(lambda: 0.0, hosts_file=hosts) as resolver:
            finder = AddressFinder(resolver, policy, access, lambda: 0.0)
            finder.find(host, lambda _host, one: answer.set_result(one))
            return await answer

    return asyncio.run(main())


def test_addresses_that_the_policy_forbids_are_left_out(tmp_path: Path) -> None:
    answer = found(tmp_path, "mixed.test", AddressPolicy())
    assert (answer.addresses, answer.expires_at) == (("192.88.98.1",), 1e18), "a hosts file does not expire"


def test_without_a_usable_address_the_reason_names_each(tmp_path: Path) -> None:
    answer = found(tmp_path, "inside.test", AddressPolicy())
    assert (answer.addresses, answer.outcome) == ((), Outcome.BLOCKED_ADDRESS)
    assert "127.0.0.9 is in 127.0.0.0/8" in answer.error


def test_an_address_that_a_seed_opened_is_usable(tmp_path: Path) -> None:
    policy = AddressPolicy()
    policy.open_address("127.0.0.9")
    assert policy.opened == ("127.0.0.9",)
    assert found(tmp_path, "inside.test", policy).addresses == ("127.0.0.9",)


def test_behind_a_proxy_private_addresses_are_refused_and_other_names_are_left_to_it(tmp_path: Path) -> None:
    access = AccessTable(AccessRules(proxy=Proxy("socks5h", "127.0.0.1:1")))
    for host in ("inside.test", "10.0.0.1", "[::1]", "localhost"):
        assert found(tmp_path, host, AddressPolicy(), access).outcome is Outcome.BLOCKED_ADDRESS, host
    answer = found(tmp_path, "unknown.test", AddressPolicy(), access)
    assert (answer.addresses, answer.outcome) == ((UNRESOLVED,), Outcome.OK)


def test_a_name_that_the_server_does_not_answer_for_has_an_outcome() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{silent.getsockname()[1]}"

        async def main() -> AddressAnswer:
            answer: asyncio.Future[AddressAnswer] = asyncio.get_running_loop().create_future()
            async with Resolver(lambda: 0.0, server=server, deadline_s=0.1, tries=1) as resolver:
                finder = AddressFinder(resolver, AddressPolicy())
                finder.find("a.test", lambda _host, one: answer.set_result(one))
                return await answer

        assert asyncio.run(main()).outcome is Outcome.DNS_FAILED
