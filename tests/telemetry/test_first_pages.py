"""The first pages of a crawl, as whoever starts it sees them."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace

from gossamer.cli.start.crawl import FirstPages
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.telemetry.screen import Screen

PAGE = Result(1, Outcome.OK, status=200, title="Kilns", preview="The third kiln fires", words=4)


def task(path: str, kind: FetchKind = FetchKind.PAGE) -> FetchTask:
    return FetchTask(1, kind, f"http://a.test/{path}", b"", "a.test", ("127.0.0.1",), 0, 0, 0, 0.0)


def printed(*pages: tuple[FetchTask, Result]) -> list[str]:
    out = io.StringIO()
    show = FirstPages(Screen(out))
    for page in pages:
        show(*page)
    return out.getvalue().splitlines()


def test_title_url_and_first_words_of_three_pages_are_printed() -> None:
    lines = printed(*((task(str(number)), replace(PAGE, words=number)) for number in range(3, 9)))
    assert lines[:4] == ["Kilns · http://a.test/3", "    The third kiln fires", "Kilns · http://a.test/4", lines[1]]
    assert lines[4:] == ["Kilns · http://a.test/5", "    The third kiln fires …"]


@pytest.mark.parametrize(
    "page",
    [
        (task("robots.txt", FetchKind.ROBOTS), PAGE),
        (task("copy"), replace(PAGE, duplicate_of=b"1")),
        (task("empty"), replace(PAGE, preview="")),
    ],
)
def test_what_has_nothing_to_read_is_not_shown(page: tuple[FetchTask, Result]) -> None:
    assert printed(page) == []


def test_lines_are_cut_and_contain_nothing_that_acts_on_a_terminal() -> None:
    title, text = printed((task("x"), replace(PAGE, title="\x1b[2J" + "long " * 50, preview="\u202eword " * 20)))
    assert title.startswith("\\u001b[2Jlong long")
    assert text.startswith("    \\u202eword")
    assert (len(title), len(text)) == (120, 120)


def test_a_terminal_that_is_gone_does_not_stop_a_crawl() -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError

    FirstPages(Screen(Gone()))(task("x"), PAGE)
