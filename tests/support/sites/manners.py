"""A web of hosts that test a crawler's politeness, each with one way of answering.

Every possible answer for robots.txt, and every way to ask a crawler to slow down, on any
number of hosts. A host is `<manner>-<number>.test`; each has a home page that links to its
other pages, and one below /private/ that most robots.txt forbid. What a host answers depends
on its name and on the number of requests so far, never on time, so that a slow machine sees
the same web. No I/O here: `ManneredServer` in `manners_server` serves it on a socket.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from email.utils import formatdate
from types import MappingProxyType
from zlib import crc32

from msgspec import Struct

from gossamer.sim.web.pages import WebAnswer

PAGES = 12
HTML = "text/html; charset=utf-8"
_WORDS = "a brook carries dust every fair gentle hour into journeys kept long made never over pale quiet rivers".split()
_RULES = b"User-agent: *\nDisallow: /private/\n"
_HUGE = _RULES + b"# a comment\n" * 130_000 + b"Disallow: /\n"  # 1.5 MB; the last line is beyond what is read


class Manner(Struct, frozen=True, kw_only=True):
    """How one kind of host behaves."""

    robots: Callable[[int, str], WebAnswer] = lambda _asked, _host: WebAnswer(200, body=_RULES)
    page: Callable[[int, float], WebAnswer | None] = lambda _asked, _now: None  # None: the page
    latency_s: Callable[[int], float] = lambda _asked: 0.0
    crawl_delay_s: float = 0.0
    forbids_private: bool = True
    forbids_all: bool = False  # robots.txt can never be reached


def _status(status: int, body: bytes = b"", **fields: object) -> Callable[[int, str], WebAnswer]:
    answer = WebAnswer(status, body=body, **fields)  # type: ignore[arg-type]
    return lambda _asked, _host: answer


def _text(body: bytes) -> Callable[[int, str], WebAnswer]:
    return _status(200, body)


def _at_first(first: WebAnswer, body: bytes = _RULES) -> Callable[[int, str], WebAnswer]:
    """Answer with `first` the first time, then with rules."""
    return lambda asked, _host: first if asked == 1 else WebAnswer(200, body=body)


def _moved(target: str) -> Callable[[int, str], WebAnswer]:
    return lambda _asked, host: WebAnswer(302, location=target.replace("HOST", host))


def _third(answer: Callable[[float], WebAnswer], until: int = 3) -> Callable[[int, float], WebAnswer | None]:
    """Refuse the third request for a page, or the third to some later one."""
    return lambda asked, now: answer(now) if 3 <= asked <= until else None


def _busy(status: int, retry_after: int | str = 0) -> WebAnswer:
    return WebAnswer(status, body=b"not now\n", retry_after_s=retry_after)


MANNERS: Mapping[str, Manner] = MappingProxyType(
    {
        # robots.txt
        "rules": Manner(),
        "none": Manner(robots=_status(404), forbids_private=False),
        "forbidden": Manner(robots=_status(403), forbids_private=False),
        "unauthorized": Manner(robots=_status(401), forbids_private=False),
        "limited": Manner(robots=_at_first(_busy(429, 2))),
        "unavailable": Manner(robots=_at_first(_busy(503))),
        "broken": Manner(robots=_status(500), forbids_all=True),
        "moved": Manner(robots=_moved("/rules.txt")),
        "elsewhere": Manner(robots=_moved("http://rules-0.test:PORT/robots.txt")),
        "circular": Manner(robots=_moved("/robots.txt"), forbids_private=False),
        "huge": Manner(robots=_text(_HUGE)),
        "markup": Manner(
            robots=_status(200, b"<!DOCTYPE html><title>x</title>", content_type=HTML), forbids_private=False
        ),
        "utf16": Manner(robots=_text(_RULES.decode().encode("utf-16"))),
        "bom": Manner(robots=_text(b"\xef\xbb\xbf" + _RULES)),
        "slow": Manner(robots=_text(_RULES + b"Crawl-delay: 0.7\n"), crawl_delay_s=0.7),
        "absurd": Manner(robots=_text(_RULES + b"Crawl-delay: 1e9\n"), crawl_delay_s=3600.0),
        # pages
        "seconds": Manner(page=_third(lambda _now: _busy(429, 3))),
        "date": Manner(page=_third(lambda now: _busy(429, formatdate(now + 4, usegmt=True)))),
        "garbage": Manner(page=_third(lambda _now: _busy(429, "soon"))),
        "zero": Manner(page=_third(lambda _now: _busy(429, "0"))),
        "pause": Manner(page=_third(lambda _now: _busy(503, 2))),
        "burst": Manner(page=_third(lambda _now: _busy(503), until=5)),
        "tired": Manner(latency_s=lambda asked: min(1.2, 0.02 * 1.6**asked)),
    }
)


class ManneredWeb:
    """The hosts and what they answer; counts the requests to each."""

    def __init__(self, hosts: int, port: int, pages: int = PAGES) -> None:
        names = list(MANNERS)
        self.port = port
        self._pages = pages
        self.hosts = {f"{names[n % len(names)]}-{n // len(names)}.test": names[n % len(names)] for n in range(hosts)}
        self._robots_asked: Counter[str] = Counter()
        self._pages_asked: Counter[str] = Counter()

    def manner(self, host: str) -> Manner:
        """Return how a host behaves."""
        return MANNERS[self.hosts[host]]

    def seeds(self) -> list[str]:
        """Return the home pages."""
        return [f"http://{host}:{self.port}/" for host in self.hosts]

    def answer(self, host: str, path: str, now: float) -> tuple[WebAnswer, float]:
        """Return what a host answers now, and after how long."""
        manner = self.manner(host)
        if path == "/rules.txt":
            return WebAnswer(200, body=_RULES), 0.0
        if path == "/robots.txt":
            self._robots_asked[host] += 1
            answer = manner.robots(self._robots_asked[host], host)
            location = answer.location.replace("PORT", str(self.port))
            return WebAnswer(
                answer.status, answer.content_type, answer.body, location, retry_after_s=answer.retry_after_s
            ), 0.0
        self._pages_asked[host] += 1
        asked = self._pages_asked[host]
        return manner.page(asked, now) or _page(host, path, self._pages), manner.latency_s(asked)


def _page(host: str, path: str, pages: int) -> WebAnswer:
    links = "".join(f'<a href="/{n}">{n}</a> ' for n in range(1, pages)) if path == "/" else ""
    private = '<a href="/private/a">a</a>' if path == "/" else ""
    return WebAnswer(
        200, HTML, f"<!DOCTYPE html><title>{path}</title><p>{_words(host, path)}</p>{links}{private}".encode()
    )


def _words(host: str, path: str) -> str:
    """Return a sentence that differs from page to page, so that no two pages are similar."""
    seed = crc32(f"{host}{path}".encode())
    return " ".join(_WORDS[(seed * odd >> 7) % len(_WORDS)] for odd in range(1, 40, 2))
