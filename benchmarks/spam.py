"""How much of a planted farm is found as spam, and is any honest page?

    python -m benchmarks.spam [--first SEED] [--seeds N] [--pages N] [--documentation FOLDER]

Generated sites (`tests.support.sites.spam_sites`): eight kinds with spam and twelve honest ones that look like it,
in four languages, a farm of hosts, and honest hosts with such names; crawled by the engine in virtual time, pages
read as a worker does. Then every page of the documentation that is installed, or of FOLDER, which has a folder per
package (as `benchmarks.documentation` leaves them in `root`). Thresholds were chosen on seeds 1 to 12; figures are
from seeds 201 on.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.sites.spam_sites import HONEST, SpamSite, farm_hosts, hosting, site
from tests.support.sites.spam_sites import SPAM as SPAM_KINDS

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.dedup.minhash import minhash
from gossamer.core.frontier.frontier import Frontier
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder, ordering
from gossamer.core.ledger.tables import QUARANTINES, SPAM, spam_key
from gossamer.core.links.intake import Intake, IntakeRules
from gossamer.core.links.scope import Reach, Scope
from gossamer.core.politeness.pace import Pace
from gossamer.core.spam.hosts import MIN_TEMPLATE_PAGES, Level, SpamUse, judge_host
from gossamer.core.spam.page import doorway, judge_page
from gossamer.core.traps.quarantine import SPAM_PATTERN
from gossamer.core.url.forms import canonical, link_to, path_of
from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.rules import CrawlRules
from gossamer.model.exchanges import Exchange
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.parse.html.html import parse_html
from gossamer.runtime.workers.answers import WorkerRules, read_answer

HEADERS = [("content-type", "text/html; charset=utf-8")]
FARM_HOSTS = 30


def planted(seed: int, pages: int) -> list[SpamSite]:
    """Return a site of each kind, a farm of hosts, and honest hosts with such names."""
    names = {kind: f"{kind.replace('_', '')}{seed}.test" for kind in (*SPAM_KINDS, *HONEST)}
    sites = [site(kind, name, pages, seed * 31 + number) for number, (kind, name) in enumerate(names.items())]
    return [
        *sites,
        *farm_hosts(f"farm{seed}.test", FARM_HOSTS, seed),
        *hosting(f"hosting{seed}.test", FARM_HOSTS, seed),
    ]


def answer(task: FetchTask, bodies: Mapping[tuple[str, str], str], now: float) -> Result:
    """Return what a worker reports of a request."""
    if task.kind is not FetchKind.PAGE:
        return Result(task.id, Outcome.CLIENT_ERROR, status=404, finished_at=now)
    body = bodies[task.host, path_of(task.url)].encode()
    exchange = Exchange(task.url, Outcome.OK, status=200, headers=HEADERS, body=body, content=body, finished_at=now)
    return read_answer(task, exchange, WorkerRules())


def crawl(sites: list[SpamSite]) -> MemoryLedger:
    """Crawl sites in virtual time; return the ledger."""
    ledger, limits = MemoryLedger(), FrontierLimits(max_depth=1000)
    how = ordering(QueueOrder.BREADTH)
    engine = Crawl(
        CrawlRules(spam=SpamUse.DEMOTE, watches_traps=False),
        Frontier(limits, Pace(0.0, 1), how, "gossamer"),
        Intake(Scope(Reach.ANY, excludes=()), how, limits, IntakeRules()),
        ledger,
        EventEmitter(lambda _: None, 0.0),
    )
    bodies = {(one.host, path_of(url_of(one.host, page.path))): page.body for one in sites for page in one.pages}
    now = 1e9
    engine.restore(now, was_clean=True)
    engine.add_seeds([link_to(f"http://{one.host}/") for one in sites], now)
    for _ in range(1_000_000):
        tasks = engine.tasks(now)
        names = engine.take_resolves()
        for name in names:
            is_ours = name.endswith(".test")
            if is_ours:
                engine.learn_address(name, ("10.0.0.1",), now + 1e6, now)
            else:
                engine.fail_address(name, Outcome.DNS_NOT_FOUND, "no such name", now)
        for task in tasks:
            engine.complete(answer(task, bodies, now), now)
        if not tasks and not names and engine.why_over(now, 300.0):
            break
        now += 1.0
    engine.save_state(0.0, 0.0, now)
    return ledger


def url_of(host: str, path: str) -> str:
    """Return a URL as it is requested."""
    url = canonical(f"http://{host}{path}")
    assert url is not None
    return url


class Score:
    """Counts of what was found."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[bool, bool]] = Counter()  # is spam, was found

    def add(self, is_spam: bool, is_found: bool) -> None:
        """Count one."""
        self.counts[is_spam, is_found] += 1

    def __str__(self) -> str:
        hit, missed, false = self.counts[True, True], self.counts[True, False], self.counts[False, True]
        precision = f"{hit / (hit + false):.4f}" if hit + false else "-"
        recall = f"{hit / (hit + missed):.4f}" if hit + missed else "-"
        return f"precision {precision}, recall {recall} ({hit} found, {missed} missed, {false} false alarms)"


def judge(sites: list[SpamSite], ledger: MemoryLedger, scores: Mapping[str, Score], kinds: dict[str, Score]) -> None:
    """Compare what was found with what was planted."""
    decided = {each.host for each in ledger.records(QUARANTINES) if each.pattern == SPAM_PATTERN}
    for one in sites:
        for page in one.pages:
            row = ledger.look_up(link_to(url_of(one.host, page.path)).id)
            is_found = row is not None and row.spam is not None
            scores["pages"].add(page.is_spam, is_found)
            kinds.setdefault(one.kind, Score()).add(page.is_spam, is_found)
        scores["hosts, demoted"].add(one.is_spam, one.host in decided)
        scores["hosts, quarantined if asked to"].add(one.is_spam, _is_clear(ledger, one.host))


def _is_clear(ledger: MemoryLedger, host: str) -> bool:
    own = ledger.record(SPAM, spam_key(host, is_domain=False))
    domain = ledger.record(SPAM, spam_key(".".join(host.split(".")[-2:]), is_domain=True))
    return own is not None and judge_host(own, domain).level is Level.QUARANTINED


def documentation(folder: Path) -> Iterator[Path]:
    """Yield the pages of documentation in a folder."""
    yield from (path for path in sorted(folder.rglob("*.html")) if path.is_file() and not path.is_symlink())


def check_documentation(folders: list[Path]) -> None:
    """Judge real pages, each package as a host, and print every alarm."""
    pages = 0
    alarms: Counter[str] = Counter()
    for package in (package for folder in folders for package in sorted(folder.iterdir()) if package.is_dir()):
        templates: Counter[bytes] = Counter()
        for path in documentation(package):
            pages += 1
            document = parse_html(path.read_bytes())
            # As it is on the web: the folders of a distribution are no words of an address.
            where = str(path.relative_to(package)).rpartition("/html/")[2]
            found = judge_page(document, f"https://docs.example.org/{where}", minhash(document.visible))
            signals = list(found.signals)
            if found.template and (before := templates[found.template]) >= MIN_TEMPLATE_PAGES:
                signals.append(doorway(before))
            templates[found.template] += 1
            for signal in signals:
                alarms[signal.name] += 1
                print(f"  {path}: {signal.reason}")
    print(f"documentation: {pages} pages, {alarms.total()} alarms: {dict(alarms)}")


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=201)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--documentation", type=Path, action="append")
    arguments = parser.parse_args()
    scores = {name: Score() for name in ("pages", "hosts, demoted", "hosts, quarantined if asked to")}
    kinds: dict[str, Score] = {}
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        sites = planted(seed, arguments.pages)
        judge(sites, crawl(sites), scores, kinds)
    print(f"seeds {arguments.first} to {arguments.first + arguments.seeds - 1}, {arguments.pages} pages per site")
    for name, score in scores.items():
        print(f"{name}: {score}")
    for name, score in kinds.items():
        print(f"  pages of {name:<10} {score}")
    check_documentation(arguments.documentation or [Path("/usr/share/doc")])


if __name__ == "__main__":
    main()
