"""`gossamer hosts`: a table of hosts, and every request made to one of them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from gossamer.core.politeness.pace import count_server_error
from tests.reading.folders import Crawled, finished, is_one_line, ledger_of, said, small_web, stopped

__all__ = ["finished", "small_web", "stopped"]


def test_all_hosts_are_listed(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "hosts", finished.path, "--json")
    found = json.loads(out)
    assert status == 0
    assert found["known"] == len(found["hosts"])
    assert sum(host["pages"] for host in found["hosts"]) == finished.summary.pages


@pytest.mark.parametrize("sort", ["errors", "pages", "queued"])
def test_the_highest_come_first(stopped: Crawled, sort: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "hosts", stopped.path, "--sort", sort, "--json")
    values = [host[sort] for host in json.loads(out)["hosts"]]
    assert values == sorted(values, reverse=True)


def test_the_table_fits_and_says_how_many_more(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "hosts", finished.path, "--top", 3)
    assert status == 0
    assert "more; --top 0 shows all" in out
    assert len(out.splitlines()) == 5
    assert max(map(len, out.splitlines())) <= 100


def test_hosts_are_listed_by_name(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "hosts", finished.path, "--sort", "name", "--json")
    names = [host["name"] for host in json.loads(out)["hosts"]]
    assert len(names) > 3
    assert names == sorted(names)


def test_no_column_of_the_table_is_cut(finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = finished.copied(tmp_path / "copy")
    reason = "429 Too Many Requests, and Retry-After says that the host is to be left alone for a quarter of an hour"
    with ledger_of(path) as ledger:
        host = max(ledger.hosts(), key=lambda host: host.pages)
        host.queued = 1
        host.parked_until = time.time() + 900
        host.park_reason = reason
        ledger.put_host(host)
    _, out, _ = said(capsys, "hosts", path)
    (line,) = [line for line in out.splitlines() if line.split()[0] == host.name]
    assert line.endswith(reason)


def test_every_request_to_a_host_is_reported(
    finished: Crawled, small_web: object, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = said(capsys, "hosts", finished.path, "--json")
    hosts = json.loads(out)["hosts"]
    assert len(hosts) > 3
    for host in hosts[:3]:
        _, one, _ = said(capsys, "hosts", finished.path, host["name"], "--json")
        page = json.loads(one)
        assert len(page["requests"]) == host["fetches"]
        assert page["requests"][0]["purpose"] == "robots.txt"
        assert [r["at"] for r in page["requests"]] == sorted(r["at"] for r in page["requests"])


def test_one_host_is_described_for_people(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "hosts", finished.path, "--json", "--top", 1)
    name = json.loads(out)["hosts"][0]["name"]
    status, text, _ = said(capsys, "hosts", finished.path, name.upper())
    assert status == 0
    assert "[robots.txt]" in text
    assert "[seed]" in text
    assert "requests" in text.splitlines()[-1]


def test_a_host_has_its_rank_connections_and_server_errors(
    finished: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = finished.copied(tmp_path / "copy")
    with ledger_of(path) as ledger:
        host = max(ledger.hosts(), key=lambda host: host.pages)
        now = time.time()
        for at in (now - 30 * 3600, now - 3600, now, now):
            count_server_error(host, at)
        host.rank, host.is_blocked = 0.75, True
        ledger.put_host(host)
    _, out, _ = said(capsys, "hosts", path, host.name, "--json")
    view = json.loads(out)["host"]
    assert (view["rank"], view["connections"], view["server_errors_24h"], view["is_blocked"]) == (0.75, 1, 3, True)
    _, out, _ = said(capsys, "hosts", path, host.name)
    assert "3 answers with 5xx in 24 h" in out
    assert "blocked" in out


def test_a_host_that_is_not_known_is_exit_1(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = said(capsys, "hosts", finished.path, "nowhere.test")
    assert (status, out) == (1, "")
    assert is_one_line(err)


@pytest.mark.parametrize("words", [["--sort", "beauty"], ["--top", "-1"], ["http://[bad"]])
def test_bad_words_are_one_line(finished: Crawled, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(capsys, "hosts", finished.path, *words)
    assert status == 2
    assert is_one_line(err)
