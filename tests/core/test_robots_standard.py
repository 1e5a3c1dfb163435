"""Own cases of RFC 9309, section by section, and what the web writes beside it."""

from __future__ import annotations

import pytest

from gossamer.core.robots.rules import parse_robots


def allowed(lines: str, path: str, token: str = "gossamer") -> bool:
    return parse_robots("\n".join(lines.split(" | ")).encode(), token).is_allowed(path)


@pytest.mark.parametrize(
    ("lines", "is_allowed"),
    [
        ("User-agent: gossamer | Disallow: /", False),
        ("user-AGENT: GOSSAMER | dIsAlLoW: /", False),
        ("User-agent: Gossamer/3.1 | Disallow: /", False),
        ("User-agent: gossamer crawler | Disallow: /", False),
        ("User-agent: gossamerbot | Disallow: /", True),
        ("User-agent: goss | Disallow: /", True),
        ("User-agent: * | Disallow: /", False),
        ("User-agent: * everybody | Disallow: /", False),
        ("User-agent: other | User-agent: gossamer | Disallow: /", False),
        ("User-agent: other | Disallow: / | User-agent: gossamer | Allow: /", True),
        # A blank line ends no group, and neither does a line that is no rule.
        ("User-agent: gossamer |  | Disallow: /", False),
        ("User-agent: gossamer | Sitemap: http://a.test/s.xml | Disallow: /", False),
        ("User-agent: gossamer | Unknown: x | Disallow: /", False),
        ("User-agent: gossamer | Crawl-delay: 5 | User-agent: other | Disallow: /", False),
        # Rules before any group bind nobody.
        ("Disallow: / | User-agent: other | Disallow: /", True),
        ("Disallow: /", True),
        # The own group counts alone, even if it is empty or comes first.
        ("User-agent: * | Disallow: / | User-agent: gossamer | Disallow:", True),
        ("User-agent: gossamer | Disallow: /x | User-agent: * | Disallow: /", True),
        ("User-agent: gossamer | Allow: /x | User-agent: * | Disallow: / | User-agent: gossamer | Disallow: /p", False),
    ],
)
def test_the_group_of_an_agent(lines: str, is_allowed: bool) -> None:
    assert allowed(lines, "/page") is is_allowed


@pytest.mark.parametrize(
    ("rules", "path", "is_allowed"),
    [
        ("Disallow: /a", "/a", False),
        ("Disallow: / | Allow: /d/index.html", "/d/", True),  # the folder that serves it
        ("Disallow: / | Allow: /d/index.htm", "/d/", True),
        ("Disallow: / | Allow: /d/index.html", "/d/e", False),
        ("Disallow: / | Allow: /d/index.php", "/d/", False),
        ("Disallow: /a", "/ab", False),
        ("Disallow: /a", "/A", True),
        ("Disallow: /a", "/b/a", True),
        ("Disallow: /a/", "/a", True),
        ("Disallow: /a/", "/a/b", False),
        ("Disallow: /a?", "/a?b", False),
        ("Disallow: /a?", "/a", True),
        ("Disallow: *", "/x", False),
        ("Disallow: /*", "/x", False),
        ("Disallow: *.gif", "/x/y.gif?z", False),
        ("Disallow: /*.gif$", "/x/y.gif", False),
        ("Disallow: /*.gif$", "/x/y.gif?z", True),
        ("Disallow: /a*b*c", "/a-b-c-d", False),
        ("Disallow: /a*b*c", "/a-c-b", True),
        ("Disallow: /a**b", "/ab", False),
        ("Disallow: /$", "/", False),
        ("Disallow: /$", "/x", True),
        ("Disallow:", "/x", True),
        ("Disallow: # /x", "/x", True),
        ("Disallow: /x # y", "/x", False),
        ("Disallow: /x#y", "/x#y", False),
        ("Disallow: /a | Allow: /a", "/a", True),
        ("Allow: /a | Disallow: /a", "/a", True),
        ("Allow: /a | Disallow: /ab", "/abc", False),
        ("Disallow: /a | Allow: /ab", "/abc", True),
        ("Disallow: /a/b | Allow: /*/", "/a/b", False),
        ("Disallow: /folder | Allow: /fol*", "/folder/x", False),
        ("Disallow: / | Allow: /$", "/", True),
        ("Disallow: / | Allow: /$", "/x", False),
        # Escapes are compared by what they stand for; a reserved character and its escape are not the same.
        ("Disallow: /%61", "/a", False),
        ("Disallow: /a%3cd", "/a%3Cd", False),
        ("Disallow: /a%2Fb", "/a/b", True),
        ("Disallow: /a%2fb", "/a%2Fb", False),
        ("Disallow: /\u30c4", "/%E3%83%84", False),
        ("Disallow: /%E3%83%84", "/%e3%83%84", False),
    ],
)
def test_the_rule_that_decides(rules: str, path: str, is_allowed: bool) -> None:
    assert allowed(f"User-agent: * | {rules}", path) is is_allowed


@pytest.mark.parametrize(
    ("lines", "sitemaps"),
    [
        ("Sitemap: http://a.test/1.xml", ["http://a.test/1.xml"]),
        ("SITEMAP : http://a.test/1.xml  # the first", ["http://a.test/1.xml"]),
        ("site-map: http://a.test/1.xml", ["http://a.test/1.xml"]),
        ("User-agent: other | Disallow: / | Sitemap: http://a.test/1.xml", ["http://a.test/1.xml"]),
        ("Sitemap: http://a.test/1.xml | User-agent: * | Sitemap: /2.xml", ["http://a.test/1.xml", "/2.xml"]),
        ("Sitemap:", []),
        ("# Sitemap: http://a.test/1.xml", []),
    ],
)
def test_sitemaps_are_for_everybody(lines: str, sitemaps: list[str]) -> None:
    assert parse_robots("\n".join(lines.split(" | ")).encode(), "gossamer").sitemaps == sitemaps
