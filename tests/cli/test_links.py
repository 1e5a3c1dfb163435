"""`gossamer links` as a user runs it: on a site with broken links, redirects, loops, external links and orphans."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.crawled import Crawled
from tests.e2e.program import run
from tests.reading.folders import is_one_line, owned, said
from tests.servers import engines
from tests.servers.plain_site import Answer, plain_site
from tests.servers.redis import running

Output = pytest.CaptureFixture[str]

HOSTILE = "red\u202eetalp\u2066x"  # other control characters are no part of a text
OTHER = "http://other.example/page"


def page(*links: tuple[str, str]) -> Answer:
    anchors = " ".join(f'<a href="{to}">{text}</a>' for to, text in links)
    return Answer(f"<html><head><title>A page</title></head><body><p>Some words. {anchors}</p></body></html>")


def answers(site: str) -> dict[str, Answer]:
    return {
        "/robots.txt": Answer(
            f"User-agent: *\nDisallow: /private\nSitemap: {site}sitemap.xml\n", content_type="text/plain"
        ),
        "/sitemap.xml": Answer(
            '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
            f"<url><loc>{site}lonely</loc></url><url><loc>{site}a</loc></url><url><loc>{site}selfish</loc></url></urlset>",
            content_type="application/xml",
        ),
        "/": page(
            *[("/a", "a"), ("/missing", "gone"), ("/gone?x=1#part", HOSTILE), ("/old", "moved"), ("/loop1", "round")],
            *[("/self", "itself"), ("/chain", "far"), ("/private", "secret"), (OTHER, "outside"), ("/out", "leaves")],
        ),
        "/a": page(("/missing", "gone, too"), ("/", "home"), (OTHER, "=1+1"), ("http://third.example/", "third")),
        "/gone?x=1": Answer("<p>No.", 410),
        "/old": Answer(status=301, location="/new"),
        "/new": page(("/", "home")),
        "/loop1": Answer(status=302, location="/loop2"),
        "/loop2": Answer(status=302, location="/loop1"),
        "/self": Answer(status=302, location="/self"),
        "/chain": Answer(status=301, location="/chain2"),
        "/chain2": Answer(status=301, location="/missing"),
        "/out": Answer(status=301, location=OTHER),
        "/private": page(),
        "/lonely": page(("/", "home")),
        "/selfish": page(("/selfish", "me"), ("/to-selfish", "me, again")),
        "/to-selfish": Answer(status=301, location="/selfish"),
    }


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with plain_site() as site:
        site.answers = answers(site.url)
        out = tmp_path_factory.mktemp("links") / "crawl"
        local = f"http://localhost:{site.server.server_port}"
        site.answers |= {"/local": page((f"{local}/beside", "beside")), "/beside": page(("/local", "back"))}
        seeds = out.with_name("seeds.txt")
        seeds.write_text(f"{site.url}\n{local}/local\tscope=host\n", "utf-8")
        done = run("crawl", str(seeds), "--out", str(out), "--politeness-ms", "0", "--near-dup", "off")
        assert done.returncode == 0, done.stderr
        yield Crawled(site.url, out)


def found(capsys: Output, crawled: Crawled, *words: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return crawled.answer(capsys, "links", *words)


def test_every_broken_link_is_found_with_its_pages_and_its_chain(crawled: Crawled, capsys: Output) -> None:
    head, lines = found(capsys, crawled, "--broken")
    seen = {(line["to"], line["from"], line["text"]): (line["outcome"], line["status"]) for line in lines}
    assert seen == {
        ("/missing", "/", "gone"): ("client_error", 404),
        ("/missing", "/a", "gone, too"): ("client_error", 404),
        ("/gone?x=1", "/", HOSTILE): ("client_error", 410),
        ("/loop1", "/", "round"): ("redirect_loop", 302),
        ("/self", "/", "itself"): ("redirect_loop", 302),
        ("/chain", "/", "far"): ("client_error", 404),
    }
    chains = {line["to"]: (line["chain"], line["loop"]) for line in lines}
    assert chains["/chain"] == (["/chain2", "/missing"], False)
    assert chains["/loop1"] == (["/loop2", "/loop1"], True)
    assert chains["/self"][1] is True
    assert chains["/missing"] == ([], False)
    assert head["counts"] == {"targets": 5, "links": 6, "pages": 2, "not_checked": 0}
    assert {(each["outcome"], each["status"]): (each["targets"], each["links"]) for each in head["outcomes"]} == {
        ("client_error", 404): (2, 3),
        ("client_error", 410): (1, 1),
        ("redirect_loop", 302): (2, 2),
    }
    assert head["pages_read"] == 7


def test_links_of_the_head_and_what_is_no_url_are_broken_links_too(capsys: Output, tmp_path: Path) -> None:
    with plain_site() as site:
        head = "<link rel=canonical href=/lost><meta http-equiv=refresh content='9;url=/later'>"
        body = "<a href='http://[::bad/'>x</a><iframe src=/frame></iframe><svg><a xlink:href=/drawn>y</a></svg>"
        site.answers = {"/": Answer(f"<html><head><title>t</title>{head}</head><body>{body}</body></html>")}
        out = tmp_path / "crawl"
        assert run("crawl", site.url, "--out", str(out), "--politeness-ms", "0").returncode == 0
        _, lines = Crawled(site.url, out).answer(capsys, "links", "--broken")
    assert {(line["to"], line["outcome"], line["element"]) for line in lines} == {
        ("http://[::bad/", "bad_url", "a"),
        *((path, "client_error", "head") for path in ("/lost", "/later")),
        *((path, "client_error", "a") for path in ("/frame", "/drawn")),
    }


def test_links_to_redirects_say_where_they_end(crawled: Crawled, capsys: Output) -> None:
    _, lines = found(capsys, crawled, "--redirects")
    ends = {line["to"]: (line["chain"], line["outcome"], line["status"]) for line in lines}
    assert ends == {
        "/old": (["/new"], "ok", 200),
        "/loop1": (["/loop2", "/loop1"], "redirect_loop", 302),
        "/chain": (["/chain2", "/missing"], "client_error", 404),
        "/out": ([OTHER], "", 0),
        "/to-selfish": (["/selfish"], "ok", 200),
    }


def test_external_links_are_counted_by_domain(crawled: Crawled, capsys: Output) -> None:
    head, lines = found(capsys, crawled, "--external")
    assert sorted((line["to"], line["from"]) for line in lines) == [
        (OTHER, "/"), (OTHER, "/a"), ("http://third.example/", "/a"),
    ]  # fmt: skip
    assert head["counts"] == {"targets": 2, "links": 3, "pages": 2, "not_checked": 0}
    _, out, _ = said(capsys, "links", crawled.path, "--external")
    assert "other.example\n  1 URL, 2 links on 2 pages\n" in out
    assert out.index("other.example") < out.index("third.example")


@pytest.mark.parametrize("question", ["--broken", "--redirects", "--external"])
def test_links_are_sorted_by_target_and_page(crawled: Crawled, capsys: Output, question: str) -> None:
    _, lines = found(capsys, crawled, question)
    listed = [(line["to"], line["from"]) for line in lines]
    assert len(listed) > 2
    assert listed == sorted(listed)


def test_who_links_to_a_url_is_listed_for_known_and_unknown_ones(crawled: Crawled, capsys: Output) -> None:
    _, lines = found(capsys, crawled, "--to", f"{crawled.site}missing#part")
    assert [(line["from"], line["text"]) for line in lines] == [("/", "gone"), ("/a", "gone, too")]
    status, out, err = said(capsys, "links", crawled.path, "--to", OTHER)
    assert (status, "links to it: 2 (on 2 pages)" in out) == (0, True)
    assert err == f"note: {OTHER} was never queued in this crawl\n"


def test_orphans_are_pages_to_which_no_other_page_leads(crawled: Crawled, capsys: Output) -> None:
    head, lines = found(capsys, crawled, "--orphans")
    assert [(line["url"], line["found_via"], line["parent"]) for line in lines] == [
        ("/lonely", "sitemap", "/sitemap.xml"), ("/selfish", "sitemap", "/sitemap.xml"),
    ]  # fmt: skip
    assert head["orphans"] == 2
    _, out, _ = said(capsys, "links", crawled.path, "--orphans", "--limit", "1")
    assert "links to: 2\n" in out
    assert "and 1 more" in out


def test_a_table_begins_with_counts_and_is_limited(crawled: Crawled, capsys: Output) -> None:
    status, out, err = said(capsys, "links", crawled.path, "--broken", "--limit", "1")
    assert (status, err) == (1, "")
    lines = out.splitlines()
    assert lines[1] == "broken links: 6 (5 URLs, on 2 pages)"
    assert f"{crawled.site}missing\n  client_error 404; 2 links on 2 pages\n" in out
    assert "    and 1 more" in out
    assert lines[-1] == "and 4 more; --limit 0 shows all"
    _, out, _ = said(capsys, "links", crawled.path, "--broken", "--limit", "0")
    assert "more;" not in out
    assert out.count("  a loop: the redirects never end\n") == 2


@pytest.mark.parametrize(("question", "status"), [("--broken", 1), ("--redirects", 0), ("--orphans", 0)])
def test_a_reader_that_has_had_enough_changes_no_exit_status(crawled: Crawled, question: str, status: int) -> None:
    assert crawled.unread("links", question, "--csv") == (status, b"")


def test_control_characters_of_anchor_texts_are_escaped(crawled: Crawled, capsys: Output) -> None:
    for words in (("--limit", "0"), ("--json",)):
        _, out, _ = said(capsys, "links", crawled.path, "--broken", *words)
        assert "\\u202e" in out
        assert "\u202e" not in out
        assert "\u2066" not in out


def test_csv_has_a_header_and_no_formulas(crawled: Crawled, capsys: Output, tmp_path: Path) -> None:
    target = tmp_path / "external.csv"
    status, out, err = said(capsys, "links", crawled.path, "--external", "-o", target)
    assert (status, out, err) == (0, "", f"3 rows written to {target}\n")
    rows = list(csv.DictReader(io.StringIO(target.read_text("utf-8"), newline="")))
    assert sorted(row["text"] for row in rows) == ["'=1+1", "outside", "third"]
    assert list(rows[0])[:3] == ["to", "from", "text"]
    status, out, _ = said(capsys, "links", crawled.path, "--external", "--csv")
    assert out.encode() == target.read_bytes()
    packed = tmp_path / "broken.jsonl.gz"
    said(capsys, "links", crawled.path, "--broken", "-o", packed)
    assert len(gzip.decompress(packed.read_bytes()).splitlines()) == 1 + 6


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "one of the arguments --broken --redirects --external --to --orphans is required"),
        (["--broken", "--orphans"], "not allowed with argument --broken"),
        (["--broken", "--limit", "-1"], "--limit -1: expected 0 or more"),
        (["--broken", "-o", "list.txt"], "expected a name that ends with .csv or .jsonl"),
        (["--to", "ftp://x.example/"], "expected http or https"),
    ],
)
def test_wrong_options_are_one_line(crawled: Crawled, capsys: Output, words: list[str], expected: str) -> None:
    status, out, err = said(capsys, "links", crawled.path, *words)
    assert (status, out) == (2, "")
    assert expected in err
    assert is_one_line(err)


def test_a_folder_that_is_no_crawl_is_refused(tmp_path: Path, capsys: Output) -> None:
    status, out, err = said(capsys, "links", tmp_path, "--broken")
    assert (status, out) == (2, "")
    assert is_one_line(err)


def test_a_crawl_without_pages_has_no_links(tmp_path: Path, capsys: Output) -> None:
    with plain_site() as site:
        done = run("crawl", site.url, "--out", str(tmp_path / "empty"), "--politeness-ms", "0")
    assert "no page could be fetched" in done.stderr
    for question in ("--broken", "--redirects", "--external", "--orphans"):
        status, out, err = said(capsys, "links", tmp_path / "empty", question)
        assert (status, err) == (0, "")
        assert "0 pages with 0 links read" in out


def test_a_crawl_that_runs_can_be_asked(crawled: Crawled, capsys: Output) -> None:
    with owned(crawled.path):
        head, _ = found(capsys, crawled, "--broken")
    assert head["counts"]["links"] == 6


def test_a_ledger_is_asked_like_its_folder(crawled: Crawled, tmp_path: Path, capsys: Output) -> None:
    program = engines.valkey()
    copy = tmp_path / "copy"
    shutil.copytree(crawled.path, copy)
    with running(program, tmp_path) as server:
        url = f"{server.url}/later"
        assert said(capsys, "migrate", copy, url)[0] == 0
        for question in ("--broken", "--external", "--orphans"):
            _, out, _ = said(capsys, "links", crawled.path, question, "--json")
            status, shared, err = said(capsys, "links", url, question, "--json")
            assert (status, err) == (1 if question == "--broken" else 0, "")
            assert sorted(shared.splitlines()[1:]) == sorted(out.splitlines()[1:])
            assert len(out.splitlines()) > 2
