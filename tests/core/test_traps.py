from __future__ import annotations

import pytest

from gossamer.core.traps.shapes import is_dated, shape_trap


@pytest.mark.parametrize(
    ("path", "trap"),
    [
        ("/a/a/a/a", "repeated_segment"),
        ("/a/a/a/a/", "repeated_segment"),
        ("/a/b/a/c/a/d/a", "repeated_segment"),
        ("/a/b/a/b/a/b/a/b/", "repeated_segment"),
        ("/a/a/a/b", None),
        ("/a/b/c/d/e/f", None),
        ("/x?a=/b/b/b/b/b", None),
        ("//////", None),
        ("/1/1/1/1/1/1/", None),
        ("/1/1/1/1/1/1/1", "repeated_segment"),
        ("/" + "/".join(str(n) for n in range(101)), "path_too_deep"),
        ("/" + "/".join(str(n) for n in range(100)), None),
    ],
)
def test_a_segment_more_than_three_times_is_the_shape_of_a_trap(path: str, trap: str | None) -> None:
    assert shape_trap("http://h.test" + path) == trap


def test_a_path_is_a_trap_only_if_it_follows_from_one_like_it() -> None:
    url = "http://h.test/a/a/a/a/"
    levels = [f"l{number}" for number in range(101)]
    assert shape_trap(url, "http://h.test/a/a/a/") == "repeated_segment"
    assert shape_trap(url, "http://h.test/a/a/") is None
    assert shape_trap(url, "http://h.test/") is None
    assert shape_trap(url, "") is None, "a sitemap, a seed"
    assert shape_trap(f"http://h.test/{'/'.join(levels)}", "http://h.test/") is None
    assert shape_trap(f"http://h.test/{'/'.join(levels)}", f"http://h.test/{'/'.join(levels[:100])}") == "path_too_deep"


@pytest.mark.parametrize(
    "path",
    [
        "/T01/2024/05",
        "/T01/2024/5/",
        "/2024-05",
        "/cal/2024/05/31",
        "/cal/2024-05-31/",
        "/2024/12?view=list",
        "/cal?date=2024-05",
        "/cal?month=202405",
        "/cal?a=b&year=2024&month=5",
        "/cal?m=5&y=2024",
    ],
)
def test_date_shaped_urls(path: str) -> None:
    assert is_dated("http://h.test" + path)


@pytest.mark.parametrize(
    "path",
    ["/2024/05/my-post", "/page/2", "/page/2024", "/a?p=2024", "/2024/13", "/item/120245", "/v/2024.05", "/?page=12"],
)
def test_urls_that_only_hold_numbers_are_not_date_shaped(path: str) -> None:
    assert not is_dated("http://h.test" + path)
