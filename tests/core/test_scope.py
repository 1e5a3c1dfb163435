from __future__ import annotations

import pytest

from gossamer.core.links.scope import DEMOTED_EXTENSIONS, SKIPPED_EXTENSIONS, Reach, Scope, extension_of, extensions_of
from gossamer.core.url.forms import host_of


def _joined(scope: Scope, seed: str = "https://www.example.org/docs/intro.html?x=1") -> Scope:
    scope.join(seed, host_of(seed))
    return scope


def _refusal(scope: Scope, url: str) -> str | None:
    return scope.refusal(url, host_of(url))


SEED = "https://www.example.org/docs/intro.html?x=1"


@pytest.mark.parametrize(
    ("reach", "inside", "outside"),
    [
        (Reach.PAGE, [SEED], ["https://www.example.org/docs/intro.html"]),
        (
            Reach.PREFIX,
            [SEED, "https://www.example.org/docs/", "https://www.example.org/docs/a/b?c=/d"],
            ["https://www.example.org/", "https://www.example.org/doc", "http://www.example.org/docs/"],
        ),
        (
            Reach.HOST,
            ["https://www.example.org/", "http://www.example.org:8080/x"],
            ["https://example.org/", "https://a.www.example.org/"],
        ),
        (
            Reach.DOMAIN,
            ["https://example.org/", "http://a.b.example.org/"],
            ["https://example.com/", "https://notexample.org/"],
        ),
        (Reach.ANY, ["https://example.com/", "http://127.0.0.1/"], []),
    ],
)
def test_reach(reach: Reach, inside: list[str], outside: list[str]) -> None:
    scope = _joined(Scope(reach))
    assert [_refusal(scope, url) for url in inside] == [None] * len(inside)
    assert [_refusal(scope, url) for url in outside] == ["out_of_scope"] * len(outside)


def test_joining_widens_the_scope() -> None:
    scope = _joined(Scope(Reach.HOST))
    assert _refusal(scope, "https://example.com/") == "out_of_scope"
    assert scope.join("https://example.com/x", "example.com")
    assert not scope.join("https://example.com/y", "example.com"), "nothing new"
    assert _refusal(scope, "https://example.com/") is None


@pytest.mark.parametrize("name", ["login", "admin", "cart", "checkout", "wp-admin"])
def test_default_excludes_are_whole_segments(name: str) -> None:
    scope = _joined(Scope(Reach.ANY))
    for url in (f"http://h.test/{name}", f"http://h.test/a/{name}/b", f"http://h.test/{name}?next=/"):
        assert _refusal(scope, url) == "exclude_pattern"
    for url in (f"http://h.test/{name}-tips", f"http://h.test/my{name}", f"http://{name}.test/", "http://h.test/a"):
        assert _refusal(scope, url) is None


def test_include_wins_over_exclude_but_not_over_reach() -> None:
    scope = _joined(Scope(Reach.DOMAIN, includes=[r"/keep/", r"\.keep$"], excludes=[r"/private/"]))
    assert _refusal(scope, "https://example.org/private/x") == "exclude_pattern"
    assert _refusal(scope, "https://example.org/private/keep/x") is None
    assert _refusal(scope, "https://example.com/keep/") == "out_of_scope"


def test_include_wins_over_extensions() -> None:
    scope = _joined(Scope(Reach.DOMAIN, includes=[r"/data/.*\.zip$"]))
    assert _refusal(scope, "https://example.org/data/a.zip") is None
    assert _refusal(scope, "https://example.org/a.zip") == "extension"


def test_accepted_types_open_their_extensions() -> None:
    assert extensions_of(["image/png"]) == {"png"}
    assert extensions_of(["video/"]) >= {"mp4", "webm", "mkv"}
    assert extensions_of(["application/zip", "font/woff2"]) == {"zip", "woff2"}
    assert extensions_of(["text/html"]) == frozenset()


def test_every_skipped_extension_can_be_opened_by_a_type() -> None:
    assert extensions_of(["application/", "audio/", "font/", "image/", "text/", "video/"]) == SKIPPED_EXTENSIONS


def test_a_refusal_names_the_pattern_or_the_extension() -> None:
    scope = _joined(Scope(Reach.ANY, excludes=[r"/a/", r"/b\d/"]))
    assert scope.explain("exclude_pattern", "http://h.test/b7/") == r"/b\d/"
    assert scope.explain("extension", "http://h.test/x.ZIP?y") == ".zip"
    assert scope.explain("out_of_scope", "http://h.test/a/") == ""


def test_a_blocked_host_or_domain_is_never_let_in() -> None:
    scope = _joined(Scope(Reach.ANY, blocked_hosts=["Evil.example", "one.h.test"], includes=["."]))
    for url in ("http://evil.example/", "http://www.evil.example/", "http://one.h.test/"):
        assert _refusal(scope, url) == "blocked_host"
    assert _refusal(scope, "http://two.h.test/") is None


def test_extensions() -> None:
    scope = _joined(Scope(Reach.ANY))
    for url in ("http://h.test/a.JPG", "http://h.test/a.zip?x=1", "http://h.test/a.woff2"):
        assert _refusal(scope, url) == "extension"
    for url in ("http://h.test/a.html", "http://h.test/a.pdf", "http://h.test/?f=a.zip", "http://a.zip/"):
        assert _refusal(scope, url) is None
    assert not SKIPPED_EXTENSIONS & DEMOTED_EXTENSIONS


@pytest.mark.parametrize(
    ("url", "extension"),
    [
        ("http://h.test/a.b.PDF", "pdf"),
        ("http://h.test/a.pdf/", ""),
        ("http://h.test/.htaccess", ""),
        ("http://h.test/", ""),
        ("http://h.test/a.pdf?b.jpg", "pdf"),
        ("http://h.test/version-1.23456789", ""),
    ],
)
def test_what_the_extension_is(url: str, extension: str) -> None:
    assert extension_of(url) == extension
