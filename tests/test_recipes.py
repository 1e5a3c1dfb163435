"""What CONTRIBUTING.md says must be written for something new is enough."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes import ROOT, apply, copy_of_package, diff_of, files_of

RECIPES = {  # and how many files each takes
    "A setting": 3,
    "An event": 3,
    "A trap rule": 1,
    "A verb": 2,
    "A figure": 1,
    "A column of a catalog": 2,
    "An export format": 1,
    "A ledger that nodes share": 2,
}
EVENTS_PAGE = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("docs_reference", sys.argv[1])
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)
print(made.text_of("reference/events.md"))
"""
LIMITS = """
from gossamer.assembly.engine import budget_of, frontier_limits
from gossamer.settings.load import merged
settings = merged(("test", {"max_idle_hosts": 7}))
print(frontier_limits(settings, budget_of(settings)).max_idle_hosts)
"""
COLUMN = """
import sys
from pathlib import Path
from gossamer.backends.cassandra.writing import PAGES_BY_HOST, PAGES_BY_ID
from gossamer.backends.mongodb.catalog import _page
from gossamer.backends.postgresql.catalog import _PAGES, _declarations
from gossamer.ports.catalog_store import CatalogPage
from gossamer.reading.catalog_rows import CatalogRows
from gossamer.reading.folder import CrawlReader
print(PAGES_BY_ID.create.count("similarity double,"), PAGES_BY_HOST.insert.count("similarity,"))
print('"similarity" double precision NOT NULL' in _declarations(CatalogPage).as_string(None))
print('"similarity" = EXCLUDED."similarity"' in _PAGES.statement.as_string(None))
with CrawlReader(Path(sys.argv[1])) as crawl:
    url_id, row = next(iter(crawl.ledger.urls()))
    row.similarity = 0.75
    print(_page(CatalogRows(crawl.ledger.look_up).page(url_id, row), "crawl")["similarity"])
"""
LEDGER = """
from gossamer.backends.registry import open_shared
from gossamer.model.state import CrawlRecord, Terms
ledger = open_shared("memory://books", print)
print(ledger.start(CrawlRecord(Terms(1, "3", "rules"), b"")) == ledger.record())
"""
SHOWN = """
import sys
from gossamer.model.figures import Figures, Totals
from gossamer.telemetry.figure_list import Place, labelled, rows_of
from gossamer.telemetry.metrics import render
figures = Figures(totals=Totals(pages=12, unique_hosts=4), out="crawl")
print(render(figures), rows_of(labelled(figures, Place.DASHBOARD)))
"""


class Changed:
    """The program with all recipes applied, and a crawl that it has made."""

    def __init__(self, checkout: Path) -> None:
        self._source = checkout / "src"
        self.crawl = checkout / "crawl"

    def python(self, *words: str, status: int = 0) -> str:
        environment = {**os.environ, "PYTHONPATH": str(self._source)}
        done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout

    def gossamer(self, *words: str, status: int = 0) -> str:
        return self.python("-m", "gossamer", *words, status=status)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Changed:
    checkout = copy_of_package(tmp_path_factory.mktemp("checkout"))
    for recipe in RECIPES:
        apply(diff_of(recipe), checkout)
    found = Changed(checkout)
    found.gossamer("demo", "--pages", "40", "--politeness-ms", "1", "--no-progress", "-o", str(found.crawl))
    return found


def test_each_recipe_takes_as_few_files_as_its_heading_says() -> None:
    assert {recipe: len(files_of(diff_of(recipe))) for recipe in RECIPES} == RECIPES


def test_a_new_setting_is_an_option_and_reaches_the_part_that_uses_it(changed: Changed) -> None:
    assert "--max-idle-hosts" in changed.gossamer("crawl", "--help-all")
    assert changed.python("-c", LIMITS) == "7\n"


def test_a_new_event_is_emitted_and_documented(changed: Changed) -> None:
    events = [json.loads(line) for path in (changed.crawl / "events").iterdir() for line in path.open()]
    reached = [event["host"] for event in events if event["event"] == "domain_reached"]
    assert len(reached) == len(set(reached)) > 3
    assert "domain_reached" in changed.python("-c", EVENTS_PAGE, str(ROOT / "packaging" / "docs_reference.py"))


def test_a_new_trap_rule_refuses_a_url_and_why_names_it(changed: Changed) -> None:
    found = json.loads(changed.gossamer("hosts", str(changed.crawl), "--json"))
    url = f"http://{found['hosts'][0]['name']}/a%252525b"
    assert "repeated_escape" in changed.gossamer("url", url)
    assert "repeated_escape" in changed.gossamer("why", str(changed.crawl), url, status=1)  # it is not known


def test_a_new_verb_runs_and_is_in_the_help(changed: Changed) -> None:
    assert "domains" in changed.gossamer("help")
    assert len(changed.gossamer("domains", str(changed.crawl)).splitlines()) > 3


def test_a_new_figure_is_in_metrics_status_summary_report_and_dashboard(changed: Changed) -> None:
    assert json.loads(changed.gossamer("status", str(changed.crawl), "--json"))["more"]["host_pages"] > 1
    assert "  per host   " in changed.gossamer("status", str(changed.crawl))
    assert json.loads((changed.crawl / "report.json").read_bytes())["summary"]["more"]["host_pages"] > 1
    assert ">per host<" in (changed.crawl / "report.html").read_text("utf-8")
    shown = changed.python("-c", SHOWN)
    assert "gossamer_host_pages 3\n" in shown
    assert "('per host', '3')" in shown


def test_a_new_column_is_in_all_catalogs(changed: Changed) -> None:
    assert changed.python("-c", COLUMN, str(changed.crawl)) == "1 1\nTrue\nTrue\n0.75\n"


def test_a_new_export_format_is_an_option_and_is_written(changed: Changed) -> None:
    assert "  urls     the URL of each page" in changed.gossamer("export", "--help")
    urls = changed.gossamer("export", str(changed.crawl), "--format", "urls").splitlines()
    assert len(urls) > 3
    assert all(url.startswith("http://") for url in urls)


def test_a_new_ledger_is_opened_by_its_url(changed: Changed) -> None:
    assert changed.python("-c", LEDGER) == "memory://books: is gone when this process ends\nTrue\n"
