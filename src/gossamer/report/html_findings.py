"""The report as a web page: broken links, redirects, titles and descriptions.

Bounded: some of each with the true total, and the command that lists all.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gossamer.report.page import breakable, card, examples, named, safe, table
from gossamer.report.record import RedirectChain, Report, SharedText
from gossamer.telemetry.text import count, plural

_NONE = '<p class="none">none</p>'


def broken_cards(report: Report) -> list[str]:
    """Return the cards about links to what is not there."""
    found = report.findings
    note = (
        f"<p>{plural(found.broken, 'URL')} with an error or without an answer, each with one page that links to it. "
        f"{_all(report, 'links', '--broken', 'lists all with all their pages')} Links out of the scope were not asked: "
        f"{_all(report, 'links', '--broken --check-external --check-assets', 'asks them')}</p>"
    )
    rows = [
        (named(one.url, 300), f"{safe(one.outcome)} {one.status or ''}".rstrip(), named(one.found_on, 300))
        for one in found.broken_examples
    ]
    inner = table(["URL", "answer", "found on"], rows, frozenset())
    return [card("Broken links", note + inner + _shown(len(rows), found.broken))]


def redirect_cards(report: Report) -> list[str]:
    """Return the cards about redirects: loops, then what ends broken, then the longest chains."""
    found = report.findings
    part = f" Of the first {count(found.redirects_followed)}," if found.redirects_followed < found.redirects else ""
    note = (
        f"<p>{plural(found.redirects, 'redirect')}.{part} {plural(found.loops, 'loop')} and "
        f"{count(found.broken_ends)} that end with an error come first, then the longest chains. "
        f"{_all(report, 'links', '--redirects', 'lists all with all their pages')}</p>"
    )
    rows = [(named(one.url, 300), _way(one), _end(one), named(one.found_on, 300)) for one in found.chains]
    inner = table(["URL", "leads to", "end", "found on"], rows, frozenset())
    return [card("Redirects", note + inner + _shown(len(rows), found.redirects))]


def title_cards(report: Report) -> list[str]:
    """Return the cards about titles and descriptions."""
    found = report.findings
    missing = f"<p>{count(found.missing_titles)} of {plural(found.html_pages, 'HTML page')}. "
    missing += f"{_all(report, 'pages', '--missing-title')}</p>"
    shared = f"<p>{plural(found.shared_titles, 'page')} with the title of another page of the same host"
    shared += (
        f", by {plural(found.titles_compared, 'different title')}. {_all(report, 'pages', '--duplicate-title')}</p>"
    )
    return [
        card("Without a title", missing + (examples(found.missing_title_examples) if found.missing_titles else _NONE)),
        card("With the title of another page", shared + _texts(found.shared_title_examples)),
        *_description_cards(report),
    ]


def _description_cards(report: Report) -> list[str]:
    found = report.findings.descriptions
    if found is None:
        out = shlex.quote(report.summary.out)
        note = (
            "<p>Not read: descriptions are in the pages, and a report at the end of a crawl does not read them. "
            f"<code>gossamer report {safe(out)} --html FILE</code> does.</p>"
        )
        return [card("Descriptions", note)]
    missing = f"<p>{count(found.missing)} of {plural(found.read, 'HTML page')}. "
    missing += f"{_all(report, 'pages', '--missing-description')}</p>"
    shared = f"<p>{plural(found.shared, 'page')} with the description of another page of the same host. "
    shared += f"{_all(report, 'pages', '--duplicate-description')}</p>"
    return [
        card("Without a description", missing + (examples(found.missing_examples) if found.missing else _NONE)),
        card("With the description of another page", shared + _texts(found.shared_examples)),
    ]


def _texts(shared: Sequence[SharedText]) -> str:
    rows = [
        (f"<td>{safe(one.text, 120)}</td>", count(one.pages), f"<td>{'<br>'.join(map(breakable, one.examples))}</td>")
        for one in shared
    ]
    return table(["text", "pages", "some of them"], rows, frozenset({1}))


def _way(one: RedirectChain) -> str:
    return f'<td class="name">{"<br>".join(breakable(url) for url in one.chain)}</td>'


def _end(one: RedirectChain) -> str:
    return "a loop" if one.is_loop else f"{safe(one.outcome) or 'not fetched'} {one.status or ''}".rstrip()


def _all(report: Report, verb: str, options: str, what: str = "lists all") -> str:
    """Return the sentence with the command that lists all of something."""
    return f"<code>gossamer {verb} {safe(shlex.quote(report.summary.out))} {options}</code> {what}."


def _shown(shown: int, known: int) -> str:
    return f"<p>{count(known - shown)} more.</p>" if known > shown else ""
