"""`gossamer diff` as a user runs it: on crawls of a site that has changed between them."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.url.forms import url_id
from tests.e2e.program import run
from tests.reading.folders import Crawled, finished, is_one_line, ledger_of, said, small_web, stopped
from tests.servers import engines
from tests.servers.plain_site import Answer, PlainSite, plain_site
from tests.servers.redis import running

__all__ = ["finished", "small_web", "stopped"]
Output = pytest.CaptureFixture[str]

WORDS = [f"word{number}" for number in range(200)]
PATHS = ("same", "slight", "other", "markup", "title", "missing", "removed", "moved", "refused", "unlinked")


def page(text: str, title: str = "A page", frame: str = "div") -> Answer:
    return Answer(f"<html><head><title>{title}</title></head><body><{frame}><p>{text}</p></{frame}></body></html>")


def home(*paths: str) -> Answer:
    return page("Home. " + " ".join(f'<a href="/{path}">{path}</a>' for path in paths))


def set_before(site: PlainSite) -> None:
    site.answers = {f"/{path}": page(f"{path} {' '.join(WORDS)}") for path in PATHS} | {"/": home(*PATHS)}
    site.answers["/markup"] = page(f"{' '.join(WORDS)}</p><h2>A heading</h2><p>{' '.join(WORDS)}")


def set_after(site: PlainSite) -> None:
    """Change the site: one page of each kind."""
    site.answers |= {
        "/": home(*[path for path in PATHS if path != "unlinked"], "fresh"),
        "/slight": page(f"slight {' '.join([*WORDS[:100], 'another', *WORDS[101:]])}"),
        "/other": page("other " + " ".join(word[::-1] for word in WORDS)),
        "/markup": Answer(site.answers["/markup"].body.replace("<div>", '<div class="wide">').replace("h2>", "h3>")),
        "/title": page(f"title {' '.join(WORDS)}", title="Another title"),
        "/missing": Answer("<p>No.", 404),
        "/removed": Answer("<p>No.", 410),
        "/moved": Answer(status=301, location="/fresh"),
        "/refused": Answer("<p>No.", 403),
        "/fresh": page(f"fresh {' '.join(WORDS[:50])}"),
    }


def crawl(site: PlainSite, out: Path, *options: str) -> None:
    done = run("crawl", site.url, "--out", str(out), "--politeness-ms", "0", "--near-dup", "off", *options)
    assert done.returncode == 0, done.stderr


class Pair(Struct):
    """Two crawls of a site."""

    site: str
    before: Path
    after: Path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("pair")
    with plain_site() as site:
        made = Pair(site.url, folder / "before", folder / "after")
        set_before(site)
        crawl(site, made.before)
        set_after(site)
        crawl(site, made.after)
    return made


def differences(capsys: Output, *words: object, status: int = 0) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the first line, and the others by the path of their URL."""
    done, out, err = said(capsys, "diff", *words, "--json")
    assert done == status, err
    head, *lines = map(json.loads, out.splitlines())
    found = {line["url"].split("/", 3)[3]: line for line in lines}
    assert len(found) == len(lines)
    return head, found


def check_changes(found: dict[str, dict[str, Any]], site: str) -> None:
    kinds = {path: line["change"] for path, line in found.items()}
    assert kinds == {
        "": "changed", "slight": "changed", "other": "changed", "title": "changed",
        "missing": "gone", "removed": "gone", "moved": "moved", "fresh": "new",
    }  # fmt: skip
    # 201 words are 197 sequences of five; a word is in five of them.
    assert found["slight"]["similarity"] == pytest.approx(192 / 202, abs=1e-4)
    assert found["other"]["similarity"] < 0.1
    assert found["title"]["similarity"] == 1.0
    assert found["moved"]["to"] == f"{site}fresh"
    assert (found["missing"]["status"], found["removed"]["status"]) == (404, 410)
    assert all(("before" in line) == (line["change"] != "new") for line in found.values())
    assert all(line["before"] < line["at"] for line in found.values() if "before" in line)


def test_every_kind_of_change_between_two_crawls_is_found(pair: Pair, capsys: Output) -> None:
    head, found = differences(capsys, pair.before, pair.after)
    check_changes(found, pair.site)
    assert head["counts"] == {
        "new": 1, "changed": 4, "gone": 2, "moved": 1, "unchanged": 1, "unchanged_text": 1, "failed": 1,
        "not_fetched": 1, "unread": 0,
    }  # fmt: skip
    assert (head["earlier"], head["later"], head["since"]) == (str(pair.before), str(pair.after), "")


def test_the_other_direction_is_the_opposite(pair: Pair, capsys: Output) -> None:
    head, found = differences(capsys, pair.after, pair.before)
    assert {path for path, line in found.items() if line["change"] == "new"} == {
        "missing", "removed", "moved", "refused", "unlinked"
    }  # fmt: skip
    assert (head["counts"]["changed"], head["counts"]["not_fetched"]) == (4, 1)


def test_the_table_has_counts_first_and_then_the_pages(pair: Pair, capsys: Output) -> None:
    status, out, err = said(capsys, "diff", pair.before, pair.after, "--top", 2)
    assert (status, err) == (0, "")
    counts, *parts = out.split("\n\n")
    assert counts.splitlines()[0] == f"{pair.before} -> {pair.after}"
    assert [line.rsplit(None, 1)[1] for line in counts.splitlines()[2:]] == ["1", "4", "2", "1", "1", "1", "1", "1"]
    assert [part.splitlines()[0] for part in parts] == ["new", "changed", "gone", "moved"]
    assert parts[1].splitlines()[-1] == "  and 2 more; --json lists all"
    assert parts[3].strip().endswith(f"{pair.site}moved -> {pair.site}fresh")


def test_crawls_of_an_unchanged_web_do_not_differ(finished: Crawled, tmp_path: Path, capsys: Output) -> None:
    copy = finished.copied(tmp_path / "copy")
    head, found = differences(capsys, finished.path, copy)
    assert found == {}
    assert head["counts"]["unchanged"] == finished.summary.pages


def test_a_crawl_that_stopped_early_has_pages_that_were_not_fetched_again(
    finished: Crawled, stopped: Crawled, capsys: Output
) -> None:
    head, found = differences(capsys, finished.path, stopped.path)
    assert {line["change"] for line in found.values()} <= {"new"}
    counts = head["counts"]
    assert counts["not_fetched"] == finished.summary.pages - (stopped.summary.pages - counts["new"]) > 0


def test_what_cannot_be_read_is_counted_and_is_exit_1(pair: Pair, tmp_path: Path, capsys: Output) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(pair.after, copy)
    for path in (copy / "archive").iterdir():
        path.unlink()
    head, found = differences(capsys, pair.before, copy, status=1)
    assert head["counts"]["unread"] == 5  # those whose content differs
    assert all("similarity" not in line for line in found.values())
    assert "INCOMPLETE: 5 pages" in said(capsys, "diff", pair.before, copy)[2]


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """One crawl with two runs, between which the site has changed."""
    out = tmp_path_factory.mktemp("twice") / "crawl"
    with plain_site() as site:
        set_before(site)
        crawl(site, out, "--cooldown-sec", "1")
        set_after(site)
        threading.Event().wait(1.1)  # the cooldown, by the clock of the program
        crawl(site, out, "--cooldown-sec", "1")
        return Pair(site.url, out, out)


def test_changes_of_one_crawl_since_a_time_or_its_last_run(twice: Pair, capsys: Output) -> None:
    head, found = differences(capsys, twice.after)
    check_changes(found, twice.site)
    assert head["counts"] == {
        "new": 1, "changed": 4, "gone": 2, "moved": 1, "unchanged": 1, "unchanged_text": 1, "failed": 1,
        "not_fetched": 1, "unread": 0,
    }  # fmt: skip
    assert differences(capsys, twice.after, "--since", head["since"]) == (head, found)
    everything = differences(capsys, twice.after, "--since", "1d")[1]
    assert {line["change"] for line in everything.values()} == {"new"}
    assert everything.keys() == {"", "same", "slight", "other", "markup", "title", "fresh", "unlinked"}
    nothing = differences(capsys, twice.after, "--since", "0s")
    assert (nothing[1], nothing[0]["counts"]["not_fetched"]) == ({}, len(everything))


def test_without_an_index_the_earlier_version_is_not_known(twice: Pair, tmp_path: Path, capsys: Output) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(twice.after, copy)
    shutil.rmtree(copy / "index")
    head, found = differences(capsys, copy, status=1)
    assert {path: line["change"] for path, line in found.items()} == {"fresh": "new"}
    assert head["counts"]["unread"] == len(PATHS)  # all but the one without a link, and the home page


def test_a_url_that_never_answered_is_not_missing_a_version(twice: Pair, tmp_path: Path, capsys: Output) -> None:
    copy, url = tmp_path / "copy", f"{twice.site}silent"
    shutil.copytree(twice.after, copy)
    with ledger_of(copy) as ledger:
        known = ledger.look_up(url_id(twice.site))
        assert known is not None
        ledger.amend(url_id(url), replace(known, url=url, outcome="timeout", status=0, visits=2, archived=None))
    head, found = differences(capsys, copy)
    assert "silent" not in found
    assert (head["counts"]["unread"], head["counts"]["failed"]) == (0, 1)


def test_a_ledger_is_compared_like_its_folder(pair: Pair, tmp_path: Path, capsys: Output) -> None:
    program = engines.valkey()
    copy = tmp_path / "copy"
    shutil.copytree(pair.after, copy)
    with running(program, tmp_path) as server:
        url = f"{server.url}/later"
        assert said(capsys, "migrate", copy, url)[0] == 0
        head, found = differences(capsys, pair.before, url)
        again = said(capsys, "diff", url, url)
    assert found == differences(capsys, pair.before, pair.after)[1]
    assert head["counts"]["changed"] == 4
    assert (again[0], is_one_line(again[2])) == (2, True)


def test_crawls_whose_urls_have_other_ids_are_refused(pair: Pair, tmp_path: Path, capsys: Output) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(pair.after, copy)
    settings = copy / "crawl.toml"
    lines = [line for line in settings.read_text("utf-8").splitlines() if not line.startswith("region =")]
    settings.write_text("\n".join(['region = [".de=eu", "*=us"]', *lines]))
    status, out, err = said(capsys, "diff", pair.before, copy)
    assert (status, out, is_one_line(err)) == (2, "", True)
    assert "expected the same --region rules" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--since", "yesterday"), "not a time; expected a time such as"),
        (("--since", "2x"), "not a time"),
        (("--since", "-2d"), "--since"),  # Python says it, or we, from 3.14 on
        (("--since", "9999-01-01"), "not in the past"),
        ((".", "--since", "1d"), "expected either --since TIME or OTHER"),
        (("--top", "-1"), "expected 0 or more"),
        (("/no/such/folder",), "no such folder"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(pair: Pair, words: tuple[str, ...], says: str, capsys: Output) -> None:
    status, out, err = said(capsys, "diff", pair.before, *words)
    assert (status, out) == (2, "")
    assert says in err
    assert is_one_line(err)


def test_the_same_folder_twice_and_what_is_no_crawl_are_refused(pair: Pair, tmp_path: Path, capsys: Output) -> None:
    link = tmp_path / "link"
    link.symlink_to(pair.before)
    for other in (pair.before, link):
        status, out, err = said(capsys, "diff", pair.before, other)
        assert (status, out, is_one_line(err)) == (2, "", True)
        assert "the same crawl twice; --since TIME compares it with itself" in err
    for words in ((tmp_path,), (tmp_path, pair.before)):
        status, out, err = said(capsys, "diff", *words)
        assert (status, out, is_one_line(err)) == (2, "", True)
        assert "not a crawl folder" in err
