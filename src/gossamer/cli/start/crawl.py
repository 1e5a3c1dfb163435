"""`gossamer crawl`: start a crawl, or continue the one in `--out`.

Stop it with Ctrl-C; a second Ctrl-C stops at once. The same command with the same `--out`, or `gossamer resume DIR`,
continues it, and further seeds on the command line are added.
"""

from __future__ import annotations

import argparse
import gc
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.registry import open_shared
from gossamer.cli.contact import with_contact
from gossamer.cli.credentials import report_credentials
from gossamer.cli.options import add_node_options, add_options, describe, given, given_seeds, group_of, shorten
from gossamer.foundation.collector import make_full_collections_rare
from gossamer.model.errors import UsageError
from gossamer.model.events import Event, EventName, masked
from gossamer.model.figures import Figures
from gossamer.model.records import FetchKind, FetchTask, Result, UrlRecord
from gossamer.runtime.watch import vitals
from gossamer.settings.load import SERVED, settings_for_known, settings_for_new, settings_for_node
from gossamer.settings.model import Group, Settings
from gossamer.settings.regions import refuse_regions, use_regions
from gossamer.settings.seeds import Seed, default_folder
from gossamer.telemetry.summary import SUMMARY_INDENT, Summary
from gossamer.telemetry.text import plural, printable, wrapped

if TYPE_CHECKING:
    from gossamer.runtime.cluster.seat import Seat
    from gossamer.runtime.session.session import Session
    from gossamer.telemetry.screen import Screen
from gossamer.telemetry.screen import Screen

# The titles and first words of the first pages, for an operator who watches the start.
#
# Two lines per page, above the view on a terminal, and plain lines elsewhere.

FIRST_PAGES = 3
PREVIEWS = 10  # per worker: some are copies of others
_COLUMNS = 120  # of what is no terminal
_LEAST_COLUMNS = 20


class FirstPages:
    """Prints the beginning of the first pages; a result without first words costs one check."""

    def __init__(self, screen: Screen, shown: Callable[[str], str] = str) -> None:
        self._screen = screen
        self._shown = shown  # a URL as it may be shown
        self._left = FIRST_PAGES

    def __call__(self, task: FetchTask, result: Result) -> None:
        """Print a page, if it is one of the first."""
        if not result.preview or not self._left or task.kind is not FetchKind.PAGE or result.duplicate_of:
            return
        self._left -= 1
        room = self._screen.size().columns - 1 if self._screen.is_terminal else _COLUMNS
        room = max(room, _LEAST_COLUMNS)
        rest = " …" if result.words > len(result.preview.split()) else ""
        title = printable(f"{result.title or 'without a title'} · {self._shown(task.url)}", room)
        with suppress(OSError):  # the terminal is gone: no reason to stop a crawl
            self._screen.print(f"{title}\n    {printable(result.preview + rest, room - 4)}")


STATUS_STOPPED = 11
_SEED_HELP = "a URL, a bare domain, or a file with one per line, which may have scope=, depth= and metadata after tabs"
# What most people need: `gossamer crawl --help`. The rest is in --help-all.
_COMMON = (
    *("help", "help_all", "config", "seed", "scope", "include_pattern", "exclude_pattern"),
    *("max_pages", "max_depth", "max_time", "max_pages_per_host", "politeness_ms", "contact", "connections", "workers"),
    *("out", "store", "requisites", "revisit", "ledger", "ui", "progress", "json"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "SEED… [-o DIR] [options]",
        [
            "gossamer crawl example.org --contact you@example.org -n 500 -o crawls/ex",
            "gossamer crawl seeds.txt --scope host --max-time 3600 -o crawls/list",
            "gossamer crawl -o crawls/list          # continues",
        ],
    )
    add_crawl_options(parser)
    shorten(parser, _COMMON)


def add_crawl_options(parser: argparse.ArgumentParser) -> None:
    what = group_of(parser, Group.WHAT)
    what.add_argument("seed", nargs="*", metavar="SEED", help=_SEED_HELP)
    what.add_argument("-s", "--seeds", action="append", default=[], metavar="SEED", help="more seeds")
    what.add_argument("--domain-seeds-csv", type=Path, metavar="FILE", help="a CSV file with one domain per row")
    group_of(parser, Group.STORING).add_argument(
        "-o", "--out", type=Path, metavar="DIR", help="the crawl folder (./crawls/<first host>-<time>)"
    )
    group_of(parser, Group.CLUSTER).add_argument(
        "--ledger",
        metavar="URL",
        help="start or join a crawl on many machines: redis://host:port/db/NAME, "
        "postgresql://host:port/database/NAME or kafka://host:port/NAME?cassandra=host:port/keyspace",
    )
    add_node_options(parser)
    add_options(parser, is_node=True)
    add_output_options(parser)


def add_output_options(parser: argparse.ArgumentParser) -> None:
    group = group_of(parser, Group.OUTPUT)
    group.add_argument(
        "-p",
        "--progress",
        "--show-progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show progress; off a terminal a line every 50 pages (without: every 30 s)",
    )
    group.add_argument("-v", "--verbose", action="count", default=0, help="print errors; -vv every event")
    group.add_argument("-d", "--debug", action="store_true", help="print one JSON record per page")
    group.add_argument("--json", action="store_true", help="the last line is the summary as JSON")


def run(arguments: argparse.Namespace) -> int:
    seeds = given_seeds(arguments)
    report_credentials(seeds)
    if arguments.ledger:
        return _run_node(seeds, arguments)
    if arguments.label:
        raise UsageError("--label is for a node of a crawl on many machines; expected --ledger URL as well")
    if not seeds and not arguments.out:
        raise UsageError("no seeds; expected: gossamer crawl https://example.org/")
    folder = CrawlFolder(arguments.out or default_folder(seeds[0].link.host))
    folder.check_usable()
    sources = given(arguments)
    if folder.holds_crawl():
        settings = settings_for_known(folder.settings_path, sources)
    elif seeds:
        settings = settings_for_new(sources, has_domain_list=arguments.domain_seeds_csv is not None)
        refuse_regions(settings)
    else:
        raise UsageError(f"{folder.path}: contains no crawl, and no seeds were given; expected a URL as well")
    return start(with_contact(settings, seeds), folder, seeds, arguments)


def _run_node(seeds: list[Seed], arguments: argparse.Namespace) -> int:
    """Start a crawl in a ledger that nodes share, or take part in it."""
    from gossamer.assembly.access import check_access
    from gossamer.cli.cluster.node import NodeFolder, check_countries, labels_of, take_part, warn_of_labels
    from gossamer.control.record import adopted, name_in, new_record, register_seeds, warn_once

    if not seeds:
        raise UsageError(f"no seeds; to take part in a crawl: gossamer join {arguments.ledger}")
    labels_of(arguments)  # what is wrong with them must not be found after the crawl was started
    sources = given(arguments)
    settings = settings_for_new(sources, has_domain_list=arguments.domain_seeds_csv is not None)
    settings = with_contact(settings, seeds)
    check_countries(settings)
    check_access(settings, [seed.link.url for seed in seeds if not seed.is_guess], os.environ)
    shared = open_shared(arguments.ledger, warn_once)
    record = shared.start(new_record(settings, seeds))
    record = adopted(shared, record)
    name = name_in(arguments.ledger)
    settings = settings_for_node(record.settings, f"the crawl {name}", sources)
    check_countries(settings)
    use_regions(settings)
    record = register_seeds(shared, record, seeds)
    place = NodeFolder(arguments, name)
    warn_of_labels(place.label, settings)
    return take_part(
        shared, record, place, arguments.lease, lambda seat: start(settings, place.folder, seeds, arguments, seat=seat)
    )


def start(
    settings: Settings,
    folder: CrawlFolder,
    seeds: list[Seed],
    arguments: argparse.Namespace,
    *,
    retries: Callable[[UrlRecord], bool] | None = None,
    seat: Seat | None = None,
    goes_on: bool = False,
) -> int:
    """Run a crawl, or a node of one; print the summary; return the exit status."""
    is_served = any(getattr(settings, name) for name in SERVED)
    if is_served:
        from gossamer.cli.dashboard_process import Served, check_addresses, dashboard_served

        check_addresses(settings)
    gc.disable()  # modules are not garbage: 15 ms of CPU
    import uvloop

    from gossamer.assembly.run import RunPlace, build_session
    from gossamer.runtime.session.parts import Observer
    from gossamer.telemetry.progress import Progress
    from gossamer.telemetry.screen import Screen

    make_full_collections_rare()
    vitals.switch_threads_often()
    gc.enable()
    screen = Screen(sys.stderr)
    printer = _EventPrinter(arguments.verbose, screen)
    wants_progress = (arguments.progress is None or arguments.progress) and not arguments.debug
    progress = Progress(screen, every_beat=bool(arguments.progress)) if wants_progress else None
    shown = masked if settings.mask_queries else str
    first_pages = FirstPages(screen, shown) if wants_progress else None
    observer = Observer(
        partial(print_page, shown=shown) if arguments.debug else first_pages,
        sys.maxsize if arguments.debug else PREVIEWS,
        printer,
        printer.warn,
        on_beat=None if progress is None else printer.guarded(progress.on_beat),
        on_notice=printer.notify,
    )
    ledger = getattr(arguments, "ledger", "") or getattr(arguments, "url", "") if seat is not None else ""
    place = RunPlace(seat, goes_on=goes_on, ledger=ledger)
    if any(rule.identifies for rule in settings.request):
        os.umask(0o077)  # of the workers, too: what is behind a login is for its operator
    session = build_session(settings, folder, seeds, retries=retries, observer=observer, place=place)
    session.open()
    with ExitStack() as beside:
        if is_served:
            served = Served(str(folder.path), ledger)
            beside.enter_context(dashboard_served(settings, served, printer.notify, printer.warn))
        summary = uvloop.run(session.run(progress=progress))
    with suppress(OSError):  # the terminal is gone, and that stopped the crawl
        print_end(summary, folder, as_json=arguments.json, ledger=ledger)
    if not summary.run_fetches and summary.fetches:
        print(f"gossamer crawl: {_why_idle(summary, folder)}", file=sys.stderr)
    if exit_status(summary) == 1:
        print(f"gossamer crawl: no page could be fetched: {_why_empty(session, summary)}", file=sys.stderr)
    return exit_status(summary)


def _why_empty(session: Session, summary: Summary) -> str:
    """Return why a crawl has no page, in one line."""
    if failure := session.first_failure():
        return failure
    if summary.robots_disallowed:
        return f"robots.txt forbids all URLs ({summary.robots_disallowed}); 'gossamer robots URL' shows the rule"
    return f"{summary.ended_because}; '{program()} status {summary.out}' shows what is left"


def _why_idle(summary: Summary, folder: CrawlFolder) -> str:
    """Return in one line that a run has fetched nothing of a crawl that earlier runs have, and what would fetch."""
    out = shlex.quote(str(folder.path))
    limit = summary.finished.replace("_", "-")
    ways = {
        "max_pages": f"'{program()} resume {out} --{limit} N' raises the limit",
        "max_time": f"'{program()} resume {out} --{limit} N' raises the limit",
        "held": f"'{program()} traps {out} --release' queues what is held back",
        "parked": f"'{program()} hosts {out}' shows until when hosts are parked",
    }
    again = (
        f"'{program()} resume {out} --revisit' fetches known pages again when they are due, another --out crawls anew"
    )
    way = f"{ways[summary.finished]}, " if summary.finished in ways else ""
    pages = plural(summary.pages, "page")
    return f"NOTHING WAS FETCHED: {summary.ended_because}; the {pages} above are of earlier runs; {way}{again}"


def program() -> str:
    """Return how the program is called, for hints that can be pasted."""
    import shutil

    called = sys.argv[0]
    found = shutil.which("gossamer")
    is_other = found is None or Path(found).resolve() != Path(called).resolve()
    return called if Path(called).name == "gossamer" and is_other else "gossamer"


def exit_status(summary: Summary) -> int:
    if summary.finished in ("signal", "stopped", "left"):
        return STATUS_STOPPED
    return 0 if summary.pages else 1


def print_end(summary: Summary, folder: CrawlFolder, *, as_json: bool, ledger: str) -> None:
    """Print the summary, and how to continue; `ledger` is that of a node."""
    if as_json:
        print(msgspec.json.encode(summary).decode())
        return
    text = summary.render()
    if sys.stdout.isatty():
        import shutil

        text = wrapped(text, shutil.get_terminal_size().columns, SUMMARY_INDENT)
    print(f"Crawl {folder.path}")
    print(text)
    print(f"  report    {folder.path / 'report.html'}")
    if ledger:
        from gossamer.control.record import shown_url

        if summary.finished in ("signal", "stopped", "left", "max_time"):
            print(f"  continue  {program()} join {shlex.quote(shown_url(ledger))} -o {folder.path}")
    elif summary.finished in ("signal", "stopped", "parked"):
        print(f"  continue  {program()} resume {folder.path}")
    elif summary.finished in ("max_pages", "max_time") and summary.urls_queued:
        print(f"  continue  {program()} resume {folder.path} --{summary.finished.replace('_', '-')} N")


def print_page(task: FetchTask, result: Result, shown: Callable[[str], str] = str) -> None:
    """Print a page as one JSON record."""
    if task.kind is not FetchKind.PAGE or not result.content_type or result.status != 200:
        return
    record = {
        "url": shown(task.url),
        "title": result.title,
        "words": result.preview,
        "status": result.status,
        "ms": round(1000 * (result.finished_at - task.issued_at)),
        "ts": result.finished_at,
    }
    print(msgspec.json.encode(record).decode(), flush=True)


def _heartbeat(event: Event) -> str:
    return (
        f"fetched={event.fetched} enqueued={event.enqueued} errors={event.errors} "
        f"unique_domains={event.unique_domains} frontier_size={event.frontier_size} "
        f"pages_per_second={event.pages_per_second:g}"
    )


class _EventPrinter:
    """Prints events for people: only the first failure, errors and refusals, or everything."""

    _NOTABLE = frozenset(
        {
            EventName.ERROR,
            EventName.RETRY,
            EventName.HOST_PARKED,
            EventName.HOST_DEAD,
            EventName.WARNING,
            EventName.WORKER_LOST,
        }
        | {EventName.ROBOTS_UNREACHABLE, EventName.RECOVERED}
    )

    def __init__(self, level: int, screen: Screen) -> None:
        self._level = level
        self._screen = screen
        self._last_warning = ""

    def __call__(self, event: Event) -> bool:
        """Print an event if the level includes it; return whether more events are needed."""
        if self._level == 0:
            return self._print_first_failure(event)
        if event.event is EventName.WARNING and event.reason == self._last_warning:
            return True  # printed by `warn`
        if self._level > 1 or event.event in self._NOTABLE:
            status = f" {event.status}" if event.status else ""
            what = printable(event.url or event.host)
            text = _heartbeat(event) if event.event is EventName.HEARTBEAT else printable(event.reason)
            self._print(" ".join(f"{event.event}{status} {what} {text}".split()), at_once=False)
        return True

    def warn(self, text: str) -> None:
        self._last_warning = text
        self._print(f"warning: {printable(text, 500)}")

    def notify(self, text: str) -> None:
        """Print what the operator must know at once, at every level. From any thread."""
        self._print(f"gossamer: {printable(text, 1000)}")

    @staticmethod
    def guarded(show: Callable[[Figures], None]) -> Callable[[Figures], None]:
        """Return the function without the errors of a terminal that is gone."""

        def call(figures: Figures) -> None:
            with suppress(OSError):
                show(figures)

        return call

    def _print(self, line: str, *, at_once: bool = True) -> None:
        with suppress(OSError):  # the terminal is gone: no reason to stop a crawl
            self._screen.print(line, at_once=at_once)

    def _print_first_failure(self, event: Event) -> bool:
        """Print why nothing happens if the very first host is parked; return whether more events are needed."""
        if event.event is EventName.HOST_PARKED:
            line = f"{event.host}: {printable(event.reason)}; next attempt in {event.wait_s:.0f} s"
            self._print(line)
        return event.event not in (EventName.HOST_PARKED, EventName.FETCH_OK)
