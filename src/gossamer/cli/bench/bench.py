"""`gossamer bench`: what does a page cost on this machine, in total and per stage?

Crawls the synthetic web (or given seeds) into a temporary folder. The server of the synthetic
web runs in its own process: its CPU is not in the figures, but with few cores it limits the
pages per second. Start-up (interpreter, imports) is counted separately.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from gossamer.cli.bench.stages import StageClock, StageProfile, installed, profile
from gossamer.cli.contact import with_contact
from gossamer.cli.options import add_options, describe, given, group_of
from gossamer.foundation.collector import make_full_collections_rare
from gossamer.model.errors import UsageError
from gossamer.runtime.watch import vitals
from gossamer.settings.load import refuse_dashboard, settings_for_new
from gossamer.settings.model import Group, Settings
from gossamer.settings.seeds import Seed, seeds_from
from gossamer.sim.running import RunningWeb
from gossamer.sim.web.web import preset
from gossamer.telemetry.summary import Summary
from gossamer.telemetry.text import count, size

PAGES = 5000
PAGES_PER_DOMAIN = 100  # with one request at a time per host, enough hosts for a full load


class BenchFigures(Struct, frozen=True):
    """What `gossamer bench --json` prints."""

    pages: int
    fetches: int
    seconds: float
    pages_per_second: float
    workers: int
    cpu_ms_per_page: float
    hub_cpu_ms_per_page: float  # from the first task to the last result; with one worker, including that worker
    worker_cpu_ms_per_page: float  # of worker processes, including their start
    start_cpu_seconds: float
    peak_private_bytes: int
    loop_stall_p99_ms: float
    loop_stall_max_ms: float
    core_wait_p99_ms: float  # not in the stall
    commit_p50_ms: float
    commit_p99_ms: float
    finished: str
    stages: StageProfile | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "[SEED…] [options]",
        ["gossamer bench", "gossamer bench --pages 20000 --stages", "gossamer bench --workers auto --json"],
    )
    group_of(parser, Group.WHAT).add_argument(
        "seed", nargs="*", metavar="SEED", help="crawl from here, like `crawl` (a synthetic web)"
    )
    group_of(parser, Group.LIMITS).add_argument("--pages", type=int, metavar="N", help=f"stop after N pages ({PAGES})")
    add_options(parser)
    group = group_of(parser, Group.OUTPUT)
    group.add_argument("--stages", action="store_true", help="CPU time per stage of a page")
    group.add_argument("--json", action="store_true", help="print the figures as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    if arguments.pages is not None and arguments.pages < 1:
        raise UsageError(f"--pages {arguments.pages}: expected 1 or more")
    figures = _measure(arguments)
    print(msgspec.json.encode(figures).decode() if arguments.json else render(figures))
    return 0 if figures.pages else 1


def _measure(arguments: argparse.Namespace) -> BenchFigures:
    pages = arguments.pages or PAGES
    with _target(arguments.seed, pages) as (seeds, values):
        sources = [("bench", {"max_pages": pages, **values}), *given(arguments)]
        settings = with_contact(settings_for_new(sources, has_domain_list=False), seeds)
        refuse_dashboard(settings, "bench")
        if arguments.stages and settings.workers != 1:
            raise UsageError("--stages measures one process; expected --workers 1")
        with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as out:
            return _crawl(settings, seeds, Path(out) / "crawl", with_stages=arguments.stages)


@contextmanager
def _target(given_seeds: list[str], pages: int) -> Iterator[tuple[list[Seed], Mapping[str, Any]]]:
    """Yield what to crawl: the given seeds, or a synthetic web with the settings that it needs."""
    if given_seeds:
        yield seeds_from(given_seeds), {}
        return
    plan = preset("plain", domains=max(10, min(200, pages // PAGES_PER_DOMAIN)), pages=pages)
    with RunningWeb(plan) as web:
        place = {"dns": web.dns_address, "allow_network": ("127.0.0.0/8",), "proxy": "none"}
        own = {**place, "politeness_ms": 0, "scope": "any"}
        yield seeds_from(web.seeds(10)), own


def _crawl(settings: Settings, seeds: list[Seed], out: Path, *, with_stages: bool) -> BenchFigures:
    import uvloop

    from gossamer.assembly.run import build_session
    from gossamer.backends.local.folder import CrawlFolder

    make_full_collections_rare()
    clock = StageClock() if with_stages else None
    start_cpu_s = vitals.cpu_seconds()
    with installed(clock) if clock is not None else nullcontext():
        session = build_session(settings, CrawlFolder(out), seeds)
        session.open()
        summary = uvloop.run(session.run())
    hub_cpu_s = vitals.cpu_seconds() - start_cpu_s
    stages = profile(clock, hub_cpu_s, summary.pages) if clock is not None else None
    return _figures(summary, settings.workers, hub_cpu_s, start_cpu_s, stages)


def _figures(
    summary: Summary, workers: int, hub_cpu_s: float, start_cpu_s: float, stages: StageProfile | None
) -> BenchFigures:
    worker_cpu_s = summary.cpu_seconds - summary.hub_cpu_seconds
    ms_per_page = 1000 / max(1, summary.pages)
    return BenchFigures(
        pages=summary.pages,
        fetches=summary.fetches,
        seconds=summary.seconds,
        pages_per_second=summary.pages_per_second or 0.0,
        workers=workers,
        cpu_ms_per_page=round(ms_per_page * (hub_cpu_s + worker_cpu_s), 4),
        hub_cpu_ms_per_page=round(ms_per_page * summary.crawl_cpu_seconds, 4),
        worker_cpu_ms_per_page=round(ms_per_page * worker_cpu_s, 4),
        start_cpu_seconds=round(start_cpu_s, 3),
        peak_private_bytes=summary.peak_private_bytes,
        loop_stall_p99_ms=summary.loop_stall_p99_ms,
        loop_stall_max_ms=summary.loop_stall_max_ms,
        core_wait_p99_ms=summary.core_wait_p99_ms,
        commit_p50_ms=summary.commit_p50_ms,
        commit_p99_ms=summary.commit_p99_ms,
        finished=summary.finished,
        stages=stages,
    )


def render(figures: BenchFigures) -> str:
    cpu = f"{figures.cpu_ms_per_page:.3f} ms per page"
    if figures.workers > 1:
        cpu += (
            f" (hub while crawling {figures.hub_cpu_ms_per_page:.3f}, {figures.workers} workers including their start "
        )
        cpu += f"{figures.worker_cpu_ms_per_page:.3f})"
    rows = [
        ("pages", f"{count(figures.pages)} in {figures.seconds:.1f} s, {count(figures.pages_per_second)} per second"),
        ("CPU", f"{cpu}; {figures.start_cpu_seconds:.2f} s to start"),
        ("memory", f"{size(figures.peak_private_bytes)} private, peak"),
        (
            "loop",
            f"stalled {figures.loop_stall_p99_ms:.1f} ms at p99 ({figures.loop_stall_max_ms:.1f} at most), "
            f"waited {figures.core_wait_p99_ms:.1f} ms for a core",
        ),
        ("commit", f"{figures.commit_p50_ms:.0f} ms at p50, {figures.commit_p99_ms:.0f} ms at p99"),
    ]
    lines = [f"  {name:<7} {text}" for name, text in rows]
    return "\n".join(lines if figures.stages is None else [*lines, "", *_stage_lines(figures.stages)])


def _stage_lines(stages: StageProfile) -> list[str]:
    """Return the profile as a table: microseconds of CPU per page, share, calls per page."""
    rows = [(name, share.us, f"{share.calls:8.2f}") for name, share in stages.stages.items()]
    rows.append(("everything else", stages.else_us, ""))
    whole_us = stages.whole_us or 1.0
    lines = [f"  {'stage':<16} {'µs/page':>9}  {'share':>6}  {'calls':>8}"]
    lines += [f"  {name:<16} {us:9.1f}  {us / whole_us:6.1%}  {calls}".rstrip() for name, us, calls in rows]
    lines.append(f"  {'total':<16} {stages.whole_us:9.1f}  100.0%")
    lines.append(f"  The clocks themselves took {stages.clock_us:.1f} µs per page; this is subtracted.")
    return lines
