"""The servers of every manner, for a few seconds: their own log has no complaint, and the crawl's records show why."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.e2e.program import run, start
from tests.support.sites.manners import MANNERS
from tests.support.sites.manners_server import ManneredServer, Seen, offences

POLITENESS_S = 0.3


def _command(server: ManneredServer, folder: Path, workers: int, seconds: float) -> list[str]:
    seeds = folder / "seeds.txt"
    seeds.write_text("\n".join(server.web.seeds()), "utf-8")
    return [
        *("crawl", str(seeds), "--out", str(folder / "crawl"), "--dns", server.dns_address),
        *("--allow-network", "127.0.0.0/8", "--politeness-ms", str(round(POLITENESS_S * 1000))),
        *("--workers", str(workers), "--max-wait", "20", "--max-time", str(seconds), "--no-progress"),
    ]


@pytest.mark.parametrize(("workers", "is_killed"), [(1, False), (2, True)])
def test_every_server_is_treated_well(tmp_path: Path, workers: int, is_killed: bool) -> None:
    with ManneredServer(2 * len(MANNERS)) as server:
        if is_killed:
            process = start(*_command(server, tmp_path, workers, 8))
            time.sleep(4)
            process.kill()
            process.communicate()
        done = run(*_command(server, tmp_path, workers, 8 - 4 * is_killed))
        assert done.returncode == 0, done.stderr
        seen = list(server.seen)
        found = list(offences(server.web, seen, POLITENESS_S, slack_s=0.03))  # stamped by a busy machine
    assert found == []
    asked = {one.host for one in seen}
    assert asked == set(server.web.hosts), "every host was asked"
    assert sum(one.status == 200 and one.path not in ("/robots.txt", "/rules.txt") for one in seen) > 100
    audit = run("audit", str(tmp_path / "crawl"))
    assert audit.returncode == 0, audit.stdout


def test_the_judge_sees_rudeness() -> None:
    with ManneredServer(len(MANNERS)) as server:
        web = server.web

    def judged(*seen: Seen) -> list[str]:
        return [one.what for one in offences(web, list(seen), 1.0)]

    def one(path: str, at: float, host: str = "rules-0.test", *, status: int = 200, quiet_s: float = 0.0) -> Seen:
        return Seen(host, path, at, 1, at + 0.01, status, quiet_s)

    assert judged(one("/robots.txt", 1), one("/", 2), one("/1", 3)) == []
    assert "before robots.txt" in judged(one("/", 1))[0]
    assert "1 s required" in judged(one("/robots.txt", 1), one("/", 1.9))[0]
    assert "forbidden" in judged(one("/robots.txt", 1), one("/private/a", 2))[0]
    assert "after a 429" in judged(one("/robots.txt", 1), one("/", 2, status=429, quiet_s=3), one("/1", 4))[0]
    assert (
        "before robots.txt"
        in judged(one("/robots.txt", 1, "broken-0.test", status=500), one("/", 9, "broken-0.test"))[0]
    )
