"""A file of seeds with rules and metadata, as a user has it: crawled, exported, explained, continued, killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.amount import some
from tests.e2e.program import run, summary_of
from tests.support.sites.trap_server import TrapServer
from tests.support.sites.trap_sites import Site

SITE = Site(lambda n: f"/p/{n}", lambda n: f"a page about the number {n} and nothing else, written for a test")
QUICK = ("--politeness-ms", "0", "--no-traps", "--json")


def seed_file(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(path)


def documents(out: Path) -> list[dict[str, Any]]:
    done = run("export", str(out), "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def metadata_by_page(out: Path) -> dict[str, tuple[str, dict[str, str]]]:
    return {each["url"]: (each["seed"], each["seed_metadata"]) for each in documents(out)}


@pytest.mark.parametrize("workers", some(["2", "1"], 1))
def test_a_file_of_seeds_with_rules_is_crawled_exported_and_explained(tmp_path: Path, workers: str) -> None:
    out = tmp_path / "out"
    with TrapServer(SITE, 40) as near, TrapServer(SITE, 40) as far, TrapServer(SITE, 40) as plain:
        seeds = seed_file(
            tmp_path / "seeds.txt",
            f"{near.seed}\tdepth=1\tteam=news",
            f"{far.seed}\tscope=prefix\tdepth=3\tteam=sport\tdesk=a b",
            plain.seed,
        )
        done = run("crawl", "-s", seeds, "--out", str(out), "--max-depth", "2", "--workers", workers, *QUICK)
        assert done.returncode == 0, done.stderr
        assert (near.requests, far.requests, plain.requests) == (6, 16, 11)
        found = metadata_by_page(out)
        by_seed = {
            server.seed: {str(value) for url, value in found.items() if url.startswith(server.seed)}
            for server in (near, far, plain)
        }
        assert by_seed == {
            near.seed: {str((near.seed, {"team": "news"}))},
            far.seed: {str((far.seed, {"team": "sport", "desk": "a b"}))},
            plain.seed: {str((plain.seed, {}))},
        }
        why = run("why", str(out), f"{far.seed}p/3").stdout
        assert f"from the seed {far.seed}, with scope=prefix depth=3 team=sport desk='a b'" in why
        shown = json.loads(run("why", str(out), f"{far.seed}p/3", "--json").stdout)
        assert shown["seed"]["metadata"] == {"team": "sport", "desk": "a b"}
        assert (shown["seed"]["scope"], shown["seed"]["depth"], shown["row"]["seed"]) == ("prefix", 3, 2)
    exported = run("export", str(out), "--format", "parquet", "-o", str(tmp_path / "pages.parquet"))
    assert exported.returncode == 0, exported.stderr
    table = pq.read_table(tmp_path / "pages.parquet")
    assert {row["url"]: (row["seed"] or "", dict(row["seed_metadata"])) for row in table.to_pylist()} == found
    assert run("verify", str(out)).returncode == 0


def test_one_line_of_a_bad_file_of_seeds_stops_before_anything_is_written(tmp_path: Path) -> None:
    for field, part in (("7", "key=value"), ("scope=web", "scope 'web'"), ("depth=-3", "depth '-3'")):
        seeds = seed_file(tmp_path / "seeds.txt", "http://localhost:9/", "", f"http://localhost:9/x\t{field}")
        done = run("crawl", seeds, "--out", str(tmp_path / "out"))
        assert done.returncode == 2
        assert f"{seeds}:3: " in done.stderr
        assert part in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert not (tmp_path / "out").exists()


def test_seeds_are_added_to_a_finished_crawl_and_changed(tmp_path: Path) -> None:
    out, file = str(tmp_path / "out"), tmp_path / "seeds.txt"
    with TrapServer(SITE, 40) as first, TrapServer(SITE, 40) as second:
        run("crawl", first.seed, "--out", out, "--max-depth", "1", *QUICK)
        seeds = seed_file(file, f"{second.seed}\tdepth=1\tteam=news", f"{first.seed}p/1\tteam=late")
        added = run("crawl", seeds, "--out", out, *QUICK)
        assert (summary_of(added.stdout)["pages"], added.returncode) == (12, 0), added.stderr
        assert (
            f"seed {first.seed}p/1 was found before as a link, so its rules and metadata (team=late) do not apply"
            in added.stderr
        )
        again = run("crawl", seed_file(file, f"{second.seed}\tdepth=3"), "--out", out, *QUICK)
        assert summary_of(again.stdout)["pages"] == 22, again.stderr
        assert second.requests == 16
        found = metadata_by_page(tmp_path / "out")
        assert [value for url, value in found.items() if url.startswith(second.seed)] == [
            (second.seed, {"team": "news"})
        ] * 16
        refused = run("crawl", seed_file(file, f"{second.seed}\tscope=any"), "--out", out, *QUICK)
        assert refused.returncode == 2
        assert f"{second.seed} is a seed of this crawl without a scope of its own" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
        assert run("verify", out).returncode == 0


@pytest.mark.parametrize("failpoint", ["before_commit:kill:2", "in_commit:kill:2", "after_fetch:kill:30"])
def test_seeds_and_rules_survive_a_kill(tmp_path: Path, failpoint: str) -> None:
    out = tmp_path / "out"
    with TrapServer(SITE, 200) as server:
        seeds = seed_file(tmp_path / "seeds.txt", f"{server.seed}\tscope=host\tdepth=30\tteam=news")
        options = ("--out", str(out), "--max-depth", "1", "--scope", "page", *QUICK)
        killed = run("crawl", seeds, *options, environment={"GOSSAMER_FAILPOINT": failpoint})
        assert killed.returncode != 0
        again = run("crawl", seeds, "--out", str(out), *QUICK)
        assert summary_of(again.stdout)["pages"] == 151, again.stderr
        assert "warning" not in again.stderr
        found = metadata_by_page(out)
        assert len(found) == 151
        assert {str(value) for value in found.values()} == {str((server.seed, {"team": "news"}))}


def test_a_link_that_one_seed_refuses_is_followed_from_the_page_of_another(tmp_path: Path) -> None:
    with TrapServer(SITE, 20) as server:
        seeds = seed_file(tmp_path / "seeds.txt", f"{server.seed}\tscope=page", f"{server.seed}p/1\tscope=host")
        done = run("crawl", seeds, "--out", str(tmp_path / "out"), "-c", "1", *QUICK)
        assert summary_of(done.stdout)["pages"] == 21, "the front page has five of the links of the first page"
