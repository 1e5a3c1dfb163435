from __future__ import annotations

import re
import time

import pytest

from gossamer.core.links.scope import DEFAULT_EXCLUDES, Reach, Scope
from gossamer.core.url.patterns import first_match, pattern_fault, union

BACKTRACKING = (r"(?:a+)+$", r"(?:a|a)*b", r"/(?:[a-z0-9]+-?)+\.html$")
URL = "http://a.test/" + "a" * 4000


@pytest.mark.parametrize("pattern", BACKTRACKING)
def test_a_pattern_that_would_backtrack_takes_linear_time(pattern: str) -> None:
    assert pattern_fault(pattern) == ""
    begun = time.process_time()
    scope = Scope(Reach.ANY, includes=[f"x{pattern}"], excludes=[f"y{pattern}"])
    assert scope.refusal(URL + "!", "a.test") is None
    assert first_match([f"y{pattern}", "a!"], URL + "!") == "a!"
    assert time.process_time() - begun < 1  # by backtracking, years


@pytest.mark.parametrize(
    "pattern",
    [
        r"/private/",
        r"(?i)/PRINT/",
        r"\.(?:php|asp)\?",
        r"^https?://[^/]*\.test/",
        r"[?&]sort=\w+",
        r"\d{4}/\d{2}",
        r"/a$",
        *(r"(?P<year>\d+)/x", r"/\bword\b/", r"[^/]{1,1000}", r"a{2,}?", r"\Ahttp", r"(?s)a.b", r"[\w.-]+"),
    ],
)
def test_what_users_write_means_the_same_as_in_python(pattern: str) -> None:
    assert pattern_fault(pattern) == ""
    search = union([pattern, pattern])
    assert search is not None
    urls = [
        f"http://x.test/{path}" for path in ("private/", "print/", "a.php?x", "?sort=up", "2020/12", "a", "b/word/")
    ]
    assert [bool(search(url)) for url in urls] == [bool(re.search(pattern, url)) for url in urls]


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        (
            r"(a)\1",
            r"cannot be matched in linear time (invalid escape sequence: \1); expected RE2 syntax: no look-around",
        ),
        (
            r"^(?!.*keep)",
            "cannot be matched in linear time (invalid perl operator: (?!); expected RE2 syntax: no look-",
        ),
        (
            r"a{1,2000}",
            "cannot be matched in linear time (invalid repetition size: {1,2000}); expected RE2 syntax: no look",
        ),
        (r"a{,3}", "a repetition without its minimum; expected {0,n} instead of {,n}"),
        (r"(", "not a regular expression: missing ), unterminated subpattern at position 0"),
    ],
)
def test_what_is_wrong_with_a_pattern_is_one_line(pattern: str, fault: str) -> None:
    assert pattern_fault(pattern).startswith(fault)
    assert "\n" not in pattern_fault(pattern)


def test_our_own_excludes_still_hold_beside_those_of_a_user() -> None:
    scope = Scope(Reach.ANY, excludes=(*DEFAULT_EXCLUDES, "/shop/"))
    for path, pattern in (("login", DEFAULT_EXCLUDES[0]), ("shop/1", "/shop/")):
        url = f"http://a.test/{path}"
        assert scope.refusal(url, "a.test") == "exclude_pattern"
        assert scope.explain("exclude_pattern", url) == pattern
    assert scope.refusal("http://a.test/page", "a.test") is None
