"""Pages without end (T): each trap is named, held or bounded, and other hosts go on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from gossamer.core.url.domains import registrable_domain
from gossamer.telemetry.text import plural
from tests.e2e.program import run
from tests.hostile.crawling import Aftermath, crawl_catalogue, whole_server


def reasons(after: Aftermath, name: str) -> set[str]:
    return {event["reason"] for event in after.told(name, "excluded_by_rule")}


def test_t01_a_calendar(after: Aftermath) -> None:
    assert len(after.server.requests("t01")) <= 52, "forty, and each month's name once"
    assert "calendar" in reasons(after, "t01")
    found = [event["url"] for event in after.told("t01", "excluded_by_rule") if event["reason"] == "calendar"]
    held = [url for url in found if after.find(url) is None]
    assert "held back by the calendar rule" in run("why", str(after.out), held[0]).stdout
    assert after.summary["held"]["calendar"] == len(held)


def test_t02_session_ids(after: Aftermath) -> None:
    assert len(after.server.requests("t02")) == 6


def test_t03_a_path_that_repeats_itself(after: Aftermath) -> None:
    assert "repeated_segment" in reasons(after, "t03")
    assert max(row.url.count("/a/") for row in after.rows("t03")) <= 3


def test_t04_a_farm_of_hosts(after: Aftermath) -> None:
    hosts = {seen.host for seen in after.server.seen if registrable_domain(seen.host) == "t04.test"}
    assert 20 <= len(hosts) <= 25
    refused = [event for event in after.events if event["reason"] == "hosts_per_domain"]
    assert refused
    assert all(registrable_domain(event["host"]) == "t04.test" for event in refused)


def test_t05_combinations_without_new_content_are_held(after: Aftermath) -> None:
    (event,) = after.told("t05", "trap_quarantined")
    assert event["rule"] == "t05.test/shop?*"
    assert event["links"] > 0
    cut = after.events.index(event)
    pages = [each["url"] for each in after.events[:cut] if each["event"] == "fetch_ok" and "/shop?" in each["url"]]
    assert len(pages) < 250
    assert after.summary["held"]["quarantine"] > 0
    assert any(each["reason"] == "held_back" and each["rule"] == "quarantine" for each in after.events)


def test_t05_numbered_pages_with_new_content_are_no_trap(after: Aftermath) -> None:
    assert {after.row("t05", f"/article/{number}").outcome for number in range(1, 31)} == {"ok"}


def test_t05_what_is_held_can_be_seen_and_released(after: Aftermath, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    shutil.copytree(after.out, out)
    listed = run("traps", str(out), "--json").stdout.splitlines()
    quarantine = next(each for each in map(json.loads, listed) if each["name"] == "t05.test/shop?*")
    assert quarantine["samples"]
    assert "t05.test/shop?*" in run("traps", str(out)).stdout
    done = run("traps", str(out), "--release", "t05.test/shop?*")
    assert done.returncode == 0, done.stderr
    assert f"{quarantine['held']} URLs of 1 pattern released, queued with the next run" in done.stdout
    assert f"{quarantine['held']:,} URLs from quarantine, queued with the next run" in run("status", str(out)).stdout
    again = [json.loads(line) for line in run("traps", str(out), "--json").stdout.splitlines()]
    assert [each["is_released"] for each in again if each["name"] == "t05.test/shop?*"] == [True]
    wrong = run("traps", str(out), "--release", "t05.test/shop?*")
    assert wrong.returncode == 2
    assert "no such pattern" in wrong.stderr
    others = sum(not each["is_released"] for each in again)
    assert f"of {plural(others, 'pattern')} released" in run("traps", str(out), "--release").stdout
    assert run("traps", str(out), "--release").stdout == "no pattern is in quarantine\n"
    # Once more, without bounds: what was released is fetched and not held again.
    more = ("--max-pages-per-host", "260", "--max-depth", "20")
    with whole_server() as server:
        aftermath = crawl_catalogue(server, out, [], *more)
        assert not any(row.outcome == "quarantined" for row in aftermath.rows("t05"))
        aftermath.close()


def test_t06_endless_text_leaves_others_their_turn(after: Aftermath) -> None:
    turns = [
        event["host"] for event in after.events if event["event"] == "fetch_ok" and event["host"].startswith("t06")
    ]
    assert turns.count("t06.test") == turns.count("t06beside.test") == 250
    middle = turns[: len(turns) // 2]
    assert 100 < middle.count("t06.test") < 150


def test_deep_pages_of_a_host_that_sends_too_much_are_not_followed(tmp_path: Path) -> None:
    with whole_server() as server:
        aftermath = crawl_catalogue(server, tmp_path / "out", ["t06"], "--max-bytes", "620")
        assert max(row.depth for row in aftermath.rows("t06")) == 2
        assert "oversize_host" in reasons(aftermath, "t06")
        assert aftermath.host("t06").oversize >= 3
        aftermath.close()


def test_t07_fragments_and_case(after: Aftermath) -> None:
    assert sorted(seen.path for seen in after.server.requests("t07")) == ["/", "/A", "/a"]
