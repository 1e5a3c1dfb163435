"""The spider of docs/scrapy.md, run as it stands there on a shop on loopback."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.plain_site import Answer, PlainSite, plain_site

DOCUMENT = (Path(__file__).parents[1] / "docs" / "scrapy.md").read_text("utf-8")
(SPIDER,) = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
(SCRAPY_SPIDER,) = re.findall(r"```py\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.fixture
def shop() -> Iterator[PlainSite]:
    """Two categories, one of them on two pages, and a page that is neither a list nor a book."""
    with plain_site() as shop:
        shop.answers["/"] = Answer(
            '<nav><a href="/list/poems">Poems</a> <a href="/list/plays">Plays</a></nav> <a href="/about">About</a>'
        )
        shop.answers["/list/poems"] = Answer(
            '<h3><a href="/book/1">One</a></h3> <a class="next" href="/list/poems2">more</a>'
        )
        shop.answers["/list/poems2"] = Answer('<h3><a href="/book/2">Two</a></h3>')
        shop.answers["/list/plays"] = Answer('<h3><a href="/book/3">Three</a></h3>')
        for number in (1, 2, 3):
            shop.answers[f"/book/{number}"] = Answer(f'<h1>Book {number}</h1> <p class="price">{number}.50')
        yield shop


def test_the_spider_of_the_guide_finds_every_book_with_its_category(shop: PlainSite, tmp_path: Path) -> None:
    program = SPIDER.replace("https://example.org/", shop.url)
    program = program.replace('out="crawls/books"', 'out="crawls/books", politeness_ms=0, traps=False')
    for _ in range(2):  # the second run has nothing left to do, and loses nothing
        done = subprocess.run(
            [sys.executable, "-c", program], check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
    books = [json.loads(line) for line in (tmp_path / "books.jsonl").read_text("utf-8").splitlines()]
    found = sorted((book["category"], book["title"], book["price"].strip()) for book in books)
    assert found == [("Plays", "Book 3", "3.50"), ("Poems", "Book 1", "1.50"), ("Poems", "Book 2", "2.50")]
    assert "/about" not in shop.requests
    assert len(shop.requests) == len(set(shop.requests))


def test_the_spider_for_comparison_is_python() -> None:
    compile(SCRAPY_SPIDER, "docs/scrapy.md", "exec")
