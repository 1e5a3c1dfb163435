"""Is the forecast right? A week of a crawl in virtual time, with every fault; each hour is compared with what followed.

    python -m benchmarks.forecasts [--hosts 1000] [--days 7] [--seed 1] [--hours]
    python -m benchmarks.forecasts --real [--seconds 240]

The web has hosts of every kind in `SHARES`: those that answer at once, and those with a Crawl-delay, dead pages, pages
that fail once or always, time-outs, 429 with Retry-After, a robots.txt that cannot be reached for hours, hosts that die
and come back or die for good, redirects, endless sites (which a budget of pages ends), slow hosts, and hosts that
become slow. One host in 32 takes about as long as the whole crawl. At each virtual hour the time left and the
pages left are read as `status` shows them. After the end they are compared with what was left. An hour is right if
its number is within 25 %, or within ten minutes or fifty pages. Retry-After and back-off of those are shorter
than `--max-wait`: a longer wait of the last host would end the crawl early, which nobody can know before.

With `--real` a small crawl runs in real time, over loopback, with the program as it is; `status` is asked every second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace
from xxhash import xxh3_128_digest

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.url.forms import links_from
from gossamer.engine.crawl import Crawl
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.runtime.watch.forecasting import Forecasting
from gossamer.runtime.watch.gauges import Gauges
from gossamer.sim.driver import ImaginedAnswer, VirtualDriver
from gossamer.sim.running import RunningWeb
from gossamer.sim.scenarios import START, ImaginedSites, Scenario
from gossamer.sim.web.web import preset
from gossamer.telemetry.forecast import limits_of

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
MAX_WAIT_S = 300.0
WITHIN = 0.25
SLACK_S = 600.0
SLACK_PAGES = 50
SHARES = {  # of the hosts
    "plain": 0.32,
    "crawl_delay": 0.15,
    "missing": 0.08,
    "failing": 0.08,
    "timeouts": 0.05,
    "retry_after": 0.06,
    "robots_away": 0.05,
    "returns": 0.05,
    "dies": 0.03,
    "redirects": 0.05,
    "endless": 0.02,
    "slow": 0.04,
    "slows_down": 0.02,
}
LONG_EVERY = 32  # hosts
REAL_DELAY_S = 0.5
REAL_SLACK_S = 5.0
MAX_PAGES = 400  # of a host that is done early


class WeekHost(Struct, frozen=True):
    """How a host behaves for the whole crawl."""

    name: str
    kind: str
    pages: int
    delay_s: float
    fanout: int
    latency_s: float
    away_from: float  # of robots.txt, or of the whole host
    away_until: float


class WeekWeb:
    """See `gossamer.sim.driver.ImaginedWeb`. What a URL answers follows from its text."""

    def __init__(self, hosts: Sequence[WeekHost]) -> None:
        self.hosts = {host.name: host for host in hosts}
        self._number = {host.name: number for number, host in enumerate(hosts)}

    def resolve(self, host: str) -> tuple[tuple[str, ...], Outcome]:
        number = self._number.get(host)
        if number is None:
            return (), Outcome.DNS_NOT_FOUND
        return ((f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}",), Outcome.OK)

    def answer(self, task: FetchTask, now: float) -> ImaginedAnswer:
        host = self.hosts[task.host]
        is_away = host.away_from <= now < host.away_until
        latency_s = host.latency_s * (6.0 if host.kind == "slows_down" and is_away else 1.0)
        if is_away and host.kind in ("returns", "dies"):
            return ImaginedAnswer(1.0, 1.0, Result(task.id, Outcome.CONNECT_FAILED, error="refused"))
        if task.kind is FetchKind.ROBOTS:
            is_refused = is_away and host.kind == "robots_away"
            body = f"User-agent: *\nCrawl-delay: {host.delay_s:g}\n".encode() if host.delay_s > 1 else b""
            outcome = Outcome.SERVER_ERROR if is_refused else Outcome.OK
            result = Result(task.id, outcome, status=503 if is_refused else 200, robots=body)
        else:
            result = self._page(host, task)
        if result.outcome is Outcome.TIMEOUT:
            return ImaginedAnswer(0.05, 30.0, result)
        return ImaginedAnswer(latency_s / 2, latency_s, result)

    def _page(self, host: WeekHost, task: FetchTask) -> Result:
        luck = crc32(task.url.encode()) % 1000
        last = task.url.rpartition("/")[2]
        is_first = not task.attempt
        if host.kind == "missing" and last and luck < 200:
            return Result(task.id, Outcome.CLIENT_ERROR, status=404)
        if host.kind == "failing" and last and (luck < 30 or (luck < 90 and is_first)):
            return Result(task.id, Outcome.SERVER_ERROR, status=500)
        if host.kind == "timeouts" and last and (luck < 20 or (luck < 60 and is_first)):
            return Result(task.id, Outcome.TIMEOUT)
        if host.kind == "retry_after" and luck < 4 and is_first:
            return Result(task.id, Outcome.RATE_LIMITED, status=429, retry_after_s=240.0)
        if host.kind == "redirects" and last.isdigit() and luck < 250:
            target = f"http://{host.name}/to/c{last}"
            return Result(task.id, Outcome.REDIRECT, status=302, redirect_to=target)
        result = Result(task.id, Outcome.OK, status=200, content_type="text/html", content_bytes=1000)
        result.wire_bytes = 1000
        result.content_hash = xxh3_128_digest(task.url.encode())
        if last.isdigit() or not last:
            first = int(last or 0) * host.fanout + 1
            result.links = links_from(task.url, [f"/{n}" for n in range(first, min(first + host.fanout, host.pages))])
        return result


def week_hosts(count: int, days: float, seed: int) -> list[WeekHost]:
    """Return hosts of every kind, of which some take about as long as the crawl is to last."""
    draw = random.Random(seed)
    kinds = [kind for kind, share in SHARES.items() for _ in range(max(1, round(share * count)))]
    draw.shuffle(kinds)
    hosts = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        is_long = number % LONG_EVERY == 0
        delay_s = draw.choice((45.0, 60.0, 75.0)) if is_long else 1.0  # in back-off still less than `MAX_WAIT_S`
        if kind == "crawl_delay" and not is_long:
            delay_s = draw.choice((5.0, 10.0, 30.0, 60.0))
        length_s = days * DAY_S * (draw.uniform(0.85, 1.1) if is_long else draw.choice((0.01, 0.05, 0.2, 0.5)))
        pages = int(length_s / delay_s) if is_long else int(min(length_s / delay_s, MAX_PAGES))
        away_from = START + draw.uniform(0.02, 0.7) * days * DAY_S
        away_until = away_from + draw.uniform(0.005, 0.05) * days * DAY_S
        if kind == "robots_away":
            away_from, away_until = START, START + draw.uniform(0.005, 0.1) * days * DAY_S
        elif kind == "dies":
            away_until = float("inf")
        elif kind == "slows_down":
            away_until = away_from + 0.2 * days * DAY_S
        hosts.append(
            WeekHost(
                name=f"h{number}.test",
                kind=kind,
                pages=10**9 if kind == "endless" and not is_long else max(3, pages),
                delay_s=delay_s,
                fanout=2 if kind == "endless" else draw.choice((20, 40, 80)),
                latency_s=draw.uniform(4.0, 12.0) if kind == "slow" else draw.uniform(0.05, 0.8),
                away_from=away_from,
                away_until=away_until,
            )
        )
    return hosts


class Hour(Struct, frozen=True):
    """What was forecast at one moment; after the end of the crawl with what followed."""

    at_s: float
    left_s: float | None  # as it is shown
    left_pages: float  # what the queue will bring
    pages: int  # so far
    text: str
    then_s: float = 0.0
    then_pages: int = 0
    slack_s: float = SLACK_S

    @property
    def is_time_right(self) -> bool:
        if self.left_s is None:
            return False
        return abs(self.left_s - self.then_s) <= max(WITHIN * self.then_s, self.slack_s)

    @property
    def are_pages_right(self) -> bool:
        return abs(self.left_pages - self.then_pages) <= max(WITHIN * self.then_pages, SLACK_PAGES)


class Course(Struct, frozen=True):
    """A crawl with the forecasts that were made in it."""

    hours: list[Hour]
    seconds: float
    pages: int
    fetches: int
    ended: str

    def share(self, is_right: Callable[[Hour], bool]) -> float:
        """Return the share of the hours that were right."""
        return sum(map(is_right, self.hours)) / max(1, len(self.hours))


def look(crawl: Crawl, driver: VirtualDriver, max_wait_s: float) -> Hour:
    """Return what `status` would show now."""
    gauges = Gauges()
    limits = limits_of(crawl.totals)
    looks = Forecasting(crawl.frontier, gauges, lambda: limits, lambda: max_wait_s, lambda: driver.now)
    asyncio.run(looks.look())
    forecast = gauges.forecast
    to_fetch = crawl.frontier.counts.queued - gauges.over_budget_urls - gauges.parked_urls
    return Hour(
        at_s=driver.now - START,
        left_s=forecast.seconds if forecast is not None else None,
        left_pages=max(0, to_fetch) * limits.pages_per_url,
        pages=crawl.totals.pages,
        text=forecast.text if forecast is not None else "",
    )


def run(hosts: int, days: float, seed: int, max_wait_s: float = MAX_WAIT_S) -> Course:
    """Crawl to the end, and compare each hour's forecast with what followed."""
    plans = week_hosts(hosts, days, seed)
    web = WeekWeb(plans)
    seeds = [f"http://{host.name}/" for host in plans]
    limits = FrontierLimits(max_pages_per_host=max(100, int(days * DAY_S / 40)))
    scenario = Scenario(ImaginedSites(), seeds, limits, delay_s=1.0)
    crawl, _ = scenario.prepare()
    driver = VirtualDriver(crawl, web, START)
    seen: list[Hour] = []
    ended = "time"
    while ended == "time" and len(seen) < 3 * days * 24:
        ended = driver.run(until=START + (len(seen) + 1) * HOUR_S, max_wait_s=max_wait_s)
        driver.requests.clear()
        crawl_ends = ended != "time"
        if not crawl_ends:
            seen.append(look(crawl, driver, max_wait_s))
    end_s = driver.now - START
    pages = crawl.totals.pages
    hours = [replace(each, then_s=end_s - each.at_s, then_pages=pages - each.pages) for each in seen]
    return Course(hours, end_s, pages, crawl.totals.fetches, ended)


def run_real(seconds: float, seed: int) -> Course:
    """Crawl a small web on loopback with the program as it is, and ask for its status every second."""
    per_host = int(seconds / REAL_DELAY_S)
    plan = preset("rough", seed=seed, domains=8, hosts=10, pages=5 * per_host, slow=0.1)
    with RunningWeb(plan) as web, tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "crawl"
        options = ["--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "-o", str(out), "--no-progress"]
        pace = ["--politeness-ms", str(int(1000 * REAL_DELAY_S)), "--max-wait", "30", "--retry-wait", "2"]
        words = [sys.executable, "-m", "gossamer", "crawl", *web.seeds(), *options, *pace, "--json"]
        began = time.time()
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as crawl:
            seen = []
            while crawl.poll() is None:
                time.sleep(1.0)
                seen += _status_of(out, began)
            output = crawl.stdout.read() if crawl.stdout is not None else ""
        summary = json.loads(output.splitlines()[-1])
        end_s = seen[-1].at_s if seen else 0.0
    hours = [
        replace(each, then_s=end_s - each.at_s, then_pages=int(summary["pages"]) - each.pages) for each in seen[:-1]
    ]
    return Course(hours, end_s, summary["pages"], summary["fetches"], summary["finished"])


def _status_of(out: Path, began: float) -> list[Hour]:
    """Return what `status` shows of a crawl that runs; nothing before it begins and after it ends."""
    words = [sys.executable, "-m", "gossamer", "status", str(out), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    status: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    forecast = status.get("forecast")
    if not status.get("is_running") or forecast is None or not status["fetches"]:
        return []
    to_fetch = status["urls_queued"] - status["urls_over_budget"] - status["urls_parked"]
    pages_per_url = status["pages"] / max(1, status["fetches"])
    at_s = time.time() - began
    return [
        Hour(
            at_s, forecast["seconds"], to_fetch * pages_per_url, status["pages"], forecast["text"], slack_s=REAL_SLACK_S
        )
    ]


def report_real(course: Course, shows_all: bool) -> int:
    """Print what a crawl in real time forecast each second."""
    for each in course.hours if shows_all else course.hours[:: max(1, len(course.hours) // 12)]:
        left = "–" if each.left_s is None else f"{each.left_s:5.0f}"
        mark = "" if each.is_time_right else " TIME"
        print(f"{each.at_s:5.0f} s  left {left} s, was {each.then_s:5.0f} s{mark}  {each.text[:110]}")
    times = course.share(lambda hour: hour.is_time_right)
    print(
        f"{course.seconds:.0f} s in real time, {course.pages:,} pages of {course.fetches:,} fetches, ended: "
        f"{course.ended}; asked {len(course.hours)} times: time left right in {100 * times:.1f} %"
    )
    return 0 if times >= 0.9 else 1


def main() -> int:
    """Run a crawl; print each hour on request, and how many were right."""
    parser = argparse.ArgumentParser(prog="forecasts", description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-wait", type=float, default=MAX_WAIT_S, help="for a host, before the crawl ends")
    parser.add_argument("--hours", action="store_true", help="print every hour")
    parser.add_argument("--real", action="store_true", help="a small crawl in real time, over loopback")
    parser.add_argument("--seconds", type=float, default=240.0, help="how long it takes, about")
    arguments = parser.parse_args()
    began = time.monotonic()
    if arguments.real:
        return report_real(run_real(arguments.seconds, arguments.seed), arguments.hours)
    course = run(arguments.hosts, arguments.days, arguments.seed, arguments.max_wait)
    for hour in course.hours if arguments.hours else []:
        marks = ("" if hour.is_time_right else " TIME") + ("" if hour.are_pages_right else " PAGES")
        left = "–" if hour.left_s is None else f"{hour.left_s / HOUR_S:7.1f}"
        print(
            f"{hour.at_s / HOUR_S:6.0f} h  left {left} h, was {hour.then_s / HOUR_S:7.1f} h; "
            f"pages {hour.left_pages:8.0f}, was {hour.then_pages:8d}{marks}  {hour.text[:110]}"
        )
    times = course.share(lambda hour: hour.is_time_right)
    pages = course.share(lambda hour: hour.are_pages_right)
    print(
        f"{arguments.hosts:,} hosts, {course.seconds / DAY_S:.1f} days, {course.pages:,} pages of {course.fetches:,} "
        f"fetches, ended: {course.ended}; {len(course.hours)} hours: time left right in {100 * times:.1f} %, "
        f"pages left in {100 * pages:.1f} %; {time.monotonic() - began:.0f} s"
    )
    return 0 if times >= 0.9 and pages >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
