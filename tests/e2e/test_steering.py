"""An operator tells a crawl that runs what to do, as the verbs do."""

from __future__ import annotations

import json
import re
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from gossamer.backends.local.folder import CrawlFolder
from gossamer.control.running import query
from gossamer.control.target import target
from gossamer.core.url.domains import registrable_domain
from gossamer.model.commands import BlockNames, UnblockNames
from gossamer.model.figures import Figures
from gossamer.sim.web.log import LoggedRequest
from gossamer.sim.web.web import preset
from gossamer.telemetry.metrics import render
from tests.e2e.program import crawl_options, run, start, summary_of
from tests.servers.plain_site import Answer, plain_site
from tests.servers.web import RunningWeb
from tests.support.sites.trap_server import TrapServer
from tests.support.sites.trap_sites import HONEST, TRAPS

PAGES = 400
WITHIN_S = 2.0


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", seed=5, pages=PAGES, slow=0.0)) as web:
        yield web


def wait_for(is_so: Callable[[], object], longest_s: float = 60.0) -> None:
    until = time.monotonic() + longest_s
    while not is_so():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


class Running:
    """A crawl that runs."""

    def __init__(self, web: RunningWeb, out: Path, *more: str, pace_ms: int = 100) -> None:
        self.web, self.out = web, out
        self._options = (*crawl_options(web, out, pace_ms), "--no-progress", *more)
        self.process = self._start("crawl", *web.seeds(), *self._options)
        self.wait_for_requests(40)

    @staticmethod
    def _start(*words: str) -> subprocess.Popen[str]:
        return start(*words)

    def wait_for_requests(self, more: int) -> None:
        wanted = len(self.web.log()) + more
        wait_for(lambda: len(self.web.log()) >= wanted)

    def tell(self, verb: str, *words: str, status: int = 0) -> str:
        done = run(verb, str(self.out), *words)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    def end(self) -> dict[str, object]:
        out, err = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, err
        return summary_of(out)

    def events(self, name: str) -> list[dict[str, object]]:
        lines = (line for file in sorted((self.out / "events").glob("*.jsonl")) for line in file.open())
        return [event for line in lines if (event := json.loads(line))["event"] == name]

    def commands(self) -> list[dict[str, object]]:
        return self.events("operator")


def test_a_crawl_is_paused_and_resumed(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out")
    assert "paused" in crawl.tell("pause")
    time_of_pause = time.monotonic()
    wait_for(lambda: time.monotonic() > time_of_pause + WITHIN_S)
    before = len(web.log())
    paused = json.loads(crawl.tell("status", "--json"))
    assert (paused["state"], paused["forecast"]) == ("paused", None)
    assert paused["paused_seconds"] > 1.0
    assert "paused for " in crawl.tell("status")
    assert "waits for" not in crawl.tell("status")
    wait_for(lambda: time.monotonic() > time_of_pause + 2 * WITHIN_S)
    later = json.loads(crawl.tell("status", "--json"))
    assert later["seconds"] - paused["seconds"] < 0.5, "time does not run"
    assert later["rates"]["10s"]["pages"] == 0.0
    assert len(web.log()) == before
    assert "goes on" in crawl.tell("resume")
    crawl.tell("pace", "*", "0.01")
    assert crawl.end()["pages"] == PAGES
    assert [event["rule"] for event in crawl.commands()] == ["pause", "resume", "pace"]
    assert "@" in str(crawl.commands()[0]["reason"])


def test_a_pause_survives_a_kill_and_ends_with_resume(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out")
    crawl.tell("pause")
    crawl.process.send_signal(signal.SIGKILL)
    crawl.process.communicate()
    again = start("crawl", "--out", str(crawl.out), "--json", "--no-progress")
    wait_for((crawl.out / "state" / "control").exists)
    before = len(web.log())
    wait_for(lambda: json.loads(crawl.tell("status", "--json"))["state"] == "paused")
    wait_for(lambda: "stopping" in run("stop", str(crawl.out)).stdout)  # refused while the crawl begins
    _, err = again.communicate(timeout=60)
    assert again.returncode == 11
    assert "the crawl is paused" in err
    assert len(web.log()) == before
    done = run("resume", str(crawl.out), "--json", "--no-progress")
    assert summary_of(done.stdout)["pages"] == PAGES, done.stderr


def test_a_crawl_that_was_stopped_says_how_to_continue(web: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = [word for word in crawl_options(web, out, 100) if word != "--json"]
    process = start("crawl", *web.seeds(), *options, "--no-progress")
    wait_for(lambda: len(web.log()) >= 40)
    assert run("stop", str(out)).returncode == 0
    end, _ = process.communicate(timeout=60)
    assert process.returncode == 11
    assert "stopped by the operator; resume continues" in end
    assert f"  continue  gossamer resume {out}\n" in end
    assert f"stopped by the operator; 'gossamer resume {out}' continues it" in run("status", str(out)).stdout


def test_a_crawl_whose_requests_in_flight_end_is_stopping(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RunningWeb(preset("small", seed=5, pages=PAGES, slow=1.0, slow_s=4.0)) as web:
        process = start("crawl", *web.seeds(), *crawl_options(web, out, 0), "--no-progress")
        wait_for((out / "state" / "control").exists)
        wait_for(lambda: json.loads(run("status", str(out), "--json").stdout)["in_flight"])
        assert run("stop", str(out)).returncode == 0
        said = run("status", str(out)).stdout
        process.communicate(timeout=60)
    assert "stopping, process " in said
    assert "in flight" in said


def test_a_blocked_host_is_left_alone_and_an_unblocked_one_continues(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out")
    busy = max({request.host for request in web.log()}, key=lambda host: sum(r.host == host for r in web.log()))
    assert f"no more requests to {busy}; " in (said := crawl.tell("block", busy))
    assert said.rstrip().endswith("left alone")
    told_at = time.monotonic()
    wait_for(lambda: time.monotonic() > told_at + WITHIN_S)
    before = sum(request.host == busy for request in web.log())
    crawl.wait_for_requests(40)
    assert sum(request.host == busy for request in web.log()) == before
    assert "queued again" in crawl.tell("unblock", busy)
    crawl.end()
    # Links to it that were found during the block were refused; nothing else is missing.
    missing = web.judge(truth=web.truth()).missing_samples
    refused = {event["url"] for event in crawl.events("excluded_by_rule") if event["reason"] == "blocked_host"}
    assert set(missing) <= refused
    assert run("audit", str(crawl.out)).returncode == 0
    assert run("verify", str(crawl.out)).returncode == 0


def test_after_a_block_status_metrics_and_states_of_hosts_agree_and_after_its_end_too(
    web: RunningWeb, tmp_path: Path
) -> None:
    crawl = Running(web, tmp_path / "out", "--max-pages-per-host", "500")
    crawl.tell("pace", "*", "2")
    busy = max({request.host for request in web.log()}, key=lambda host: sum(r.host == host for r in web.log()))

    def shown() -> tuple[int, int, float, float, str, str]:
        """Return how many hosts are blocked and over budget in status and metrics, and the state of the host."""
        hosts = json.loads(crawl.tell("status", "--json"))["hosts"]
        metrics = render(msgspec.convert(query(CrawlFolder(crawl.out).state, "figures", within_s=10), Figures))
        found = dict(re.findall(r'gossamer_hosts{state="([a-z_]+)"} (\d+)', metrics))
        listed = {one["name"]: one["place"] for one in json.loads(crawl.tell("hosts", "--json"))["hosts"]}
        alone = json.loads(crawl.tell("hosts", busy, "--json"))["host"]["place"]
        numbers = hosts["blocked"], hosts["over_budget"], int(found["blocked"]), int(found["over_budget"])
        return *numbers, listed[busy], alone

    crawl.tell("block", busy)
    wait_for(lambda: shown()[0] == 1)
    assert shown() == (1, 0, 1, 0, "blocked", "blocked")
    crawl.tell("unblock", busy)
    wait_for(lambda: shown()[0] == 0)
    assert shown()[:4] == (0, 0, 0, 0)
    assert "blocked" not in shown()[4:]
    crawl.tell("pace", "*", "0.02")
    crawl.end()


def test_a_block_that_ends_before_it_is_committed_loses_nothing(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out")
    busy = max({request.host for request in web.log()}, key=lambda host: sum(r.host == host for r in web.log()))
    crawl.tell("pause")  # a link that is found during the block is refused
    wait_for(lambda: json.loads(crawl.tell("status", "--json"))["in_flight"] == 0)
    target(crawl.out).obey(BlockNames([busy]), "test")
    assert "queued again" in target(crawl.out).obey(UnblockNames([busy]), "test")
    crawl.tell("resume")
    assert crawl.end()["pages"] == PAGES
    assert "opted_out" not in run("retry", str(crawl.out), "--list").stdout


def test_a_block_that_ends_while_the_crawl_does_not_run_says_how_to_continue(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out")
    busy = max({request.host for request in web.log()}, key=lambda host: sum(r.host == host for r in web.log()))
    crawl.tell("block", busy)
    crawl.tell("stop")
    crawl.process.communicate(timeout=60)
    said = crawl.tell("unblock", busy)
    assert f"'gossamer retry {crawl.out} --outcome opted_out' queues what the block removed" in said
    assert "opted_out" in run("retry", str(crawl.out), "--list").stdout
    assert run("retry", str(crawl.out), "--outcome", "opted_out", "--no-progress").returncode == 0
    assert "opted_out" not in run("retry", str(crawl.out), "--list").stdout


def test_a_host_is_slowed_down_at_once_and_the_audit_knows(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out")
    busy = max({request.host for request in web.log()}, key=lambda host: sum(r.host == host for r in web.log()))
    assert "1 s between requests" in crawl.tell("pace", busy, "1")
    told = run("why", str(crawl.out), f"http://{busy}/").stdout
    assert f"the pace of 1 s set for {busy}" in told
    since = len(web.log())
    wait_for(lambda: sum(request.host == busy for request in web.log()[since:]) >= 4)
    times = [request.arrived_at for request in web.log()[since:] if request.host == busy]
    assert min(after - before for before, after in pairwise(times)) > 0.95
    crawl.tell("pace", busy, "0.02")
    since = len(web.log())
    wait_for(lambda: sum(request.host == busy for request in web.log()[since:]) >= 4)
    times = [request.arrived_at for request in web.log()[since:] if request.host == busy]
    assert min(after - before for before, after in pairwise(times[1:])) < 0.09, "quicker than the crawl began"
    crawl.end()
    assert run("audit", str(crawl.out)).returncode == 0


def test_limits_change_while_a_crawl_runs_and_are_kept(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out")
    assert "max-pages = 150" in crawl.tell("set", "max-pages", "150")
    summary = crawl.end()
    assert (summary["finished"], summary["pages"]) == ("max_pages", 150)
    assert "max-pages = 150" in (crawl.out / "crawl.toml").read_text()
    said = crawl.tell("set", "max-pages", "none")
    assert "max-pages = none; the crawl does not run: this is for its next run" in said
    assert "*: 0.1 s between requests; the crawl does not run" in crawl.tell("pace", "*", "0.1")
    assert summary_of(run("resume", str(crawl.out), "--json").stdout)["pages"] == PAGES


def test_seeds_are_added_while_a_crawl_runs_and_while_it_does_not(web: RunningWeb, tmp_path: Path) -> None:
    first, second, third = web.seeds()[:3]
    out = tmp_path / "out"
    options = (*crawl_options(web, out, 100), "--no-progress", "--scope", "host")
    process = start("crawl", first, *options)
    wait_for(lambda: len(web.log()) >= 5)
    assert "1 of 1 seed is new" in run("add", str(out), second).stdout
    process.communicate(timeout=120)
    hosts = {request.host for request in web.log()}
    assert registrable_domain(second.partition("//")[2].partition(":")[0]) in {registrable_domain(h) for h in hosts}
    assert "1 seed is added" in run("add", str(out), third).stdout
    before = len(web.log())
    assert run("resume", str(out), "--no-progress").returncode == 0
    assert len(web.log()) > before + 2


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_private_address_that_the_operator_adds_is_open_and_a_blocked_host_is_called_so(
    tmp_path: Path, workers: str
) -> None:
    with plain_site() as first, plain_site("127.0.0.2") as second, plain_site("127.0.0.3") as third:
        first.answers = {f"/{n}": Answer(f"<p>{n}</p><a href=/{n + 1}>next</a>") for n in range(400)}
        second.answers = third.answers = {"/": Answer("<p>A page of another server</p>")}
        out = tmp_path / "out"
        options = ("-o", str(out), "--politeness-ms", "50", "--json", "--no-progress", "--workers", workers)
        process = start("crawl", f"{first.url}0", *options, "--max-depth", "400")
        wait_for(lambda: len(first.requests) >= 3)
        assert "1 of 1 seed is new" in run("add", str(out), second.url).stdout
        wait_for(lambda: "/" in second.requests)
        assert run("block", str(out), "127.0.0.3").returncode == 0
        assert "127.0.0.3 is blocked: nothing is fetched there" in run("add", str(out), third.url).stdout
        assert run("stop", str(out)).returncode == 0
        process.communicate(timeout=60)
        assert "127.0.0.3 is blocked" in run("add", str(out), f"{third.url}more").stdout
        assert third.requests == []


def refused(web: RunningWeb) -> list[LoggedRequest]:
    return [request for request in web.log() if request.status == 404 and request.target != "/robots.txt"]


def test_dead_letters_are_retried_while_a_crawl_runs(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out", "--retry-wait", "0.01", pace_ms=250)
    wait_for(lambda: refused(web))
    dead = refused(web)[0]
    wait_for(lambda: dead.target in crawl.tell("retry", "--list"))
    assert "queued again" in crawl.tell("retry", "--host", dead.host)
    assert "no dead letters match" in crawl.tell("retry", "--host", "nonsense.test", status=1)
    crawl.tell("pace", "*", "0.01")
    crawl.end()
    asked = [request for request in web.log() if (request.host, request.target) == (dead.host, dead.target)]
    assert len(asked) == 2
    assert run("verify", str(crawl.out)).returncode == 0


@pytest.mark.parametrize("chosen", ["one", "all"])
def test_a_pattern_is_released_while_a_crawl_runs(tmp_path: Path, chosen: str) -> None:
    out = tmp_path / "out"
    with TrapServer(TRAPS["facets"], 100_000) as server, TrapServer(HONEST["numbered records"], 100_000) as honest:
        pace = ("--politeness-ms", "10", "--max-depth", "99")
        process = start("crawl", server.seed, honest.seed, "--out", str(out), *pace, "--json")
        wait_for(lambda: "URLs held" in run("traps", str(out)).stdout)
        name = json.loads(run("traps", str(out), "--json").stdout.splitlines()[0])["name"]
        said = run("traps", str(out), "--release", *([name] if chosen == "one" else []))
        assert "of 1 pattern released" in said.stdout, said.stderr
        wait_for(lambda: "released" in run("traps", str(out)).stdout)
        assert run("stop", str(out)).returncode == 0
        process.communicate(timeout=60)
    assert run("verify", str(out)).returncode == 0


def test_what_cannot_be_obeyed_is_one_line(web: RunningWeb, tmp_path: Path) -> None:
    crawl = Running(web, tmp_path / "out", pace_ms=500)  # it must still run at the end
    for words, part in (
        (("set", "scope", "any"), "scope cannot be changed while a crawl runs; these can: max-pages"),
        (("set", "max-pgaes", "5"), "max-pgaes: no such setting; did you mean max-pages?"),
        (("set", "max-time", "0"), "max-time = 0: every run would end at once; expected more than 0 seconds, or none"),
        (("set", "connections", "none"), "connections = none: there must be a limit; expected a number"),
        (("set", "max-pages", "many"), "max-pages = 'many': expected a whole number"),
        (("unblock", "example.org"), "example.org is not blocked"),
        (("pace", "a b", "1"), "not a pattern of hosts"),
        (("pace", "*", "-1"), "expected 0 to 86400 seconds"),
        (("add", "ftp://example.org/"), "scheme 'ftp' cannot be crawled"),
        (("resume",), "the crawl is not paused"),
    ):
        said = crawl.tell(words[0], *words[1:], status=2)
        assert part in said
        assert len(said.splitlines()) == 1
    mode = (crawl.out / "state" / "control").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    crawl.tell("stop")
    crawl.process.communicate(timeout=60)
    assert crawl.process.returncode == 11
    assert "the crawl does not run" in crawl.tell("pause", status=1)
