"""Crawls that go on: known pages are fetched again when they are due, by the servers' own log."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

from tests.e2e.program import run, start
from tests.servers.changing_site import CLOCK, MOVES, VANISHES, ChangingSite, changing_site

HOSTS = [f"127.0.1.{number}" for number in range(1, 5)]
SHORTEST_S = 1.0
LONGEST_S = 3.0
PACE_MS = 50
STOPPED = 11  # by the operator
OPTIONS = (
    *("--revisit", "--revisit-min", str(SHORTEST_S), "--revisit-max", str(LONGEST_S)),
    *("--politeness-ms", str(PACE_MS), "--scope", "host", "--no-progress"),
)


def begin(site: ChangingSite, out: Path, *more: str) -> subprocess.Popen[str]:
    return start("crawl", *site.seeds, "--out", str(out), *OPTIONS, *more)


def finish(process: subprocess.Popen[str]) -> str:
    """End a crawl as a user does; return what it printed."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == STOPPED, err
    return out + err


def events(out: Path) -> list[dict[str, object]]:
    lines = (line for path in sorted((out / "events").glob("*.jsonl")) for line in path.read_text().splitlines())
    return [json.loads(line) for line in lines]


def check_log(site: ChangingSite, killed_at: float = 0.0) -> None:
    """Check by the servers' log that no page was asked for early, and the pace of every host was kept."""
    for (host, path), visits in site.visits().items():
        for before, after in pairwise(visits):
            # What was on the wire when the process was killed is asked for again.
            was_lost = before.at <= killed_at <= after.at and killed_at - before.at < 1.0
            assert after.at - before.at >= SHORTEST_S - 0.05 or was_lost, (host, path, before, after)
    for asked in site.by_host().values():
        assert min(after.at - before.at for before, after in pairwise(asked)) >= PACE_MS / 1000 - 0.02


def test_a_crawl_goes_on_over_a_kill_and_a_resume(tmp_path: Path) -> None:
    out = tmp_path / "c"
    with changing_site(HOSTS) as site:
        process = begin(site, out)
        site.wait_for(100)
        process.kill()
        process.communicate(timeout=60)
        killed_at = time.time()
        process = start("resume", str(out), "--no-progress")
        site.wait_for(300)
        printed = finish(process)
    check_log(site, killed_at)
    statuses = Counter(asked.status for asked in site.pages())
    assert statuses[304] > 60
    for (host, path), visits in site.visits().items():
        if path != f"/{MOVES}":
            assert len(visits) >= 3, (host, path)
        gaps = [after.at - before.at for before, after in pairwise(visits)]
        is_gone = path == f"/{VANISHES}" or visits[0].status == 404
        assert max(gaps) < LONGEST_S + 6.0 or is_gone, (host, path)  # with the time between the two runs
    assert "visits of known URLs" in printed
    for verb in ("verify", "audit"):
        done = run(verb, str(out))
        assert done.returncode == 0, done.stdout + done.stderr
    found = Counter(str(event.get("found", "")) for event in events(out))
    assert found["changed"] > 10
    assert found["gone"] > 0
    clock = [event for event in events(out) if event.get("found") and str(event["url"]).endswith(f"/{CLOCK}")]
    assert {event["found"] for event in clock} == {"same"}


def test_a_finished_crawl_goes_on_when_it_is_asked_to(tmp_path: Path) -> None:
    out = tmp_path / "c"
    with changing_site(HOSTS[:2]) as site:
        done = run("crawl", *site.seeds, "--out", str(out), "--politeness-ms", str(PACE_MS), "--scope", "host")
        assert done.returncode == 0, done.stderr
        first = len(site.pages())
        process = start("resume", str(out), *OPTIONS[:5], "--no-progress")
        site.wait_for(first + 60)
        finish(process)
        summary = json.loads(run("status", str(out), "--json").stdout)
        exported = run("export", str(out), "--format", "jsonl")
        assert exported.returncode == 0, exported.stderr
        stopped = len(site.log)
        again = run("resume", str(out), "--no-revisit", "--no-progress")
        assert again.returncode == 0, again.stderr
        assert len(site.log) == stopped
    check_log(site)
    # Pages that are the same are still there, with their text, though the last answer was a 304.
    pages = [json.loads(line) for line in exported.stdout.splitlines()]
    assert len(pages) == summary["pages"] >= 2 * 11
    assert all("page" in page["title"] and len(page["text"].split()) > 100 for page in pages)


def test_why_shows_the_visits_and_the_next_one(tmp_path: Path) -> None:
    out = tmp_path / "c"
    with changing_site(HOSTS[:1]) as site:
        process = begin(site, out)
        site.wait_for(50)
        finish(process)
        told = run("why", str(out), site.seeds[0]).stdout
    assert told.count("visited ") >= 3
    assert "first (200)" in told
    assert "same (304)" in told
    assert "next visit" in told
    assert "class       static, by what it does" in told


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    seed = "http://127.0.0.1:1/"
    for options, told in (
        (("--revisit-min", "60", "--revisit-max", "5"), "revisit-min = 60: longer than revisit-max = 5"),
        (("--revisit-class", "fresh=/x"), "expected CLASS=RE with one of static, news, popular, rare"),
        (("--revisit-class", "news=("), "not a regular expression"),
        (("--revisit-share", "2"), "revisit-share"),
        (("--revisit-rule", "often"), "revisit-rule"),
    ):
        done = run("crawl", seed, "--out", str(tmp_path / "c"), "--revisit", *options)
        assert done.returncode == 2, done.stderr
        assert told in done.stderr
        assert "Traceback" not in done.stderr
