"""With `--requisites` what pages need to be shown is fetched, stored, counted and explained; judged by the servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from gossamer.archive.reader import ArchiveReader
from gossamer.sim.web.server_judge import JudgeRules
from gossamer.sim.web.web import preset
from tests.e2e.program import crawl, crawl_options, run, summary_of, survive
from tests.servers.plain_site import Answer, PlainSite, plain_site
from tests.servers.web import RunningWeb

CSS = "text/css"
DEATHS = ("after_archive_write:kill:20", "after_fetch:kill:30", "after_archive_write:kill:41", "in_recovery:kill:5")
PNG = "image/png"


@pytest.fixture(scope="module")
def styled() -> Iterator[RunningWeb]:
    with RunningWeb(preset("styled", robots_rules=0.5, redirects=0.0)) as web:
        yield web


@pytest.fixture
def site() -> Iterator[PlainSite]:
    with plain_site() as site:
        yield site


def needed(web: RunningWeb, pages: frozenset[str] | None = None) -> frozenset[str]:
    return web.web.requisites(web.truth().pages if pages is None else pages)


def asked(web: RunningWeb) -> list[str]:
    """The URLs that the servers answered, without robots.txt, one entry per request."""
    port = web.web.port
    return [f"http://{each.host}:{port}{each.target}" for each in web.log() if each.target != "/robots.txt"]


def stored(out: Path) -> dict[str, str]:
    """By URL, the purpose of the records in the archive."""
    records = (record for path in sorted((out / "archive").glob("*.warc.gz")) for record in ArchiveReader(path))
    answers = [record for record in records if record.type in ("response", "revisit")]
    return {
        each.target: each.fields.get("gossamer-purpose", "") for each in answers if "/robots.txt" not in each.target
    }


def verified(out: Path | str) -> None:
    done = run("verify", str(out))
    assert done.returncode == 0, done.stdout + done.stderr


def site_crawl(site: PlainSite, out: Path, *more: str, status: int = 0) -> dict[str, Any]:
    done = run("crawl", site.url, "--requisites", "--politeness-ms", "0", "-o", str(out), "--json", *more)
    assert done.returncode == status, done.stderr
    return summary_of(done.stdout)


def styled_page(*more: str) -> Answer:
    return Answer(f"<title>t</title><link rel=stylesheet href=/s.css>{''.join(more)}<p>Text of the page.")


# -- what users do -----------------------------------------------------------------------------------


def test_everything_that_pages_need_is_fetched_once_and_stored(styled: RunningWeb, tmp_path: Path) -> None:
    styled.forget()
    out = tmp_path / "c"
    summary = crawl(styled, out, 5, "--requisites")
    expected, pages = needed(styled), styled.truth().pages
    requests = asked(styled)
    assert len(requests) == len(set(requests))
    assert {url for url, purpose in stored(out).items() if purpose == "requisite"} == expected
    assert (summary["pages"], summary["requisites"]["stored"]) == (len(pages), len(expected))
    assert summary["requisites"]["queued"] == 0
    verdict = styled.judge(JudgeRules(politeness_s=0.005))
    assert verdict.is_clean, verdict.render()
    verified(out)
    assert run("audit", str(out)).returncode == 0


def test_a_package_for_replay_has_them_in_archive_and_index(styled: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "c"
    crawl(styled, out, 0, "--requisites")
    assert run("export", str(out), "--format", "wacz", "-o", str(tmp_path / "c.wacz")).returncode == 0
    index = run("export", str(out), "--format", "cdxj").stdout
    assert all(f'"url": "{url}"' in index for url in needed(styled))
    pages = ZipFile(tmp_path / "c.wacz").read("pages/pages.jsonl").decode().splitlines()[1:]
    assert {json.loads(line)["url"] for line in pages} == styled.truth().pages
    documents = run("export", str(out), "--format", "jsonl").stdout.splitlines()
    assert {json.loads(line)["url"] for line in documents} == styled.truth().pages


def test_without_the_option_nothing_of_it_is_requested_or_recorded(styled: RunningWeb, tmp_path: Path) -> None:
    styled.forget()
    summary = crawl(styled, tmp_path / "c", 0)
    assert summary["requisites"] is None
    assert not [url for url in asked(styled) if "/assets/" in url or "/img/" in url]
    events = "".join(path.read_text() for path in (tmp_path / "c" / "events").glob("*.jsonl"))
    assert "requisite" not in events


def test_why_and_missing_explain_a_requisite(site: PlainSite, tmp_path: Path) -> None:
    site.answers = {
        "/": styled_page("<img src=/private/a.png><img src=/gone.png><img src=/ads/b.png>"),
        "/robots.txt": Answer("User-agent: *\nDisallow: /private/", content_type="text/plain"),
        "/s.css": Answer("a { background: url(back.png) }", content_type=CSS),
        "/back.png": Answer("png", content_type=PNG),
    }
    out = tmp_path / "c"
    summary = site_crawl(site, out, "--exclude-pattern", "/ads/")
    assert summary["requisites"] == {
        **{"stored": 2, "bytes": 34, "queued": 0, "failed": 1, "denied": 1, "refused": 1, "cut": 0}
    }
    why = run("why", str(out), f"{site.url}back.png").stdout
    assert f"named by the stylesheet {site.url}s.css" in why
    assert f"named by the page {site.url}" in why
    assert "as a requisite of pages: done, ok 200" in why
    assert "exclude_pattern (/ads/, needed by a page)" in run("why", str(out), f"{site.url}ads/b.png").stdout
    assert "line 2: Disallow: /private/" in run("why", str(out), f"{site.url}private/a.png").stdout
    missing = {line["url"]: line for line in listed(out)}
    assert {url.removeprefix(site.url): (line["kind"], line["outcome"]) for url, line in missing.items()} == {
        "private/a.png": ("requisite", "robots_denied"),
        "gone.png": ("requisite", "client_error"),
        "ads/b.png": ("requisite", "requisite_refused"),
    }
    assert {line["referrer"] for line in missing.values()} == {site.url}
    retry = run("retry", str(out), "--list").stdout
    assert f"client_error 404 {site.url}gone.png [requisite]" in retry


def listed(out: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in run("missing", str(out), "--json").stdout.splitlines()]
    return [line for line in lines if "url" in line]


# -- pages and requisites with the same URL ----------------------------------------------------------


def test_a_page_that_is_also_named_as_an_image_is_still_a_page(site: PlainSite, tmp_path: Path) -> None:
    site.answers = {
        "/": Answer('<title>t</title><img src="/page.html"><a href="/page.html">page</a><p>Home.'),
        "/page.html": Answer('<title>p</title><p>A page.<a href="/deep.html">on</a><img src="/">'),
        "/deep.html": Answer("<title>d</title><p>Deep in the site."),
    }
    summary = site_crawl(site, tmp_path / "c")
    assert (summary["pages"], summary["urls_seen"], summary["finished"]) == (3, 3, "exhausted")
    assert site.requests.count("/page.html") == 2  # as a requisite, which came first, and as a page
    assert site.requests.count("/") == 1  # a page that is stored is not fetched again as a requisite
    verified(tmp_path / "c")


def test_a_requisite_leads_to_no_links(site: PlainSite, tmp_path: Path) -> None:
    site.answers = {
        "/": Answer('<title>t</title><object data="/frame.html"></object><img src="/i.svg"><p>Text.'),
        "/frame.html": Answer('<a href="/hidden.html">x</a><img src="/hidden.png">'),
        "/i.svg": Answer('<svg><image href="/hidden.svg"/></svg>', content_type="image/svg+xml"),
    }
    summary = site_crawl(site, tmp_path / "c")
    assert (summary["pages"], summary["requisites"]["stored"]) == (1, 2)
    assert not [path for path in site.requests if "hidden" in path]


def test_redirects_of_requisites_are_followed_and_bounded(site: PlainSite, tmp_path: Path) -> None:
    site.answers = {"/": styled_page("<img src=/0>"), "/s.css": Answer(status=302, location="/real.css")}
    site.answers["/real.css"] = Answer("a { background: url(/b.png) }", content_type=CSS)
    site.answers["/b.png"] = Answer("png", content_type=PNG)
    site.answers |= {f"/{n}": Answer(status=301, location=f"/{n + 1}") for n in range(9)}
    summary = site_crawl(site, tmp_path / "c")
    assert summary["requisites"]["stored"] == 2
    assert "/5" in site.requests
    assert "/6" not in site.requests
    assert f"{site.url}s.css" in stored(tmp_path / "c")
    verified(tmp_path / "c")


# -- limits ------------------------------------------------------------------------------------------


def test_the_limit_per_page_bounds_what_stylesheets_name_too(site: PlainSite, tmp_path: Path) -> None:
    sheet = "".join(f'@import "/{n}.css"; a {{ background: url(/{n}.png) }}' for n in range(30))
    site.answers = {
        "/": styled_page("".join(f"<img src=/i{n}.png>" for n in range(4))),
        "/s.css": Answer(sheet, content_type=CSS),
    }
    for n in range(30):
        more = "".join(f'@import "/{n}-{m}.css";' for m in range(30))
        site.answers[f"/{n}.css"] = Answer(more, content_type=CSS)
    summary = site_crawl(site, tmp_path / "c", "--max-requisites-per-page", "12")
    assert len(site.requests) - 2 <= 12
    counts = summary["requisites"]
    assert counts["stored"] + counts["failed"] <= 12
    assert counts["cut"] == (60 - 7) + 7 * 30  # of the stylesheet, and of each of those that it imports
    (cut,) = [line for line in run("missing", str(tmp_path / "c")).stdout.splitlines() if "53 URLs" in line]
    assert "requisites_cut max_requisites_per_page" in cut


@pytest.mark.parametrize("limit", ["--max-pages", "--max-pages-per-host"])
def test_a_limit_of_pages_does_not_concern_requisites(styled: RunningWeb, tmp_path: Path, limit: str) -> None:
    out = tmp_path / "c"
    seed = styled.seeds()[0]
    summary = crawl(styled, out, 0, "--requisites", limit, "3", seeds=[seed])
    assert (summary["pages"], summary["finished"]) == (3, "max_pages" if limit == "--max-pages" else "budgets")
    kinds = stored(out)
    pages = frozenset(url for url, purpose in kinds.items() if not purpose and "sitemap" not in url)
    assert {url for url, purpose in kinds.items() if purpose} == needed(styled, pages)
    assert summary["urls_queued"] > 0
    assert summary["requisites"]["queued"] == 0
    verified(out)


def test_what_is_left_at_the_time_limit_is_fetched_by_resume(styled: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "c"
    summary = crawl(styled, out, 200, "--requisites", "--max-time", "1", "--max-pages", "1", seeds=styled.seeds()[:1])
    assert summary["finished"] == "max_time"
    assert summary["requisites"]["queued"] > 0
    done = run("resume", str(out), "--max-time", "60", "--politeness-ms", "0", "--json")
    after = summary_of(done.stdout)
    assert (after["finished"], after["requisites"]["queued"], after["pages"]) == ("max_pages", 0, 1)
    assert after["requisites"]["stored"] > summary["requisites"]["stored"]
    verified(out)


# -- faults ------------------------------------------------------------------------------------------


def test_a_crawl_that_is_killed_again_and_again_has_every_requisite_once(styled: RunningWeb, tmp_path: Path) -> None:
    styled.forget()
    out = tmp_path / "c"
    options = [*styled.seeds(), *crawl_options(styled, out, 0), "--requisites", "--connections", "4"]
    survive(["crawl", *options], DEATHS)
    expected = needed(styled)
    assert {url for url, purpose in stored(out).items() if purpose == "requisite"} == expected
    requests = [url for url in asked(styled) if url in expected]
    assert len(requests) - len(set(requests)) <= 4 * len(DEATHS)  # what was on the wire when it was killed
    verified(out)


def test_a_lost_ledger_is_rebuilt_with_requisites(styled: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "c"
    before = crawl(styled, out, 0, "--requisites")
    for path in (out / "state").iterdir():
        if path.is_file():
            path.unlink()
    done = run("verify", str(out), "--mend")
    assert done.returncode == 0, done.stdout + done.stderr
    after = summary_of(run("resume", str(out), "--json").stdout)
    assert (after["pages"], after["requisites"]) == (before["pages"], before["requisites"])
    verified(out)


def test_resume_can_fetch_what_pages_of_an_earlier_run_need(styled: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "c"
    seed = styled.seeds()[0]
    crawl(styled, out, 0, "--max-pages", "4", seeds=[seed])
    styled.forget()
    done = run("resume", str(out), "--requisites", "--json")
    summary = summary_of(done.stdout)
    kinds = stored(out)
    pages = frozenset(url for url, purpose in kinds.items() if not purpose and "sitemap" not in url)
    assert (summary["pages"], summary["finished"]) == (4, "max_pages")
    assert {url for url, purpose in kinds.items() if purpose} == needed(styled, pages)
    assert not {url for url in asked(styled) if "/assets/" not in url and "/img/" not in url}
    verified(out)


# -- what cannot be ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--check-only",), "requisites: with --check-only no page is read"),
        (("--store", "files"), "requisites: they are stored in WARC files; expected warc in store, which is files"),
        (("--max-requisites-per-page", "0"), "max-requisites-per-page"),
        (("--max-requisites-per-page", "2000000"), "max-requisites-per-page = 2000000: expected at most 5,000"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    done = run("crawl", "http://127.0.0.1:9/", "--requisites", *options, "-o", str(tmp_path / "c"))
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "c").exists()


IMPORTS_ITSELF = "@import '/s.css'; @import '/t.css';"
NAMES_MILLIONS = "".join(f"a{{x:url(/{number}.png)}}" for number in range(300_000))
NESTED = "@media all{" * 20_000 + "a{x:url(/in.png)}" + "}" * 20_000


@pytest.mark.parametrize(("sheet", "requested"), [
    ("", 2),
    (IMPORTS_ITSELF, 3),
    (NAMES_MILLIONS, 42),
    (NESTED, 3),
])  # fmt: skip
def test_a_stylesheet_gets_the_requests_of_its_room_whatever_it_names(
    site: PlainSite, tmp_path: Path, sheet: str, requested: int
) -> None:
    site.answers = {"/": styled_page(), "/s.css": Answer(sheet, content_type=CSS)}
    site.answers["/t.css"] = Answer("@import '/s.css'; @import '/t.css';", content_type=CSS)
    summary = site_crawl(site, tmp_path / "c", "--max-requisites-per-page", "41", "--max-time", "20")
    asked = [path for path in site.requests if path != "/robots.txt"]
    assert len(asked) == len(set(asked)) == requested, asked[:50]
    assert summary["pages"] == 1


def test_imports_that_never_end_get_the_room_of_the_page(tmp_path: Path) -> None:
    """Each stylesheet names two others that nobody has named before."""

    class Endless(dict[str, Answer]):
        def get(self, path: str, default: Any = None) -> Any:
            if not path.endswith(".css"):
                return super().get(path, default)
            return Answer(f"@import '{path[:-4]}0.css'; @import '{path[:-4]}1.css';", content_type=CSS)

    with plain_site() as site:
        site.answers = Endless({"/": styled_page()})
        summary = site_crawl(site, tmp_path / "c", "--max-requisites-per-page", "40", "--max-time", "20")
        asked = [path for path in site.requests if path.endswith(".css")]
    assert len(asked) == len(set(asked)) <= 41
    assert summary["pages"] == 1
