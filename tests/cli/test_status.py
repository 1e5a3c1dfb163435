"""`gossamer status`: running or not, how far, and what it waits for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gossamer.model.figures import Totals
from tests.reading.folders import Crawled, finished, ledger_of, owned, said, small_web, stopped

__all__ = ["finished", "small_web", "stopped"]


def _status(capsys: pytest.CaptureFixture[str], path: Path) -> dict[str, object]:
    status, out, _ = said(capsys, "status", path, "--json")
    assert status == 0
    found: dict[str, object] = json.loads(out)
    return found


def test_a_finished_crawl_says_why_it_ended(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "status", finished.path)
    assert status == 0
    assert "finished (exhausted)" in out
    assert "nothing: no URL is queued" in out


def test_a_crawl_at_its_limit_waits_to_be_resumed(stopped: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    found = _status(capsys, stopped.path)
    assert found["is_running"] is False
    assert found["urls_queued"] == stopped.summary.urls_queued
    assert "resume" in str(found["waits_for"])
    assert str(found["last_activity"]).startswith("stopped")


def test_a_running_crawl_names_its_process(stopped: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    with owned(stopped.path):
        found = _status(capsys, stopped.path)
    assert (found["is_running"], found["owner"], found["finished"]) == (True, os.getpid(), "running")


def test_a_process_that_writes_its_report_is_not_said_to_crawl(
    stopped: Crawled, capsys: pytest.CaptureFixture[str]
) -> None:
    with owned(stopped.path):
        _, out, _ = said(capsys, "status", stopped.path)
    assert f"state      begins or ends, process {os.getpid()}; it takes no commands now\n" in out
    assert "waits for  its own files: report and index at the end, the ledger at the start\n" in out


def test_a_killed_crawl_is_interrupted(stopped: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = stopped.copied(tmp_path / "copy")
    with ledger_of(folder) as ledger:
        state = ledger.crawl_state()
        assert state is not None
        state.is_running = True
        ledger.put_crawl_state(state)
    assert _status(capsys, folder)["finished"] == "interrupted"


def test_every_host_is_in_one_place_and_parked_ones_say_why(
    stopped: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stopped.copied(tmp_path / "copy")
    with ledger_of(folder) as ledger:
        host = max(ledger.hosts(), key=lambda one: one.queued)
        host.parked_until, host.park_reason = 4e9, "429 \x1b[2J Retry-After"
        ledger.put_host(host)
        known = sum(1 for _ in ledger.hosts())
    found = _status(capsys, folder)
    places = found["hosts"]
    assert isinstance(places, dict)
    assert sum(places.values()) == known
    assert places["parked"] == 1
    _, out, _ = said(capsys, "status", folder)
    assert host.name in out
    assert "\x1b" not in out


def test_urls_that_wait_for_longer_than_the_crawl_does_are_called_so(
    stopped: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stopped.copied(tmp_path / "copy")
    with ledger_of(folder) as ledger:
        for host in list(ledger.hosts()):
            host.parked_until, host.park_reason = 4e9, "429"
            ledger.put_host(host)
        queued = sum(host.queued for host in ledger.hosts())
    with owned(folder):
        _, out, _ = said(capsys, "status", folder)
    assert f"{queued} URLs: {queued} parked at hosts that wait for longer than --max-wait (5 s)" in out


def test_urls_that_no_budget_allows_are_called_so_and_take_no_time(
    stopped: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stopped.copied(tmp_path / "copy")
    settings = folder / "crawl.toml"
    settings.write_text("max-pages-per-host = 1\n" + settings.read_text())
    with ledger_of(folder) as ledger:
        hosts = [host for host in ledger.hosts() if host.queued]
    over = [host for host in hosts if host.pages]
    found = _status(capsys, folder)
    places = found["hosts"]
    assert isinstance(places, dict)
    assert places["over_budget"] == len(over) > 0
    assert found["urls_over_budget"] == sum(host.queued - (not host.pages) for host in hosts)
    _, out, _ = said(capsys, "status", folder)
    assert "over budget" in out
    _, out, _ = said(capsys, "hosts", folder, over[0].name)
    assert f"{over[0].queued} URL" in out
    assert ", over budget and not fetched" in out


def test_a_blocked_host_is_called_blocked(stopped: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = stopped.copied(tmp_path / "copy")
    with ledger_of(folder) as ledger:
        host = next(iter(ledger.hosts()))
        host.is_blocked = True
        ledger.put_host(host)
    places = _status(capsys, folder)["hosts"]
    assert isinstance(places, dict)
    assert (places["blocked"], places["dead"]) == (1, 0)


def test_a_host_that_the_file_blocks_cannot_be_unblocked_by_a_command(
    stopped: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stopped.copied(tmp_path / "copy")
    (folder / "blocked.txt").write_text("Shop.example.org  # asked us\n")
    status, _, err = said(capsys, "unblock", folder, "shop.example.org")
    assert status == 2
    assert f"shop.example.org: {folder / 'blocked.txt'} blocks it; remove its line there" in err


def test_a_block_says_how_many_urls_it_concerns_and_which_hosts_are_unknown(
    stopped: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stopped.copied(tmp_path / "copy")
    with ledger_of(folder) as ledger:
        host = max(ledger.hosts(), key=lambda one: one.queued)
        queued = sum(one.queued for one in ledger.hosts() if host.name in (one.name, one.domain))
    _, out, _ = said(capsys, "block", folder, host.name, "no.such.test")
    assert f"no more requests to {host.name}, no.such.test; {queued} queued URL" in out
    assert "left alone; no host of this crawl yet: no.such.test; the crawl does not run" in out


def test_a_stopped_crawl_says_how_long_the_rest_takes(stopped: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    found = _status(capsys, stopped.path)
    forecast = found["forecast"]
    assert isinstance(forecast, dict)
    assert forecast["seconds"] >= 0
    assert forecast["text"].endswith("(of what is known now)")
    assert f"forecast   at most: {forecast['text']}" in said(capsys, "status", stopped.path)[1]


def test_the_forecast_of_a_stopped_crawl_follows_a_slower_pace(
    stopped: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stopped.copied(tmp_path / "copy")
    said(capsys, "set", folder, "max-pages", 10_000)
    before = _status(capsys, folder)["forecast"]
    said(capsys, "pace", folder, "*", 30)
    after = _status(capsys, folder)["forecast"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert after["seconds"] > 10 * before["seconds"]


def test_a_finished_crawl_has_no_forecast(finished: Crawled, capsys: pytest.CaptureFixture[str]) -> None:
    assert _status(capsys, finished.path)["forecast"] is None


def test_the_forecast_of_a_stopped_crawl_respects_budgets_errors_retries_and_latency(
    stopped: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stopped.copied(tmp_path / "copy")
    with ledger_of(folder) as ledger:
        hosts = list(ledger.hosts())
        for host in hosts:
            host.queued, host.delay_s, host.latency_s, host.parked_until, host.next_at = 0, 0.02, 0.01, 0.0, 0.0
        slow = hosts[0]
        slow.queued, slow.latency_s, slow.pages, slow.fetches = 100, 2.0, 0, 1
        for host in hosts:
            ledger.put_host(host)
        state = ledger.crawl_state()
        assert state is not None
        state.totals.fetches, state.totals.robots_fetches, state.totals.failed_lookups = 1000, 0, 0
        state.totals.retries, state.totals.pages = 200, 400
        state.figures, state.is_running = None, False
        ledger.put_crawl_state(state)
    settings = folder / "crawl.toml"
    unlimited = settings.read_text().replace("max-pages = 40", "")
    settings.write_text(unlimited)
    whole = _status(capsys, folder)["forecast"]
    assert isinstance(whole, dict)
    assert whole["seconds"] == pytest.approx(100 * 2.0 * 1.25, rel=0.05), "by its latency; a URL takes 1.25 requests"
    settings.write_text("max-pages-per-host = 20\n" + unlimited)
    found = _status(capsys, folder)
    assert found["urls_over_budget"] == 60, "half of the URLs bring a page"
    forecast = found["forecast"]
    assert isinstance(forecast, dict)
    assert forecast["seconds"] == pytest.approx(40 * 2.0 * 1.25, rel=0.05)
    _, out, _ = said(capsys, "hosts", folder, slow.name)
    assert "100 URLs, 60 of them over budget and not fetched, done in 1 min 38 s" in out


def test_where_nothing_was_fetched_there_is_no_share_and_the_reason_is_told(
    stopped: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stopped.copied(tmp_path / "copy")
    with ledger_of(folder) as ledger:
        state = ledger.crawl_state()
        assert state is not None
        state.totals = Totals(runs=1)
        state.figures = None
        ledger.put_crawl_state(state)
    found = _status(capsys, folder)
    assert (found["error_rate"], found["pages_per_second"]) == (None, None)
    unknown = found["unknown"]
    assert isinstance(unknown, dict)
    assert unknown["error_rate"] == "nothing was fetched yet"
    _, out, _ = said(capsys, "status", folder)
    assert "0 of 0 fetches (–)" in out
    assert "–/s" in out
