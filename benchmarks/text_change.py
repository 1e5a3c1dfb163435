"""How often is a page called changed that is not, and how often is a change missed? On real pages, with planted edits.

    python -m benchmarks.text_change [--pages 2000] [--seed 1]

Pages are documentation that Debian packages install (Python, PostgreSQL, Django). Of each, two versions are made that
differ in one thing, as HTML; they are parsed and compared as in a crawl. Sentences come from other pages of the same
documentation, so that an advertisement or a new paragraph shares its words with the page.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

from gossamer.core.revisit.text_change import has_changed, sketch_of
from gossamer.parse.html.html import parse_html

FOLDERS = ("python3.11/html", "postgresql-doc-15/html", "python-django-doc/html")
MIN_WORDS = 60  # less is no page: an anchor's redirect, an empty index
PARAGRAPH = re.compile(r"<p>(?:(?!</?p\b).)*</p>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
TITLE = re.compile(r"<title>.*?</title>", re.DOTALL)

MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
UNITS = {
    "{} {} ago": "minutes hours days weeks months",
    "vor {} {}": "Minuten Stunden Tagen Wochen Monaten",
    "il y a {} {}": "minutes heures jours semaines mois",
    "{}{}前": "分 時間 日 週間 か月",
}
Words: TypeAlias = list[str]  # sentences of other pages
Change: TypeAlias = Callable[[str, random.Random, Words], str]


def _date(rng: random.Random) -> str:
    language = rng.choice(list(MONTHS))
    month, day, year = rng.choice(MONTHS[language].split()), rng.randrange(1, 29), rng.randrange(2010, 2030)
    shapes = (
        f"{day} {month} {year}",
        f"{rng.choice(DAYS.split())}, {month} {day}, {year}",
        f"{day} de {month} de {year}",
        f"{day}. {month} {year}, {rng.randrange(24)}:{rng.randrange(10, 60)} Uhr",
        f"{year}-{rng.randrange(10, 13)}-{day:02}",
        f"{year}年{rng.randrange(1, 13)}月{day}日",
        f"{rng.choice(DAYS.split())[:3]} {month[:3]} {day} {rng.randrange(24)}:00:00 UTC {year}",
    )
    return rng.choice(shapes)


def _ago(rng: random.Random, shape: str) -> str:
    return shape.format(rng.randrange(1, 60), rng.choice(UNITS[shape].split()))


def _words(rng: random.Random, words: Words, fewest: int, most: int) -> str:
    return " ".join(rng.choice(words).split()[: rng.randrange(fewest, most + 1)])


def _block(rng: random.Random, words: Words, kind: str, language: int) -> str:
    """Return what differs between two visits without being a change."""
    match kind:
        case "date":
            return f"<p>Last updated: {_date(rng)}</p>"
        case "date within a sentence":
            return f"<p>This page was generated on {_date(rng)} by the system and is served from a cache of ours.</p>"
        case "clock and counter":
            return f"<div>{rng.randrange(24)}:{rng.randrange(10, 60)} · {rng.randrange(10**6):,} views</div>"
        case "thirty times ago":
            shape = list(UNITS)[language % len(UNITS)]  # a page has one language
            return "".join(f"<li>Answer by a reader, {_ago(rng, shape)}</li>" for _ in range(30))
        case "advertisement of two lines":
            return f"<div>{_words(rng, words, 8, 12)}<br>{_words(rng, words, 8, 12)}</div>"
        case "quote of a line":
            return f"<blockquote>{_words(rng, words, 8, 15)}</blockquote>"
        case "token":
            return f"<p>Session {rng.getrandbits(128):032x}</p>"
        case "five related links":
            return "<ul>" + "".join(f"<li><a href=/>{_words(rng, words, 2, 5)}</a></li>" for _ in range(5)) + "</ul>"
        case _:
            kinds = ("date", "clock and counter", "quote of a line", "token")
            return "".join(_block(rng, words, each, language) for each in kinds)


NOISE = (
    "date",
    "date within a sentence",
    "clock and counter",
    "thirty times ago",
    "advertisement of two lines",
    "quote of a line",
    "token",
    "five related links",
    "date, counter, quote and token together",
)


def _paragraph(rng: random.Random, words: Words, count: int) -> str:
    text = ""
    while len(text.split()) < count:
        text += rng.choice(words) + " "
    return "<p>" + " ".join(text.split()[:count]) + "</p>"


def _added(count: int, html: str, rng: random.Random, words: Words) -> str:
    at = rng.choice([found.end() for found in PARAGRAPH.finditer(html)])
    return html[:at] + _paragraph(rng, words, count) + html[at:]


def _removed(html: str, rng: random.Random, words: Words) -> str:
    found = rng.choice([each for each in PARAGRAPH.finditer(html) if len(TAG.sub("", each[0]).split()) >= 40])
    return html[: found.start()] + html[found.end() :]


def _rewritten(html: str, rng: random.Random, words: Words) -> str:
    found = rng.choice([each for each in PARAGRAPH.finditer(html) if len(TAG.sub("", each[0]).split()) >= 40])
    return html[: found.start()] + _paragraph(rng, words, len(TAG.sub("", found[0]).split())) + html[found.end() :]


def _title(html: str, rng: random.Random, words: Words) -> str:
    return TITLE.sub(lambda _: f"<title>{_words(rng, words, 4, 8)}</title>", html, count=1)


def _headlines(html: str, rng: random.Random, words: Words) -> str:
    return "<ul>" + "".join(f"<li>{_words(rng, words, 6, 10)}</li>" for _ in range(10)) + "</ul>" + html


def _product(html: str, rng: random.Random, words: Words) -> str:
    shapes = ("€ {0}", "${0}", "{0} EUR", "{0} zł", "£{0}", "{0}円")
    price = shapes[len(html) % len(shapes)].format(f"{rng.randrange(1, 2000)}.{rng.randrange(10, 99)}")
    about = words[len(html) % len(words)]
    return f"<h1>{about[:30]}</h1><p>{about}</p><p>Only {price} in stock</p>"


EDITS: Mapping[str, Change] = {
    "paragraph of 40 words added": partial(_added, 40),
    "paragraph of 60 words added": partial(_added, 60),
    "paragraph (from 40 words) removed": _removed,
    "paragraph (from 40 words) rewritten": _rewritten,
    "title": _title,
    "ten new headlines": _headlines,
    "price in a short page": _product,
}


def _sketch(html: str) -> bytes:
    document = parse_html(html.encode())
    return sketch_of(document.visible, document.title)


def _pages(count: int, rng: random.Random) -> tuple[list[str], Words]:
    """Return pages with at least one long paragraph, and sentences of all of them."""
    paths = [path for name in FOLDERS for path in sorted(Path("/usr/share/doc", name).rglob("*.html"))]
    rng.shuffle(paths)
    pages: list[str] = []
    sentences: Words = []
    for path in paths:
        html = path.read_text("utf-8", "replace")
        paragraphs = [TAG.sub("", found[0]).split() for found in PARAGRAPH.finditer(html)]
        if max(map(len, paragraphs), default=0) >= 40 and TITLE.search(html):
            pages.append(html)
            sentences += [" ".join(words) for words in paragraphs if len(words) >= 15]
        if len(pages) == count:
            break
    return pages, sentences


def _noisy(html: str, rng: random.Random, words: Words, kind: str) -> str:
    at = rng.choice([0, len(html) // 2, len(html)])
    at = html.find("<p>", at) if html.find("<p>", at) >= 0 else len(html)
    first, second = (html[:at] + _block(rng, words, kind, len(html)) + html[at:] for _ in range(2))
    return first + "\0" + second


def main() -> None:
    """Print false and missed changes."""
    parser = argparse.ArgumentParser(prog="text_change")
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    pages, words = _pages(given.pages, rng)
    if not pages:
        raise SystemExit("text_change: no documentation pages in /usr/share/doc; expected: make bench-tools")
    print(f"{len(pages)} pages; called changed that are not:")
    for kind in NOISE:
        pairs = (_noisy(html, rng, words, kind).split("\0") for html in pages)
        false = sum(has_changed(_sketch(one), _sketch(other)) for one, other in pairs)
        print(f"  {kind:42} {false:5}  {false / len(pages):7.2%}")
    print("changes missed:")
    for name, edit in EDITS.items():
        missed = 0
        for html in pages:
            before = edit(html, rng, words) if edit in (_headlines, _product) else html
            missed += not has_changed(_sketch(before), _sketch(edit(html, rng, words)))
        print(f"  {name:42} {missed:5}  {missed / len(pages):7.2%}")
    texts = [parse_html(html.encode()).visible[:10_000] for html in pages]
    texts = [text for text in texts if len(text) == 10_000]
    started = time.perf_counter()
    for text in texts:
        sketch_of(text)
    print(f"{(time.perf_counter() - started) / max(len(texts), 1) * 1e6:.1f} µs per sketch of 10 KB of text")


if __name__ == "__main__":
    main()
