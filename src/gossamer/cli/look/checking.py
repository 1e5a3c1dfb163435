"""Runs a check of links: a crawl in the folder `checks` of a crawl, which only asks whether URLs are there."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from gossamer.backends.local.folder import CrawlFolder
from gossamer.cli.contact import with_contact
from gossamer.control.record import is_ledger_url
from gossamer.handover.findings.checks import FOLDER_NAME, CheckTargets, Due, check_settings, due_of
from gossamer.handover.findings.link_findings import urls_to_check
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.records import UrlRecord
from gossamer.ports import Catalog
from gossamer.reading.folder import CrawlReader
from gossamer.reading.view import CrawlView
from gossamer.settings.model import Settings
from gossamer.telemetry.text import plural, printable

_BLOCKED = "blocked.txt"


class Checks(Struct):
    """What a check was about, and its results."""

    targets: CheckTargets
    results: Catalog | None  # None: there was nothing to check, ever
    asked: int
    known: int
    promised: dict[str, str]


class CheckStoppedError(GossamerError):
    """A check was stopped before its end; the same command continues it."""

    exit_status = 11


def add_checks(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("with --broken: ask what the crawl has not fetched")
    group.add_argument("--check-external", action="store_true", help="links out of the scope of the crawl")
    group.add_argument(
        "--check-assets", action="store_true", help="images, scripts, stylesheets, media and files, also in the scope"
    )
    group.add_argument("--recheck", action="store_true", help="ask again what was answered less than a day ago")
    group.add_argument("--checks", type=Path, metavar="FOLDER", help="where results are kept (DIR/checks)")
    group.add_argument("--contact", default="", metavar="URL-OR-MAIL", help="who is asking (that of the crawl)")


def wants_checks(arguments: argparse.Namespace) -> bool:
    """Return whether a check is asked for; raise if the options do not fit together."""
    is_wanted = arguments.check_external or arguments.check_assets
    if is_wanted and not arguments.broken:
        raise UsageError("--check-external and --check-assets are for --broken; expected: gossamer links DIR --broken")
    for name in ("recheck", "checks", "contact"):
        if getattr(arguments, name) and not is_wanted:
            raise UsageError(f"--{name} is for a check; expected --check-external or --check-assets as well")
    if is_wanted and is_ledger_url(arguments.dir) and arguments.checks is None:
        raise UsageError("a ledger has no folder for the results of a check; expected --checks FOLDER as well")
    return bool(is_wanted)


@contextmanager
def checked(arguments: argparse.Namespace, crawl: CrawlView) -> Iterator[Checks]:
    """Ask what is to be checked, and yield the results."""
    if crawl.is_running:
        raise UsageError("the crawl runs; expected one that has ended, since only one program may ask a host at a time")
    if crawl.settings.region:
        raise UsageError("a crawl with --region cannot be checked; expected one without")
    folder = CrawlFolder(arguments.checks or Path(arguments.dir) / FOLDER_NAME)
    folder.check_usable()
    targets = CheckTargets(crawl, external=arguments.check_external, assets=arguments.check_assets)
    due = _due(folder, crawl, targets, is_again=arguments.recheck)
    if due.seeds:
        settings = check_settings(crawl, arguments.contact, is_again=arguments.recheck)
        _run(with_contact(settings, due.seeds), folder, due, crawl)
    if not folder.holds_crawl():
        yield Checks(targets, None, 0, due.known, due.promised)
        return
    with CrawlReader(folder.path) as results:
        yield Checks(targets, results.ledger, len(due.seeds), due.known, due.promised)


def _due(folder: CrawlFolder, crawl: CrawlView, targets: CheckTargets, *, is_again: bool) -> Due:
    urls = urls_to_check(crawl, targets)
    if not folder.holds_crawl():
        return due_of(urls, crawl, None, is_again=is_again)
    with CrawlReader(folder.path) as results:
        if results.is_running:
            raise UsageError(f"{printable(str(folder.path))}: another check runs there; expected to be the only one")
        return due_of(urls, crawl, results.ledger, is_again=is_again)


def _run(settings: Settings, folder: CrawlFolder, due: Due, crawl: CrawlView) -> None:
    """Run the crawl that asks."""
    import uvloop

    from gossamer.assembly.run import build_session
    from gossamer.runtime.session.parts import Observer
    from gossamer.telemetry.progress import Progress
    from gossamer.telemetry.screen import Screen

    print(f"gossamer: {plural(len(due.seeds), 'URL')} to check, {due.known} known", file=sys.stderr)
    time.sleep(max(0.0, due.wait_s))
    folder.path.mkdir(parents=True, exist_ok=True)
    for node in crawl.folders.found.values():
        if (node.path / _BLOCKED).is_file():
            shutil.copyfile(node.path / _BLOCKED, folder.path / _BLOCKED)
    asked = {seed.link.url for seed in due.seeds}

    def is_asked(row: UrlRecord) -> bool:
        return row.url in asked

    screen = Screen(sys.stderr)
    progress = Progress(screen, every_beat=False)
    warn = Observer(
        on_warning=lambda text: screen.print(f"warning: {printable(text, 500)}"),
        on_notice=lambda text: screen.print(f"gossamer: {printable(text, 1000)}"),
        on_beat=progress.on_beat,
    )
    session = build_session(settings, folder, due.seeds, retries=is_asked, observer=warn)
    session.open()
    summary = uvloop.run(session.run(progress=progress))
    if summary.finished in ("signal", "stopped"):
        raise CheckStoppedError("the check was stopped; the same command continues it")
