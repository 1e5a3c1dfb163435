"""The questions in docs/handover.md are asked of a real export."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from gossamer.handover.export.export import export
from gossamer.reading.folder import CrawlReader
from tests.reading.folders import Crawled, finished, small_web

__all__ = ["finished", "small_web"]

DOCS = Path(__file__).resolve().parent.parent.parent / "docs" / "handover.md"
QUESTIONS = re.findall(r"```sql\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
COLUMNS = [
    ["domain", "pages", "bytes"],
    ["host", "pages", "same_content", "nearly_same"],
    ["language", "pages", "words", "declared_otherwise"],
]


@pytest.fixture(scope="module")
def table(finished: Crawled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parquet") / "pages.parquet"
    with CrawlReader(finished.path) as crawl:
        export(crawl, "parquet", path)
    return path


def test_there_are_three_questions() -> None:
    assert len(QUESTIONS) == len(COLUMNS)


def answer_to(question: str, table: Path) -> duckdb.DuckDBPyRelation:
    answer = duckdb.sql(question.replace("pages.parquet", str(table)))
    assert answer is not None
    return answer


@pytest.mark.parametrize("number", range(len(COLUMNS)))
def test_a_question_has_the_answer_that_is_described(number: int, table: Path, finished: Crawled) -> None:
    answer = answer_to(QUESTIONS[number], table)
    assert answer.columns == COLUMNS[number]
    rows = answer.fetchall()
    assert sum(row[1] for row in rows) == finished.summary.pages


def test_the_shares_of_duplicates_agree_with_the_summary(table: Path, finished: Crawled) -> None:
    rows = answer_to(QUESTIONS[1], table).fetchall()
    assert round(sum(pages * float(same) for _, pages, same, _ in rows)) == finished.summary.duplicates
    assert round(sum(pages * float(near) for _, pages, _, near in rows)) == finished.summary.near_duplicates
