"""`gossamer audit DIR`: were robots.txt and the pace respected?

If not, the offending requests are listed, and the exit status is 1.
"""

from __future__ import annotations

import argparse

import msgspec

from gossamer.cli.opening import add_crawl, open_view
from gossamer.reading.requests.audit import AuditReport, audit_crawl
from gossamer.report.terminal import moment
from gossamer.telemetry.text import count, plural, printable

_SHOWN = 50


def configure(parser: argparse.ArgumentParser) -> None:
    add_crawl(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: they were not respected, or it cannot be proven."""
    from gossamer.settings.identity import robots_token_of

    with open_view(arguments) as crawl:
        report = audit_crawl(crawl, robots_token_of(crawl.settings))
    if arguments.json:
        print(msgspec.json.encode({"kept": report.is_compliant, **msgspec.to_builtins(report)}).decode())
    else:
        _print_report(report)
    return 0 if report.is_compliant else 1


def _print_report(report: AuditReport) -> None:
    gap = "" if report.min_gap_s is None else f"; smallest gap at a host {report.min_gap_s * 1000:,.1f} ms"
    print(
        f"{plural(report.requests, 'request')} to {plural(report.hosts, 'host')} in {plural(report.runs, 'run')}, "
        f"{count(report.robots_requests)} of them for robots.txt{gap}"
    )
    for note in report.notes:
        print(f"note: {printable(note, 2000)}")
    for host, number in sorted(report.own_hosts.items()):
        text = f"{plural(number, 'request')} to {printable(host)} that robots.txt does not allow"
        print(f"note: {text}: named as the operator's own (--own-host), so no violation")
    for violation in report.violations[:_SHOWN]:
        at = f"{moment(violation.at)}.{int(violation.at % 1 * 1000):03d}"
        print(f"{at} {violation.breach:<18} {printable(violation.url, 200)}: {printable(violation.detail, 200)}")
    found = sum(report.breaches.values())
    if found > _SHOWN:
        print(f"and {count(found - _SHOWN)} more; --json shows the first {count(len(report.violations))}")
    if report.is_compliant:
        print("robots.txt and pace were respected")
    elif not report.breaches:
        print("robots.txt and pace were respected as far as the events show; some are missing")
    else:
        kinds = ", ".join(f"{name} {count(number)}" for name, number in sorted(report.breaches.items()))
        print(f"VIOLATED: {kinds}")
