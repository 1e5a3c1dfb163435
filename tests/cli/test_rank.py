"""`gossamer rank` as a user runs it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of
from gossamer.handover.rank.ranking import RANKS_NAME
from tests.e2e.program import run
from tests.reading.folders import Crawled, finished, is_one_line, said, small_web, stopped
from tests.servers import engines
from tests.servers.plain_site import Answer, plain_site
from tests.servers.redis import RedisServer, running

__all__ = ["finished", "small_web", "stopped"]
Output = pytest.CaptureFixture[str]


@pytest.fixture
def folder(finished: Crawled, tmp_path: Path) -> Path:
    return finished.copied(tmp_path / "crawl")


def ranked(capsys: Output, *words: object) -> dict[str, Any]:
    status, out, err = said(capsys, "rank", *words, "--json")
    assert (status, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def stored(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_the_table_has_the_best_domains_and_the_folder_all_hosts(folder: Path, capsys: Output) -> None:
    status, out, err = said(capsys, "rank", folder, "--top", 3)
    assert (status, err) == (0, "")
    found = ranked(capsys, folder, "--top", 0)
    figures, domains = found["computed_from"], found["domains"]
    lines = out.splitlines()
    assert "trusted: the seeds" in lines[0]
    assert [line.split()[0] for line in lines[2:5]] == [domain["domain"] for domain in domains[:3]]
    assert lines[5] == f"  and {len(domains) - 3} more; --top 0 shows all"
    assert len(domains) == figures["domains"]
    assert sum(domain["rank"] for domain in domains) == pytest.approx(1.0)
    head, *hosts = stored(folder / RANKS_NAME)
    assert (head, len(hosts)) == (figures, figures["hosts"])
    assert {host["domain"] for host in hosts} == {domain["domain"] for domain in domains}
    assert figures["links"] > figures["domain_links"] > 0


def test_ranks_start_at_the_trusted_domains(finished: Crawled, folder: Path, tmp_path: Path, capsys: Output) -> None:
    url = next(url for url, row in finished.rows().items() if row.outcome == "ok")
    domain = registrable_domain(host_of(url))
    names = tmp_path / "names"
    names.write_text(f"# trusted\n{url}\n")
    equal, given = ranked(capsys, folder, "--trusted", "all"), ranked(capsys, folder, "--trusted", names)
    assert (equal["computed_from"]["trusted"], given["computed_from"]["trusted"]) == ("all", "file")
    assert given["computed_from"]["trusted_domains"] == 1
    before, after = (
        next(one["rank"] for one in found["domains"] if one["domain"] == domain) for found in (equal, given)
    )
    assert after > before
    assert after >= 0.15
    assert stored(folder / RANKS_NAME)[0]["trusted"] == "file"
    names.write_text(f"{url}\nnobody.example\n")
    status, _, err = said(capsys, "rank", folder, "--trusted", names)
    assert (status, is_one_line(err)) == (0, True)
    assert "1 of 2 trusted domains, such as nobody.example" in err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such file; expected a file with one domain or URL per line, or 'all'"),
        ("", "no seeds in it"),
        ("http://[/\n", "names:1"),
        ("nobody.example\n", "none of its 1 domain occurs in the crawl or its links"),
    ],
)
def test_bad_files_of_trusted_domains_are_one_line(
    folder: Path, tmp_path: Path, content: str | None, says: str, capsys: Output
) -> None:
    names = tmp_path / "names"
    if content is not None:
        names.write_text(content)
    status, out, err = said(capsys, "rank", folder, "--trusted", names)
    assert (status, out) == (2, "")
    assert says in err
    assert is_one_line(err)
    assert not (folder / RANKS_NAME).exists()


def test_other_bad_usage_is_one_line(folder: Path, tmp_path: Path, capsys: Output) -> None:
    targets = ((folder, "-o", "/no/such/folder/x"), (folder, "-o", "-"))
    for words in ((folder, "--top", "-1"), (tmp_path,), *targets, (folder, "--top", "x")):
        status, out, err = said(capsys, "rank", *words)
        assert (status, out, is_one_line(err)) == (2, "", True)


def test_a_crawl_without_pages_has_nothing_to_rank(tmp_path: Path, capsys: Output) -> None:
    folder = tmp_path / "empty"
    with plain_site() as site:
        done = run("crawl", site.url, "--out", str(folder), "--politeness-ms", "0")
    assert done.returncode == 1, done.stderr
    status, out, err = said(capsys, "rank", folder)
    assert (status, out) == (1, "")
    assert "nothing to rank" in err
    assert is_one_line(err)
    assert not (folder / RANKS_NAME).exists()


def test_pages_without_links_have_what_trusted_domains_are_given(tmp_path: Path, capsys: Output) -> None:
    folder = tmp_path / "one"
    with plain_site() as site:
        site.answers["/"] = Answer('<p>A page. <a rel="nofollow" href="http://elsewhere.example/">No link.</a>')
        done = run("crawl", site.url, "--out", str(folder), "--politeness-ms", "0")
    assert done.returncode == 0, done.stderr
    status, out, err = said(capsys, "rank", folder)
    assert (status, err) == (0, "")
    assert "no domain links to another one" in out
    assert ranked(capsys, folder)["domains"] == [{"domain": "127.0.0.1", "rank": 1.0, "domains_in": 0}]


def test_a_seed_that_has_moved_passes_its_trust_on(tmp_path: Path, capsys: Output) -> None:
    folder = tmp_path / "moved"
    with plain_site() as site:
        new = site.url.replace("127.0.0.1", "localhost")
        site.answers["/"] = Answer(status=301, location=f"{new}home")
        site.answers["/home"] = Answer('<p>A page. <a href="http://elsewhere.example/">A link.</a>')
        done = run("crawl", site.url, "--out", str(folder), "--politeness-ms", "0", "--scope", "page")
    assert done.returncode == 0, done.stderr
    found = {one["domain"]: one for one in ranked(capsys, folder)["domains"]}
    assert found.keys() == {"127.0.0.1", "localhost", "elsewhere.example"}
    assert found["elsewhere.example"]["rank"] > 0.1


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    program = engines.valkey()
    with running(program, tmp_path_factory.mktemp("redis")) as server:
        yield server


def test_a_ledger_gives_the_same_ranks_and_counts_what_lies_elsewhere(
    server: RedisServer, stopped: Crawled, tmp_path: Path, capsys: Output
) -> None:
    folder, url = stopped.copied(tmp_path / "crawl"), f"{server.url}/ranks"
    assert said(capsys, "migrate", folder, url)[0] == 0
    alone, shared = ranked(capsys, folder), ranked(capsys, url, "-o", tmp_path / "ranks.jsonl")
    assert shared["domains"] == alone["domains"]
    assert len((tmp_path / "ranks.jsonl").read_bytes().splitlines()) == 1 + alone["computed_from"]["hosts"]
    folder.rename(tmp_path / "away")
    status, _, err = said(capsys, "rank", url)
    assert status == 1
    assert f"INCOMPLETE: the bytes of {stopped.summary.pages} pages lie in folders" in err
    named = ranked(capsys, url, "--node-folder", f"origin={tmp_path / 'away'}")
    assert named["domains"] == alone["domains"]
