"""Seeds with rules and metadata of their own, on many nodes: the same pages with the same seeds as on one machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.program import run
from tests.e2e.test_cluster import Nodes
from tests.servers.redis import RedisServer
from tests.servers.web import RunningWeb

RULES = ("depth=1\tteam=news", "scope=host\tteam=sport", "")


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", seed=5, pages=300)) as web:
        yield web


class SeededNodes(Nodes):
    """Nodes whose crawl has a file of seeds."""

    def options(self) -> list[str]:
        file = self._folder / "seeds.txt"
        lines = [f"{seed}\t{RULES[number % len(RULES)]}".strip() for number, seed in enumerate(self._web.seeds())]
        file.write_text("\n".join(lines), "utf-8")
        crawl, *rest = super().options()
        return [crawl, str(file), "--scope", "host", *rest[len(self._web.seeds()) :]]


def seeds_by_page(crawl: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the seeds that have metadata, and these, by page; which of the others finds a page first is chance."""
    done = run("export", crawl, "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    documents = map(json.loads, done.stdout.splitlines())
    return {each["url"]: (each["seed"] if each["seed_metadata"] else "", each["seed_metadata"]) for each in documents}


def test_seeds_with_rules_reach_the_same_pages_as_on_one_machine(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    nodes = SeededNodes(web, server, tmp_path)
    alone = run(*nodes.options(), "-o", str(tmp_path / "alone"), "--no-progress")
    assert alone.returncode == 0, alone.stderr
    expected = seeds_by_page(str(tmp_path / "alone"))
    nodes.start("a", "b")
    nodes.wait_for_requests(2 * len(expected))
    nodes.kill("b")
    nodes.start("c")
    assert nodes.end("a")["finished"] == nodes.end("c")["finished"] == "exhausted"
    assert seeds_by_page(nodes.url) == expected
    assert {str(value) for value in expected.values() if "sport" in str(value)}
    ruled = web.seeds()[0]
    assert f"from the seed {ruled}, with depth=1 team=news" in run("why", nodes.url, ruled).stdout


def test_a_seed_that_is_given_again_keeps_its_scope_and_depth(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    nodes = SeededNodes(web, server, tmp_path)
    nodes.start("a")
    assert nodes.end("a")["finished"] == "exhausted"
    ruled = web.seeds()[0]
    file = tmp_path / "again.txt"
    for rule, part in (("scope=any", "it cannot change to scope=any"), ("depth=5", "its depth cannot change to 5")):
        file.write_text(f"{ruled}\t{rule}\n", "utf-8")
        refused = run(
            "crawl", str(file), "--ledger", nodes.url, "--contact", "t@example.org", "-o", str(tmp_path / "b")
        )
        assert refused.returncode == 2
        assert part in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
