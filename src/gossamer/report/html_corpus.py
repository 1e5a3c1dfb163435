"""The part of a report's page about what was collected."""

from __future__ import annotations

from gossamer.reading.aggregates import NamedCount, SizeClass
from gossamer.report.page import binary, card, counts, safe, short
from gossamer.report.record import Report
from gossamer.report.svg import Bar, bar_chart
from gossamer.telemetry.summary import requisites_text
from gossamer.telemetry.text import agreeing, count, plural, size


def corpus_cards(report: Report) -> list[str]:
    """Return the cards."""
    corpus = report.corpus
    depths = [Bar(str(n), value, f"depth {n}: {plural(value, 'page')}") for n, value in enumerate(corpus.depths)]
    sizes = [Bar(binary(c.least), c.count, f"{_size_range(c)}: {plural(c.count, 'page')}") for c in corpus.sizes]
    spread = [NamedCount(_page_range(c), c.count) for c in corpus.pages_per_domain]
    found = [one for one in corpus.sources if one.count]
    needed = _requisites(report)
    return [
        card("Pages by depth", "<p>links followed from a seed</p>" + bar_chart("pages by depth", depths, short)),
        card("Sizes of pages", _sizes(report) + bar_chart("sizes of pages, decoded", sizes, short)),
        card("Content types", counts(corpus.content_types, "type", "pages")),
        card("Languages declared", "<p>by the pages themselves</p>" + counts(corpus.languages, "language", "pages")),
        card("Languages detected", _detected(report)),
        card("Largest domains", counts(corpus.domains, "domain", "pages")),
        card("Pages per domain", counts(spread, "pages", "domains")),
        card("How pages were found", counts(found, "from a", "pages") + _copies(report)),
        *([card("What pages need to be shown", needed)] if needed else []),
    ]


def _requisites(report: Report) -> str:
    summary = report.summary.requisites
    found = report.requisites
    if summary is None or found is None:
        return ""
    failed = [NamedCount(each.name, each.count) for each in found.failed]
    return (
        f"<p>{safe(requisites_text(summary))}</p>"
        + counts(found.content_types, "type", "requisites")
        + (counts(failed, "failed", "requisites") if failed else "")
    )


def _sizes(report: Report) -> str:
    corpus = report.corpus
    p = report.corpus.content_bytes
    return (
        f"<p>median {size(p.p50)}, mean {size(p.mean)}, 90 % below {size(p.p90)}, largest {size(p.most)}; "
        f"{count(corpus.words)} words, {corpus.words_per_page:,.0f} per page.</p>"
    )


def _detected(report: Report) -> str:
    corpus = report.corpus
    if not corpus.languages_checked:
        return '<p class="none">no text could be read: there are no pages, or the archive is elsewhere</p>'
    note = (
        f"<p>in the texts of {plural(corpus.languages_checked, 'page')}, spread over the crawl; "
        f"{count(corpus.languages_differ)} of them with another language declared</p>"
    )
    return note + counts(corpus.languages_detected, "language", "pages")


def _copies(report: Report) -> str:
    corpus = report.corpus
    cut = ", ".join(f"{count(entry.count)} by {safe(entry.name)}" for entry in corpus.truncated) or "none"
    return (
        f'<p class="after">{agreeing(corpus.duplicates, "page", "has", "have")} the content of another, '
        f"{count(corpus.near_duplicates)} nearly so. Truncated: {cut}. Spam: {plural(corpus.spam_pages, 'page')}, "
        f"{agreeing(corpus.spam_hosts, 'host', 'was', 'were')} demoted.</p>"
    )


def _size_range(c: SizeClass) -> str:
    return "empty" if c.below == 1 else f"{size(c.least)} to {size(c.below)}"


def _page_range(c: SizeClass) -> str:
    return f"{count(c.least)} to {count(c.below - 1)}"
