"""A farm of a thousand domains that link to one target: a real crawl finds all of it, and its ranks do not profit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gossamer.core.ledger.tables import RANKS
from gossamer.reading.folder import CrawlReader
from gossamer.reading.rank_file import RANK_FILE_NAME
from tests.e2e.program import run, start, summary_of
from tests.e2e.test_ranks import events
from tests.e2e.test_steering import wait_for
from tests.hostile.serving import Call, Catalogue, HostileServer

SEEDS, HONEST, FARM = 20, 30, 1000
TARGET = "farm-target.test"


def links_of(name: str) -> list[str]:
    """Return the hosts (without `.test`) that the page of a host links to."""
    kind, number = name.rstrip("0123456789"), int(name.lstrip("abcdefghijklmnopqrstuvwxyz-") or 0)
    if kind == "seed":
        honest = [f"honest{(3 * number + step) % HONEST}" for step in (0, 1, 2, 7, 11, 19)]
        comment = ["farm0"] if number == 0 else []  # that somebody left, by which the crawl finds the farm
        return [f"seed{(number + 1) % SEEDS}", *honest, *comment]
    if kind == "honest":
        return [f"honest{(number + 1) % HONEST}", f"honest{(number + 5) % HONEST}"]
    if name == "farm0":
        return ["farm-target", *(f"farm{each}" for each in range(1, FARM))]
    return ["farm0", *(f"farm{each}" for each in range(1, 10))] if name == "farm-target" else ["farm-target"]


@contextmanager
def served(page_s: float = 0.0) -> Iterator[HostileServer]:
    """Serve honest sites and the farm; a page takes a while."""
    catalogue = Catalogue()
    names = [
        f"{kind}{each}"
        for kind, count in (("seed", SEEDS), ("honest", HONEST), ("farm", FARM))
        for each in range(count)
    ]

    @catalogue.serves(*names, "farm-target")
    async def page(call: Call) -> None:
        name = call.host.removesuffix(".test")
        await asyncio.sleep(page_s)
        links = "".join(f'<p><a href="{call.url(host=f"{each}.test")}">See {each}</a></p>' for each in links_of(name))
        await call.html(f"<title>{name}</title><h1>The page of {name}</h1>{links}")

    with HostileServer(catalogue) as server:
        yield server


def options(server: HostileServer, out: Path) -> list[str]:
    seeds = [f"http://seed{each}.test:{server.port}/" for each in range(SEEDS)]
    network = ("--dns", server.dns_address, "--allow-network", "127.0.0.0/8", "--max-hosts-per-address", "0")
    pace = ("--politeness-ms", "0", "--address-connections", "100")
    return [*seeds, "--out", str(out), *network, *pace, "--scope", "any", "--order", "tiers", "--json"]


def stored_ranks(out: Path) -> dict[str, float]:
    with CrawlReader(out) as crawl:
        return {rank.domain: rank.computed for rank in crawl.ledger.records(RANKS)}


def check(ranks: dict[str, float]) -> None:
    """Check that honest domains are above the farm and its target, and that these are not important."""
    farm = {domain: rank for domain, rank in ranks.items() if domain.startswith("farm")}
    honest = {domain: rank for domain, rank in ranks.items() if not domain.startswith("farm")}
    assert len(honest) == SEEDS + HONEST
    assert (len(farm), TARGET in farm) == (FARM + 1, True)
    assert max(farm.values()) <= min(honest.values())
    assert farm[TARGET] < 0.02  # by the number of domains below it, it would be above nine tenths
    assert max(honest.values()) == 1.0


def test_a_farm_lifts_its_target_only_if_everybody_is_trusted(tmp_path: Path) -> None:
    out = tmp_path / "crawl"
    with served() as server:
        done = run("crawl", *options(server, out))
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["unique_domains"] == SEEDS + HONEST + FARM + 1
    everybody = json.loads(run("rank", str(out), "--trusted", "all", "--json", "-o", str(tmp_path / "x")).stdout)
    assert everybody["domains"][0]["domain"] == TARGET  # what plain PageRank does
    from_seeds = json.loads(run("rank", str(out), "--top", "0", "--json").stdout)
    places = [domain["domain"] for domain in from_seeds["domains"]]
    assert places.index(TARGET) >= SEEDS + HONEST
    assert run("resume", str(out)).returncode == 0
    check(stored_ranks(out))


@pytest.mark.parametrize("is_file_lost", [False, True])
def test_ranks_that_a_crawl_computes_by_itself_survive_kill_9_and_resume(tmp_path: Path, is_file_lost: bool) -> None:
    out = tmp_path / "crawl"
    with served(page_s=0.3) as server:
        process = start("crawl", *options(server, out), "--rank-every", "300", "--connections", "40")
        try:
            wait_for(lambda: bool(events(out, "ranked")))
            if is_file_lost:  # then the ledger alone has them
                wait_for(lambda: len(stored_ranks(out)) > FARM)
        finally:
            process.kill()
            process.wait()
        if is_file_lost:
            (out / RANK_FILE_NAME).unlink()
        done = run("resume", str(out), "--rank-every", "0", "--connections", "100", "--json")
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["unique_domains"] == SEEDS + HONEST + FARM + 1
    assert events(out, "ranked")[0]["fetched"] < FARM
    check(stored_ranks(out))
    assert run("verify", str(out)).returncode == 0
