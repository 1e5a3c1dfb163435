"""What a page offers: facts, decoded source, selectors, headers in any case, links with their texts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import gossamer
from tests.servers.plain_site import Answer, PlainSite


def pages_of(site: PlainSite, options: dict[str, Any], **more: Any) -> dict[str, gossamer.Page]:
    async def run() -> dict[str, gossamer.Page]:
        async with gossamer.crawl(site.url, **options, **more) as pages:
            return {page.url.removeprefix(site.url): page async for page in pages}

    return asyncio.run(run())


def test_source_selectors_headers_and_links(site: PlainSite, options: dict[str, Any]) -> None:
    pages = pages_of(site, options)
    assert sorted(pages) == ["", "a", "target"]
    front, other = pages[""], pages["a"]
    assert other.html.startswith("<title>A</title>")
    assert [element.text for element in other.select("p.x")] == ["Überall"]
    title = front.select_one("title")
    assert title is not None
    assert title.text == "Front"
    assert front.select_one("table") is None
    assert front.headers["Content-Type"] == front.headers["content-type"] == "text/html; charset=utf-8"
    assert "CONTENT-LENGTH" in front.headers
    assert [(link.url.removeprefix(site.url), link.text, link.rel) for link in front.links] == [
        ("a", "Page A", "next"),
        ("gone", "Gone", ""),
        ("moved", "Moved", ""),
    ]
    assert "Welcome to the front page." in front.text
    assert (other.found_on, front.found_on) == (site.url, "")


def test_the_source_is_decoded_whatever_its_charset(site: PlainSite, options: dict[str, Any]) -> None:
    body = '<meta charset="windows-1251"><title>Привет</title><p>мир'
    site.answers["/a"] = Answer(body, content_type="text/html", charset="windows-1251")
    page = pages_of(site, options)["a"]
    assert "Привет" in page.html
    assert [element.text for element in page.select("p")] == ["мир"]


def test_headers_that_repeat_are_joined_and_can_be_told_apart() -> None:
    headers = gossamer.Headers([("set-cookie", "a=1"), ("x", "y"), ("set-cookie", "b=2")])
    assert headers["Set-Cookie"] == "a=1, b=2"
    assert headers.get_all("SET-COOKIE") == ["a=1", "b=2"]
    assert (list(headers), len(headers)) == (["set-cookie", "x"], 2)
    assert headers.get("missing") is None


def test_answers_of_any_status_are_handed_over_on_request(site: PlainSite, options: dict[str, Any]) -> None:
    pages = pages_of(site, options, statuses="all")
    found = {path: (page.status, page.outcome) for path, page in pages.items()}
    assert found == {
        "": (200, "ok"),
        "a": (200, "ok"),
        "gone": (404, "client_error"),
        "moved": (301, "redirect"),
        "target": (200, "ok"),
    }
    assert "There is no such page." in pages["gone"].html
    assert "There is no such page." in pages["gone"].text
    assert pages["gone"].headers["content-type"] == "text/html; charset=utf-8"
    assert pages["moved"].redirect_to == f"{site.url}target"


def test_only_some_statuses(site: PlainSite, options: dict[str, Any]) -> None:
    assert sorted(pages_of(site, options, statuses={404})) == ["gone"]


def test_an_answer_that_is_not_stored_has_no_content(site: PlainSite, options: dict[str, Any]) -> None:
    site.answers["/a"] = Answer("PNG", content_type="image/png")
    page = pages_of(site, options, statuses="all")["a"]
    assert (page.outcome, page.is_stored) == ("type_refused", False)
    assert (page.content, page.html, page.text, page.links, len(page.headers)) == (b"", "", "", [], 0)


@pytest.mark.parametrize("statuses", ["errors", 404, ["200"]])
def test_wrong_statuses_are_refused(statuses: Any) -> None:
    with pytest.raises(gossamer.UsageError, match="expected 'pages', 'all' or numbers"):
        gossamer.crawl("http://localhost/", statuses=statuses)
