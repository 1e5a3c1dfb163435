"""Does a crawl survive the death of its process? Kills it repeatedly, then compares the records.

A round is one death: `kill -9` at a random time, at a named failpoint, or with a power cut
after it (archive files are truncated to any length beyond what the ledger had committed). The
crawl is started again with the same command until it finishes by itself. Then the servers'
log, the ledger, the archive and the index must agree: nothing lost, nothing stored twice, no
more fetched twice than was on the wire, and no host contacted too early, including after
restarts. The same seed results in the same plan of deaths.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from gossamer.archive.cdxj import index_file, sorted_lines
from gossamer.archive.reader import ArchiveReader
from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.url.forms import canonical, url_id
from gossamer.foundation.failpoints import POINTS
from gossamer.model.records import UrlState
from gossamer.sim.running import RunningWeb
from gossamer.sim.web.server_judge import JudgeRules
from gossamer.sim.web.web import WebPlan, preset
from gossamer.telemetry.unplaced import UnplacedRecord, unplaced_records

DEATHS_PER_CRAWL = 6
POLITENESS_MS = 40
CONNECTIONS = 16
LONGEST_RUN_S = 120.0
_PER_PAGE = ("after_fetch", "after_archive_write", "before_report", "in_recovery")
WINDOW_PAGES = 500  # of a commit: what a power cut may cost


class Death(Struct, frozen=True):
    """How a process is to end: after a time, or at a failpoint; optionally with a power cut after it."""

    after_s: float = 0.0
    failpoint: str = ""
    cuts_power: bool = False

    def __str__(self) -> str:
        how = self.failpoint or f"kill after {self.after_s:.2f} s"
        return how + (" and a power cut" if self.cuts_power else "")


class ChaosReport(Struct):
    crawls: int = 0
    deaths: int = 0
    pages: int = 0
    refetched: int = 0
    max_refetched: int = 0  # in one crawl
    problems: list[str] = []

    def render(self) -> str:
        verdict = "nothing lost, nothing doubled, always polite" if not self.problems else "PROBLEMS"
        lines = [
            f"{self.deaths} deaths over {self.crawls} crawls of {self.pages} pages in all: {verdict}",
            f"fetched again: {self.refetched} pages in all, at most {self.max_refetched} in one crawl",
        ]
        return "\n".join(lines + self.problems)


def plan_of_deaths(rng: random.Random, count: int) -> list[Death]:
    """Return how the processes of a crawl are to end."""
    deaths = []
    for _ in range(count):
        cuts_power = rng.random() < 0.25
        if rng.random() < 0.5:
            deaths.append(Death(after_s=rng.uniform(0.2, 2.0), cuts_power=cuts_power))
        else:
            name = rng.choice(POINTS)
            times = rng.randint(1, 60) if name in _PER_PAGE else 1
            deaths.append(Death(failpoint=f"{name}:kill:{times}", cuts_power=cuts_power))
    return deaths


def run_chaos(rounds: int, folder: Path, seed: int, emit: Callable[[str], None]) -> ChaosReport:
    report = ChaosReport()
    rng = random.Random(seed)
    number = 0
    while report.deaths < rounds:
        workers = 1 + number % 2
        plan = preset("small", seed=seed + number, pages=300)
        deaths = plan_of_deaths(rng, min(DEATHS_PER_CRAWL, rounds - report.deaths))
        before = len(report.problems)
        _one_crawl(plan, deaths, workers, folder / f"crawl-{number}", rng, report)
        result = "ok" if len(report.problems) == before else "; ".join(report.problems[before:])
        emit(f"crawl {number} ({workers} workers): {len(deaths)} deaths ({', '.join(map(str, deaths))}): {result}")
        number += 1
    return report


def _one_crawl(  # noqa: PLR0917 - one call
    plan: WebPlan, deaths: list[Death], workers: int, out: Path, rng: random.Random, report: ChaosReport
) -> None:
    with RunningWeb(plan) as web:
        command = _command(web, out, workers)
        died: list[Death] = []
        for death in deaths:
            status = _run_until_death(command, death)
            if status == 0:  # it finished before its death, or only a worker died
                died.append(Death(failpoint=death.failpoint))
                break
            report.deaths += 1
            died.append(death)
            if status != -signal.SIGKILL:
                report.problems.append(f"{out.name}: exit status {status} after {death}")
            if death.cuts_power and out.exists():
                _cut_power(out, rng)
        status = _run_until_death(command, None)
        if status != 0:
            report.problems.append(f"{out.name}: exit status {status} of the last run")
        report.crawls += 1
        _check(web, out, died, workers, report)


def _command(web: RunningWeb, out: Path, workers: int) -> list[str]:
    return [
        *(sys.executable, "-m", "gossamer.cli.main", "crawl", *web.seeds()),
        *("--out", str(out), "--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "--proxy", "none"),
        *("--politeness-ms", str(POLITENESS_MS), "--connections", str(CONNECTIONS), "--workers", str(workers)),
        *("--save-interval", "60", "--max-wait", "5", "--json", "--no-progress"),
    ]


def _run_until_death(command: list[str], death: Death | None) -> int:
    """Run the crawl until it ends or is ended; return the exit status (negative: the signal)."""
    environment = {**os.environ, "GOSSAMER_FAILPOINT": death.failpoint if death else ""}
    process = subprocess.Popen(  # noqa: S603 - our own program
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        process.wait(death.after_s if death and death.after_s else LONGEST_RUN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if death and death.cuts_power:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its workers: nothing survives a power cut
    return process.returncode


def _cut_power(out: Path, rng: random.Random) -> None:
    """Truncate each archive file somewhere between what is committed and its end, as a power cut may.

    The ledger is opened as its owner does. A process that is killed while LMDB syncs its commit leaves the number of
    the commit before in the lock file, and readers believe that number as long as another reader (a worker) has
    the file open: they would see lengths that are shorter than those that were committed. A writer corrects it.
    """
    if not (out / "state" / "data.mdb").exists():
        return
    ledger = LocalLedger(out / "state")
    ledger.open()
    committed = ledger.archive_ends()
    ledger.abandon()
    for path in (out / "archive").glob("*.warc.gz*"):
        least = committed.get(path.name.removesuffix(".open"), 0)
        size = path.stat().st_size
        if size > least:
            os.truncate(path, rng.choice((least, rng.randint(least, size))))


def _check(web: RunningWeb, out: Path, deaths: list[Death], workers: int, report: ChaosReport) -> None:
    """Compare what the servers saw with ledger, archive and index."""
    max_refetches = sum(CONNECTIONS * workers + WINDOW_PAGES * death.cuts_power for death in deaths)
    problems = [*_ledger_problems(web, out), *_archive_problems(out), *_verify_problems(out)]
    verdict = web.judge(JudgeRules(politeness_s=POLITENESS_MS / 1000, slack_s=0.002))
    report.pages += verdict.pages_fetched
    if not verdict.is_polite:
        problems.append("not polite: " + verdict.render().replace("\n", "; ")[:500])
    else:
        problems += audit_problems(out, verdict.requests, had_power_cut=any(death.cuts_power for death in deaths))
    if verdict.missing:
        problems.append(f"{verdict.missing} pages lost: {', '.join(verdict.missing_samples[:3])}")
    refetched = verdict.fetched_twice.count
    report.refetched += refetched
    report.max_refetched = max(report.max_refetched, refetched)
    if refetched > max_refetches:
        problems.append(f"{refetched} pages fetched twice, {max_refetches} could have been on the wire")
    report.problems += [f"{out.name}: {problem}" for problem in problems]


def _ledger_problems(web: RunningWeb, out: Path) -> list[str]:
    ledger = LocalLedger(out / "state", is_readonly=True)
    ledger.open()
    rows = dict(ledger.urls())
    ledger.close()
    problems = []
    queued = sum(row.state is UrlState.QUEUED for row in rows.values())
    if queued:
        problems.append(f"{queued} URLs still queued in a finished crawl")
    for page in web.truth().pages:
        row = rows.get(url_id(canonical(page) or ""))
        if row is None or row.state is not UrlState.DONE or row.status != 200 or row.archived is None:
            problems.append(f"{page}: the ledger has {row.outcome if row else 'nothing'}")
    stored = Counter(row.archived for row in rows.values() if row.archived is not None)
    problems += [f"{span.file}:{span.offset}: two URLs point to it" for span, count in stored.items() if count > 1]
    return problems[:5]


def _verify_problems(out: Path) -> list[str]:
    command = [sys.executable, "-m", "gossamer.cli.main", "verify", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    return [] if done.returncode == 0 else [f"verify says: {done.stdout[-300:]} {done.stderr[-300:]}"]


def audit_problems(out: Path, requests: int, *, had_power_cut: bool) -> list[str]:
    """Return what is wrong with the audit of a crawl that the servers found polite; they saw every request."""
    command = [sys.executable, "-m", "gossamer.cli.main", "audit", str(out), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    found = json.loads(done.stdout or '{"breaches": {"no audit": 1}}')
    # A power cut may take the text of a robots.txt whose event was written: that cannot be proved any more.
    if set(found["breaches"]) - ({"robots_not_shown"} if had_power_cut else set()):
        return [f"audit accuses a polite crawl: {done.stdout[:300]} {done.stderr[-300:]}"]
    counted = found["requests"]
    return [f"audit counts {counted} requests, the servers {requests}"] if counted > requests else []


def _archive_problems(out: Path) -> list[str]:
    problems = []
    lines = list[str]()
    pages = Counter[str]()
    unplaced = unplaced_records(out / "events")  # left by a power cut; their pages were fetched again
    for path in sorted((out / "archive").iterdir()):
        if path.suffix == ".open":
            problems.append(f"{path.name}: still open")
        reader = ArchiveReader(path)
        for record in reader:
            is_page = record.type in ("response", "revisit") and record.block[9:12] == b"200"
            if is_page and UnplacedRecord(path.name, record.offset) not in unplaced:
                pages[record.target] += 1
        if reader.problem:
            problems.append(f"{path.name}: {reader.problem}")
        lines += index_file(path)
    problems += [f"{url}: stored {count} times" for url, count in pages.items() if count > 1 and _is_page(url)]
    path = out / "index" / "index.cdxj"
    index = path.read_text("utf-8").splitlines() if path.exists() else []
    if index != sorted_lines(lines):
        problems.append(f"the index has {len(index)} lines, the archive {len(lines)} records")
    return problems[:5]


def _is_page(url: str) -> bool:
    return not url.endswith("/robots.txt") and "sitemap" not in url
