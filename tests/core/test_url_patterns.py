"""Which URLs are of one kind?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.traps.url_patterns import common_folder, contains, folder_of, patterns_of, plain_patterns_of

HOST = "http://a.test"


@pytest.mark.parametrize(
    ("path", "patterns"),
    [
        ("/", ("/*",)),
        ("/about", ("/*",)),
        ("/about/", ("/*/",)),
        ("/item/17", ("/item/#", "/item/*", "/item/**", "/**")),
        ("/item/new", ("/item/*", "/item/**", "/**")),
        ("/s/0123456789abcde/x", ("/s/#abcde/x", "/s/#abcde/*", "/s/**", "/**")),
        ("/s/0123456789abcdef01", ("/s/*", "/s/**", "/**")),
        ("/item/17/", ("/item/#/", "/item/*/", "/item/**", "/**")),
        ("/item/17/reviews/4", ("/item/#/reviews/#", "/item/#/reviews/*", "/item/**", "/**")),
        ("/list?page=2&sort=up", ("/list?page&sort", "/list?*")),
        ("/list?sort=up&page=2", ("/list?page&sort", "/list?*")),
        ("/s/0123456789abcdef01/x", ("/s/*/x", "/s/*/*", "/s/**", "/**")),
    ],
)
def test_urls_fall_into_patterns_from_narrow_to_wide(path: str, patterns: tuple[str, ...]) -> None:
    assert patterns_of(HOST + path) == patterns
    assert all(contains(pattern, HOST + path) for pattern in patterns)


@given(
    st.lists(
        st.sampled_from(
            ["/", "//", "a", "1", "23", "0123456789abcde", "-_", ".", "*", "#", "?", "&b=1", "%20", "é", "٣"]
        )
    )
)
def test_c_and_python_name_the_same_patterns(pieces: list[str]) -> None:
    url = f"{HOST}/{''.join(pieces)}"
    assert patterns_of(url) == plain_patterns_of(url)


def test_a_tree_contains_what_is_below_its_folder() -> None:
    assert contains("/a/b/**", f"{HOST}/a/b/c")
    assert contains("/a/b/**", f"{HOST}/a/b/c/d?x=1")
    assert not contains("/a/b/**", f"{HOST}/a/bc")
    assert not contains("/a/*", f"{HOST}/a/b/c")


@pytest.mark.parametrize(
    ("path", "folder"),
    [("/", "/"), ("/a", "/"), ("/a/", "/"), ("/a/b", "/a/"), ("/a/b/", "/a/"), ("/a/b?c=/d/e", "/a/")],
)
def test_a_path_that_ends_in_a_slash_is_a_page_of_the_folder_above(path: str, folder: str) -> None:
    assert folder_of(HOST + path) == folder


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("/", "/a/", "/"),
        ("/a/", "/", "/"),
        ("/a/b/", "/a/b/c/", "/a/b/"),
        ("/a/b/c/", "/a/b/", "/a/b/"),
        ("/a/bc/", "/a/bd/", "/a/"),
        ("/a/", "/b/", "/"),
    ],
)
def test_the_common_folder_is_the_deepest_one(one: str, other: str, common: str) -> None:
    assert common_folder(one, other) == common
