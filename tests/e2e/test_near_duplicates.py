"""Near duplicates in whole crawls of the synthetic web, judged by what its pages say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.dedup.shingles import words_of
from gossamer.core.url.forms import url_id
from gossamer.model.exchanges import Exchange
from gossamer.model.records import FetchKind, Outcome, UrlId, UrlRecord
from gossamer.parse.dispatch import parse_exchange
from gossamer.sim.web.pages import SyntheticWeb
from gossamer.sim.web.web import preset
from tests.amount import some
from tests.e2e.program import crawl, crawl_options, run, summary_of
from tests.servers.web import RunningWeb

PLAN = preset("small", seed=2, near_duplicates=0.3, page_bytes=20_000, slow=0.0, crawl_delays=0.0)


@pytest.fixture
def web() -> Iterator[RunningWeb]:
    with RunningWeb(PLAN) as running:
        yield running


class Truth:
    """What the pages say: pairs of which one repeats the other, with their exact similarity."""

    def __init__(self, web: SyntheticWeb) -> None:
        self._web = web

    def pairs(self) -> Iterator[tuple[UrlId, UrlId, float]]:
        sites = {
            site.name: site for rank in range(PLAN.host_count) if (site := self._web.site(PLAN.host_name_at(rank)))
        }
        for site in sites.values():
            cards = [self._web.card(site, number) for number in range(site.pages)]
            for number, card in enumerate(cards):
                if card.text != number and card.content == number:
                    one, other = (self._web.url(site, each) for each in (number, card.text))
                    yield url_id(one), url_id(other), self.jaccard(one, other)

    def jaccard(self, one: str, other: str) -> float:
        a, b = self._shingles(one), self._shingles(other)
        return len(a & b) / len(a | b)

    @cache  # noqa: B019 - one object a test
    def _shingles(self, url: str) -> frozenset[tuple[bytes, ...]]:
        host, _, path = url.removeprefix("http://").partition("/")
        body = self._web.answer(host.partition(":")[0], "/" + path).body
        headers = [("content-type", "text/html; charset=utf-8")]
        exchange = Exchange(url, Outcome.OK, status=200, content=body, headers=headers)
        words = words_of(parse_exchange(exchange, want_text=True, want_pdf_links=False).text)
        return frozenset(zip(*(words[n:] for n in range(5)), strict=False))


@contextmanager
def ledger_of(out: Path) -> Iterator[LocalLedger]:
    ledger = LocalLedger(out / "state", is_readonly=True)
    ledger.open()
    yield ledger
    ledger.close()


def pages_of(ledger: LocalLedger) -> dict[UrlId, UrlRecord]:
    return {key: row for key, row in ledger.urls() if row.kind is FetchKind.PAGE and row.outcome == Outcome.OK.value}


def check_marks(out: Path, web: RunningWeb) -> int:
    """Hold every mark to what the pages say; return how many there are."""
    truth = Truth(SyntheticWeb(PLAN, web.port))
    with ledger_of(out) as ledger:
        pages = pages_of(ledger)
        kept = {value[:16] for _, value in ledger._store.committed("signatures")}
    marked = {key: row for key, row in pages.items() if row.near_duplicate_of}
    for row in marked.values():
        first = pages[row.near_duplicate_of]
        assert not row.duplicate_of
        assert not first.near_duplicate_of
        assert row.similarity >= 0.9
        assert truth.jaccard(row.url, first.url) > 0.8
    alike = [(a, b) for a, b, similarity in truth.pairs() if similarity >= 0.95 and a in pages and b in pages]
    found = [pair for pair in alike if any(pages[key].near_duplicate_of or pages[key].duplicate_of for key in pair)]
    assert len(alike) >= 20
    assert len(found) >= 0.97 * len(alike)
    assert kept == {key for key, row in pages.items() if not (row.duplicate_of or row.near_duplicate_of)}
    return len(marked)


@pytest.mark.parametrize("workers", some(["2", "1"], 1))
def test_near_duplicates_are_marked_with_the_page_they_repeat(tmp_path: Path, web: RunningWeb, workers: str) -> None:
    out = tmp_path / "out"
    summary = crawl(web, out, 0, "--workers", workers, "--no-traps")
    assert check_marks(out, web) == summary["near_duplicates"] > 20
    lines = [json.loads(line) for path in (out / "events").glob("*.jsonl") for line in path.open()]
    told = [line for line in lines if line["event"] == "near_duplicate"]
    assert len(told) == summary["near_duplicates"]
    assert all(line["target"].startswith("http://") and line["similarity"] >= 0.9 for line in told)
    why = run("why", str(out), told[0]["url"])
    assert f"{told[0]['target']} (similarity" in why.stdout
    report = json.loads((out / "report.json").read_bytes())
    assert report["corpus"]["near_duplicates"] == summary["near_duplicates"]


def test_after_a_kill_the_index_is_exactly_that_of_the_pages(tmp_path: Path, web: RunningWeb) -> None:
    out = tmp_path / "out"
    arguments = ["crawl", *web.seeds(), *crawl_options(web, out, 0), "--no-traps"]
    for failure in ("after_archive_write:kill:90", "after_archive_write:kill:60", "in_commit:kill:2"):
        killed = run(*arguments, environment={"GOSSAMER_FAILPOINT": failure})
        assert killed.returncode == -9, killed.stderr
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert check_marks(out, web) == summary_of(done.stdout)["near_duplicates"] > 20


def test_a_second_run_finds_what_repeats_the_pages_of_the_first(tmp_path: Path, web: RunningWeb) -> None:
    out = tmp_path / "out"
    before = crawl(web, out, 0, "-n", "150", "--no-traps")["near_duplicates"]
    done = run("resume", str(out), "--max-pages", "100000", "--json")
    assert done.returncode == 0, done.stderr
    assert check_marks(out, web) == summary_of(done.stdout)["near_duplicates"] > before


def test_without_the_kernel_the_same_pages_are_marked(tmp_path: Path, web: RunningWeb) -> None:
    arguments = ["crawl", *web.seeds(2), *crawl_options(web, tmp_path / "plain", 0), "-c", "1", "-n", "60"]
    plain = run(*arguments, environment={"GOSSAMER_NO_KERNEL": "1"})
    assert plain.returncode == 0, plain.stderr
    crawl(web, tmp_path / "compiled", 0, "-c", "1", "-n", "60", seeds=web.seeds(2))
    marks = []
    for name in ("plain", "compiled"):
        with ledger_of(tmp_path / name) as ledger:
            rows = pages_of(ledger)
            urls = {key: row.url for key, row in rows.items()} | {b"": ""}
            marks.append({row.url: (urls[row.near_duplicate_of], row.similarity) for row in rows.values()})
    assert marks[0] == marks[1]


def test_near_duplicates_can_be_left_alone_or_found_by_simhash(tmp_path: Path, web: RunningWeb) -> None:
    assert crawl(web, tmp_path / "off", 0, "--near-dup", "off")["near_duplicates"] == 0
    by_simhash = crawl(web, tmp_path / "simhash", 0, "--near-dup", "simhash", "--no-traps")
    assert by_simhash["near_duplicates"] > 5
    done = run("resume", str(tmp_path / "simhash"), "--near-dup", "minhash")
    assert done.returncode == 2
    assert "--near-dup" in done.stderr
