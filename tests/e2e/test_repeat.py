"""A crawl is repeated from its own configuration."""

from __future__ import annotations

import json
from pathlib import Path

from gossamer.sim.web.web import preset
from tests.e2e.program import run
from tests.servers.web import RunningWeb


def pages_of(folder: Path) -> list[str]:
    lines = run("export", str(folder), "--format", "cdxj").stdout.splitlines()
    captures = [json.loads(line.split(" ", 2)[2]) for line in lines]
    return sorted(capture["url"] for capture in captures if capture["status"] == "200")


def test_a_crawl_can_be_repeated_from_its_own_folder(tmp_path: Path) -> None:
    with RunningWeb(preset("small", seed=5, pages=30)) as web:
        first, second = tmp_path / "first", tmp_path / "second"
        seeds = web.seeds()
        where = ("--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "--politeness-ms", "0")
        begun = run("crawl", *seeds[:1], "-o", str(first), *where, "--max-depth", "1", "--exclude-pattern", "/p/1")
        assert begun.returncode == 0, begun.stderr
        assert run("add", str(first), *seeds[1:]).returncode == 0
        assert run("resume", str(first)).returncode == 0
        assert (first / "seeds.txt").read_text().splitlines() == list(seeds)
        assert (first / "crawl.toml").read_text().startswith('seeds = ["seeds.txt"]\n')
        again = run("crawl", "--config", str(first / "crawl.toml"), "-o", str(second))
        assert again.returncode == 0, again.stderr
        assert pages_of(second) == pages_of(first)
        assert pages_of(first)
        changed = run("set", str(first), "max-pages", "50000")
        assert changed.returncode == 0, changed.stderr
        assert (first / "crawl.toml").read_text().startswith('seeds = ["seeds.txt"]\n')
