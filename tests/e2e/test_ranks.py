"""Ranks from `gossamer rank` reach the crawl: the next run of a folder, and the nodes of a ledger."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.core.frontier.limits import scaled_budget
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of
from gossamer.model.records import UrlState
from gossamer.reading.folder import CrawlReader
from gossamer.reading.rank_file import RANK_FILE_NAME
from gossamer.sim.web.web import preset
from tests.e2e.program import crawl, crawl_options, run, start
from tests.e2e.test_cluster import Nodes
from tests.e2e.test_steering import wait_for
from tests.servers.redis import RedisServer
from tests.servers.web import RunningWeb

PAGES = 300


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", seed=7, pages=PAGES, slow=0.0)) as web:
        yield web


def stored_standings(out: Path) -> dict[str, float]:
    _, *lines = gzip.decompress((out / RANK_FILE_NAME).read_bytes()).splitlines()
    return {line["domain"]: round(line["standing"], 2) for line in map(json.loads, lines)}


def host_ranks(out: Path) -> dict[str, tuple[str, float]]:
    with CrawlReader(out) as opened:
        return {host.name: (host.domain, host.rank) for host in opened.ledger.hosts()}


def test_the_next_run_has_the_stored_ranks_and_so_has_the_one_after_it(web: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "crawl"
    crawl(web, out, 5, "--max-pages", "80", "--order", "tiers")
    assert {rank for _, rank in host_ranks(out).values()} == {0.5}
    assert run("rank", str(out)).returncode == 0
    standings = stored_standings(out)
    assert len(set(standings.values())) > 1
    done = run("resume", str(out), "--max-pages", "120", "--json")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    ranks = host_ranks(out)
    ranked = {name: rank for name, (domain, rank) in ranks.items() if domain in standings}
    assert len(ranked) > 5
    assert ranked == {name: standings[ranks[name][0]] for name in ranked}
    (out / RANK_FILE_NAME).unlink()
    assert run("resume", str(out), "--max-pages", "130").returncode == 0
    assert {name: rank for name, (_, rank) in host_ranks(out).items() if name in ranked} == ranked


def events(out: Path, name: str) -> list[dict[str, Any]]:
    lines = [line for path in sorted((out / "events").glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    return [json.loads(line) for line in lines if f'"event":"{name}"' in line]


def test_a_crawl_ranks_its_domains_by_itself(web: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "crawl"
    process = start("crawl", *web.seeds(), *crawl_options(web, out, 150), "--order", "tiers", "--rank-every", "60")
    try:
        wait_for(lambda: len(events(out, "ranked")) >= 1)
        assert run("pace", str(out), "*", "0.01").returncode == 0
        assert "rank" not in process.communicate(timeout=120)[1]
    finally:
        process.kill()
    first, *_ = events(out, "ranked")
    assert first["fetched"] >= 60
    assert (first["links"] > first["unique_domains"] > 5, first["total_ms"] > 0) == (True, True)
    standings = stored_standings(out)
    ranks = {name: rank for name, (domain, rank) in host_ranks(out).items() if domain in standings}
    assert len(set(ranks.values())) > 1
    with CrawlReader(out) as opened:
        assert opened.state.ranked_at
    assert run("verify", str(out)).returncode == 0
    assert run("audit", str(out)).returncode == 0


def test_a_running_crawl_gets_the_ranks_that_the_operator_computes(web: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "crawl"
    process = start("crawl", *web.seeds(), *crawl_options(web, out, 200))
    try:
        wait_for(lambda: len(web.log()) > 80)
        assert run("rank", str(out)).returncode == 0
        wait_for(lambda: bool(events(out, "ranked")))
        assert run("pace", str(out), "*", "0.01").returncode == 0
        assert "by the operator" in events(out, "ranked")[0]["reason"]
        assert "rank" not in process.communicate(timeout=120)[1]
    finally:
        process.kill()
    assert len({rank for _, rank in host_ranks(out).values()}) > 1


def test_what_is_killed_while_ranks_are_computed_goes_on_as_if_nothing_had_been(
    web: RunningWeb, tmp_path: Path
) -> None:
    out = tmp_path / "crawl"
    process = start("crawl", *web.seeds(), *crawl_options(web, out, 60), "--rank-every", "10")

    def jobs() -> list[int]:
        named = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(out).encode() in read(path)]
        return [int(path.parent.name) for path in named if b"--follow-stdin" in read(path)]

    try:
        wait_for(lambda: bool(jobs()))
        process.kill()
        process.wait()
        wait_for(lambda: not jobs())
    finally:
        process.kill()
    done = run("resume", str(out), "--json")
    assert done.returncode == 0, done.stderr
    assert run("verify", str(out)).returncode == 0
    assert run("audit", str(out)).returncode == 0
    assert events(out, "ranked")
    assert not list(out.glob(".*.tmp"))


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended
        return b""


def test_budgets_of_domains_follow_their_ranks_and_why_says_so(web: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "crawl"
    first = crawl(web, out, 5, "--max-pages-per-domain", "8", "--domain-budget-by-rank")
    assert (first["finished"], first["domain_budgets"]) == ("budgets", [2, 32])
    assert max(pages_by_domain(out).values()) == 8
    assert run("rank", str(out)).returncode == 0
    done = run("resume", str(out))
    assert "over the budgets of its hosts or domains: 2 to 32 pages per domain, by rank" in done.stdout, done.stderr
    standings, pages = stored_standings(out), pages_by_domain(out)
    assert max(pages.values()) > 8
    for domain, fetched in pages.items():
        assert fetched <= max(8, scaled_budget(8, standings.get(domain, 0.5)))
    assert run("verify", str(out)).returncode == 0
    with CrawlReader(out) as opened:
        rows = [row for _, row in opened.ledger.urls() if row.state is UrlState.QUEUED]
        queued = next(row.url for row in rows if registrable_domain(host_of(row.url)) in standings)
    domain = registrable_domain(host_of(queued))
    budget = scaled_budget(8, standings[domain])
    why = run("why", str(out), queued).stdout
    assert f"a higher budget of its domain: {pages[domain]} of {budget} pages were fetched" in why
    assert f"by --domain-budget-by-rank for its rank {standings[domain]:.2f})" in why
    done = run("crawl", *web.seeds(), "--out", str(tmp_path / "other"), "--domain-budget-by-rank")
    assert done.returncode == 2
    assert "there is no budget; expected --max-pages-per-domain N as well" in done.stderr


def pages_by_domain(out: Path) -> dict[str, int]:
    with CrawlReader(out) as opened:
        return {domain.name: domain.pages for domain in opened.ledger.domains()}


def test_a_damaged_file_is_a_warning_and_the_crawl_goes_on(web: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "crawl"
    crawl(web, out, 5, "--max-pages", "60")
    assert run("rank", str(out)).returncode == 0
    whole = (out / RANK_FILE_NAME).read_bytes()
    for damaged in (whole[: len(whole) // 2], b"nothing", gzip.compress(b'{"format":9,"computed_at":""}\n')):
        (out / RANK_FILE_NAME).write_bytes(damaged)
        done = run("resume", str(out), "--max-pages", "60")
        assert done.returncode == 0
        assert f"'gossamer rank {out}' writes it anew" in done.stderr
        assert "Traceback" not in done.stderr


def test_with_a_file_of_ones_own_the_crawl_stays_as_it_is(web: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "crawl"
    crawl(web, out, 5, "--max-pages", "60")
    assert run("rank", str(out), "-o", str(tmp_path / "ranks.jsonl")).returncode == 0
    assert not (out / RANK_FILE_NAME).exists()


def test_the_nodes_of_a_ledger_get_ranks_while_they_crawl(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    nodes = Nodes(web, server, tmp_path, more=["--politeness-ms", "150", "--order", "tiers"])
    nodes.start("a", "b")
    try:
        nodes.wait_for_requests(len(web.log()) + 150)
        done = run("rank", nodes.url, "--json")
        assert (done.returncode, done.stderr) == (0, "")

        def shown() -> dict[str, float]:
            hosts = json.loads(run("hosts", nodes.url, "--json").stdout)["hosts"]
            return {host["name"]: host["rank"] for host in hosts}

        wait_for(lambda: len(set(shown().values())) > 1)
        nodes.quicken()
        for name in ("a", "b"):
            nodes.end(name)
        nodes.check()
    finally:
        for process in nodes.running.values():
            process.kill()
    over = run("rank", nodes.url)
    assert over.returncode == 0
    assert over.stderr == "note: the crawl is over, so its nodes do not get these ranks\n"


def test_of_many_nodes_one_has_ranks_computed_for_all(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    nodes = Nodes(web, server, tmp_path, more=["--politeness-ms", "1000", "--order", "tiers", "--rank-every", "80"])
    nodes.start("a", "b")
    try:
        wait_for(lambda: bool(events(tmp_path / "a", "ranked") or events(tmp_path / "b", "ranked")))
        nodes.quicken()
        for name in ("a", "b"):
            nodes.end(name)
        nodes.check()
    finally:
        for process in nodes.running.values():
            process.kill()
    assert not (events(tmp_path / "a", "ranked") and events(tmp_path / "b", "ranked"))
    hosts = json.loads(run("hosts", nodes.url, "--json").stdout)["hosts"]
    assert len({host["rank"] for host in hosts}) > 1
