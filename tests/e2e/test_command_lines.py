"""Command lines as other crawlers have them, and options that say what they mean here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.program import fetched_urls, run, summary_of
from tests.servers.plain_site import Answer, PlainSite, plain_site

PDF = "%PDF-1.4\n/A <</S /URI /URI (SITE/from-pdf)>>"
FEED = "<rss version='2.0'><channel><item><link>/from-feed</link></item></channel></rss>"
ANSWERS = {
    "/": Answer(
        "<title>t</title>" + "".join(f"<a href=/{name}>{name}</a> " for name in ("a", "t", "p", "f", "j", "u", "l"))
    ),
    "/a": Answer("<p>Some words of a page.", content_type="application/xhtml+xml"),
    "/t": Answer("plain text", content_type="text/plain"),
    "/f": Answer(FEED, content_type="application/rss+xml"),
    "/j": Answer("{}", content_type="application/json"),
    "/u": Answer("<!doctype html><title>u</title><p>a page without a type", content_type=""),
    "/l": Answer(PDF, content_type=""),
    "/from-pdf": Answer("<p>found in a PDF file"),
    "/from-feed": Answer("<p>found in a feed"),
}


@pytest.fixture
def site() -> Iterator[PlainSite]:
    with plain_site() as site:
        site.answers = {**ANSWERS, "/p": Answer(PDF.replace("SITE/", site.url), content_type="application/pdf")}
        yield site


def _crawled(
    site: PlainSite, out: Path, *options: str, is_new: bool = False
) -> tuple[set[str], dict[str, object], str]:
    """Return the paths of stored answers, the summary, and what was said."""
    done = run("crawl", site.url, "--out", str(out), "--politeness-ms", "0", "--json", *options, is_new=is_new)
    assert done.returncode == 0, done.stderr
    index = (out / "index" / "index.cdxj").read_text("utf-8").splitlines()
    stored = {json.loads(line.split(" ", 2)[2])["url"].removeprefix(site.url[:-1]) for line in index}
    return stored - {"/robots.txt"}, summary_of(done.stdout), done.stderr


def test_of_html_only_nothing_else_is_stored_or_followed(site: PlainSite, tmp_path: Path) -> None:
    stored, summary, _ = _crawled(site, tmp_path / "html", "--types", "html")
    assert stored == {"/", "/a", "/u"}
    assert (summary["pages"], summary["html_share"]) == (3, 1.0)
    assert {"/t", "/p", "/f", "/j", "/l"} <= set(site.requests)  # asked for, and cut off after the header
    assert run("verify", str(tmp_path / "html")).returncode == 0
    everything, summary, _ = _crawled(site, tmp_path / "all")
    assert everything == {"/", "/a", "/u", "/t", "/f", "/from-pdf", "/from-feed"}
    assert summary["html_share"] == round(5 / 7, 4)


def test_the_types_of_a_crawl_stay_as_they_are(site: PlainSite, tmp_path: Path) -> None:
    _crawled(site, tmp_path, "--types", "html", "-n", "1")
    again = run("crawl", site.url, "--out", str(tmp_path), "--types", "all")
    assert (again.returncode, "--types cannot change" in again.stderr) == (2, True)


def test_the_names_that_other_crawlers_use_work(site: PlainSite, tmp_path: Path) -> None:
    flags = (
        "--number",
        "2",
        "--show-progress",
        "--max-concurrency",
        "3",
        "--domain-concurrency",
        "1",
        "--save-interval",
        "9",
    )
    _, summary, told = _crawled(site, tmp_path, *flags)
    assert (summary["pages"], summary["finished"]) == (2, "max_pages")
    assert "connections = 3" in (tmp_path / "crawl.toml").read_text()
    assert "pages" in told
    assert len(fetched_urls(tmp_path)) >= 2


def test_more_workers_than_cores_are_said_to_be_processes(site: PlainSite, tmp_path: Path) -> None:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        _, _, told = _crawled(site, tmp_path / "two", "--workers", "2", is_new=True)
        _, _, quiet = _crawled(site, tmp_path / "auto", "--workers", "auto", is_new=True)
    finally:
        os.sched_setaffinity(0, cores)
    line = next(line for line in told.splitlines() if "--workers 2" in line)
    assert "process, not a thread" in line
    assert "--connections" in line
    assert "--workers" not in quiet
