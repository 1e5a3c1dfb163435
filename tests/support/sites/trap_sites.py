"""Infinite sites, and honest sites that resemble them: the path and text of each page.

A site has a path and a text for its page number `n`. Traps are infinite and bring nothing new; honest sites have
new content on every page, if only in its numbers. Texts consist of invented words, the same in every run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

_MONTHS = "January February March April May June July August September October November December".split()
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _vocabulary(size: int) -> list[str]:
    chance = random.Random(5)
    return ["".join(chance.choices(_LETTERS, k=chance.randint(3, 9))) for _ in range(size)]


VOCABULARY: Final = _vocabulary(20_000)


def prose(words: int, seed: object) -> str:
    """Return invented prose, the same for the same seed."""
    return " ".join(random.Random(str(seed)).choices(VOCABULARY, k=words))


_SHORT_MENU, _LONG_MENU = prose(40, "short menu"), prose(300, "long menu")


class Site(Struct, frozen=True):
    """A site: the path of a page, and its text."""

    path: Callable[[int], str]
    text: Callable[[int], str]


def _table(n: int) -> str:
    chance = random.Random(n)
    rows = " ".join(f"{chance.uniform(-20, 40):.1f}" for _ in range(60))
    return f"{_SHORT_MENU} Station {n} temperature pressure {rows}"


def _counts(n: int) -> str:
    chance = random.Random(n)
    return f"{_SHORT_MENU} table of counts " + " ".join(str(chance.randrange(100)) for _ in range(40))


def _numbered_words(n: int) -> str:
    chance = random.Random(n)
    return " ".join(f"word{chance.randrange(1000)}" for _ in range(80))


def _listing(n: int) -> str:
    chance = random.Random(n)
    names = chance.choices(VOCABULARY, k=12)
    lines = (
        f"def {chance.choice(names)} ( self , {chance.choice(names)} ) : return self . {chance.choice(names)} [ "
        f"{chance.randrange(50)} ]"
        for _ in range(25)
    )
    return f"Copyright and licence {prose(30, 'licence')} " + " ".join(lines)


def _reference(n: int) -> str:
    name, other, third, fourth = VOCABULARY[n % 19_000 : n % 19_000 + 4]
    return (
        f"{_LONG_MENU} class {name} method {other} returns the {third} of the {fourth} parameters {name} int raises "
        f"ValueError if {prose(15, n)}"
    )


def _token(n: int) -> str:
    return f"{random.Random(n).getrandbits(64):016x}"


_COLOURS, _THINGS = "red blue green oak steel glass".split(), "chair table lamp shelf bowl cup rug clock".split()


def _price(n: int) -> str:
    return f"{random.Random(n).uniform(1, 999):.2f} EUR"


def _record(n: int) -> str:
    return (
        f"{_SHORT_MENU} Record {n} value {n * 7 % 1000} size {n * 13 % 977} made in 19{n % 100:02d} see record {n + 1}"
    )


HONEST: Final[Mapping[str, Site]] = {
    "numbered records": Site(lambda n: f"/record?id={n}", _record),
    "tables of measurements": Site(lambda n: f"/station/{n}", _table),
    "tables of counts": Site(lambda n: f"/counts?day={n}", _counts),
    "numbered words": Site(lambda n: f"/text/{n}", _numbered_words),
    "a dictionary": Site(
        lambda n: f"/word/{VOCABULARY[n % 20_000]}{n // 20_000 or ''}",
        lambda n: f"{_LONG_MENU} {VOCABULARY[n % 20_000]} noun {prose(8, n)}",
    ),
    "an API reference": Site(lambda n: f"/api/{VOCABULARY[n % 20_000]}-{n}", _reference),
    "code listings": Site(lambda n: f"/src/file{n}.html", _listing),
    "an archive by date": Site(
        lambda n: f"/{2000 + n // 300}/{1 + n // 25 % 12:02d}/{1 + n % 25:02d}/",
        lambda n: f"{_LONG_MENU} published {2000 + n // 300} {prose(250, n)}",
    ),
    "thin products": Site(
        lambda n: f"/product/{VOCABULARY[n % 20_000]}-{VOCABULARY[(n * 7 + 1) % 20_000]}-{n}",
        lambda n: (
            f"{VOCABULARY[n % 20_000]} {VOCABULARY[(n * 7 + 1) % 20_000]} {random.Random(n).uniform(1, 99):.2f} EUR"
        ),
    ),
    "products with a number and a price": Site(lambda n: f"/p/{n}", lambda n: f"Product {n} Price: {_price(n)} Home"),
    "products of few words": Site(
        lambda n: f"/products/{n}", lambda n: f"{_COLOURS[n % 6]} {_THINGS[n // 6 % 8]} {n} Price: {_price(n)} Home"
    ),
    "articles by a random id": Site(lambda n: f"/read/{_token(n)}", lambda n: f"{_LONG_MENU} {prose(60, n)}"),
    "reviews, most of them missing": Site(
        lambda n: f"/reviews/{VOCABULARY[n % 20_000]}",
        lambda n: f"{_SHORT_MENU} Nobody has reviewed this yet" if n % 4 else f"{_SHORT_MENU} {prose(40, n)}",
    ),
    "keywords of a language": Site(
        lambda n: f"/en/cpp/keyword/{VOCABULARY[n % 20_000]}.html",
        lambda n: f"{_LONG_MENU} {VOCABULARY[n % 20_000]} Usage {VOCABULARY[n % 97]} {VOCABULARY[n % 13]} See also",
    ),
    "an index of names": Site(
        lambda n: f"/index/{VOCABULARY[n % 20_000]}.html",
        lambda n: f"{_SHORT_MENU} index {VOCABULARY[n % 20_000]} " + " ".join(VOCABULARY[n * 11 % 17_000 :][:30]),
    ),
    "pages of a forum": Site(
        lambda n: f"/viewtopic.php?f={n % 7}&t={n}", lambda n: f"{_LONG_MENU} {prose(20, f'post {n}')} quote reply"
    ),
    "prices": Site(
        lambda n: f"/offer?item={n}",
        lambda n: f"{_SHORT_MENU} {VOCABULARY[n % 20_000]} costs {random.Random(n).uniform(1, 99):.2f} EUR",
    ),
}

_PRODUCTS = [f"{VOCABULARY[i]} {VOCABULARY[i + 50]} {VOCABULARY[i + 99]} {i + 10}.99 add to cart" for i in range(30)]
_SHORT_PRODUCTS = [f"{VOCABULARY[i]} {VOCABULARY[i + 50]} {i}.99" for i in range(30)]
_BLOCKS = [prose(12, f"block {n}") for n in range(40)]


def _filters(n: int) -> list[int]:
    """Return the chosen value of each of eight filters."""
    return [n >> 2 * number & 3 for number in range(8)]


def _calendar(n: int) -> str:
    month, year = n % 12, 2020 + n // 12
    days = " ".join(str(day) for day in range(1, 32))
    return (
        f"{_SHORT_MENU} {_MONTHS[month]} {year} Mo Tu We Th Fr Sa Su {days} {_MONTHS[month - 1]} "
        f"{_MONTHS[(month + 1) % 12]} no events"
    )


def _facets(n: int) -> str:
    chance = random.Random(n)
    shown = sorted(chance.sample(range(30), chance.randint(5, 15)))
    chosen = " ".join(f"filter{number} value{value}" for number, value in enumerate(_filters(n)))
    return f"{_SHORT_MENU} {chosen} " + " ".join(_PRODUCTS[number] for number in shown)


def _shuffled_facets(n: int) -> str:
    chance = random.Random(n)
    return f"{_SHORT_MENU} " + " ".join(chance.sample(_SHORT_PRODUCTS, chance.randint(5, 15)))


def _sentences(n: int) -> str:
    return f"{_SHORT_MENU} " + " ".join(random.Random(n).sample(_BLOCKS, 6))


def _clock(n: int) -> str:
    return f"{_SHORT_MENU} generated at {n // 3600 % 24}:{n // 60 % 60}:{n % 60} {prose(60, 'clock')}"


TRAPS: Final[Mapping[str, Site]] = {
    "a calendar": Site(lambda n: f"/calendar?offset={n}", _calendar),
    "a calendar with a long menu": Site(lambda n: f"/agenda?offset={n}", lambda n: f"{_LONG_MENU} {_calendar(n)}"),
    "session ids": Site(
        lambda n: f"/shop/{_token(n)}/list", lambda n: f"{_SHORT_MENU} your session {_token(n)} {prose(60, 'shop')}"
    ),
    "facets": Site(
        lambda n: "/shop?" + "&".join(f"f{number}={value}" for number, value in enumerate(_filters(n))), _facets
    ),
    "facets with a long menu": Site(
        lambda n: "/store?" + "&".join(f"f{number}={value}" for number, value in enumerate(_filters(n))),
        lambda n: f"{_LONG_MENU} {_facets(n)}",
    ),
    "facets in any order": Site(lambda n: f"/items?sort={n % 7}&view={n}", _shuffled_facets),
    "an endless path": Site(
        lambda n: f"/a{n}/b{n // 7}/c{n // 49}", lambda n: f"{_SHORT_MENU} folder {prose(30, 'folder')}"
    ),
    "random URLs with a template": Site(
        lambda n: f"/{_token(n)}", lambda n: f"{_SHORT_MENU} all about {_token(n)} {prose(40, 'template')}"
    ),
    "random sentences": Site(lambda n: f"/story/{n}", _sentences),
    "the time of day": Site(lambda n: f"/now?n={n}", _clock),
    "a calendar of tiny pages": Site(
        lambda n: f"/cal/{2000 + n // 12}/{1 + n % 12:02d}/",
        lambda n: f"{_MONTHS[n % 12]} {2000 + n // 12} calendar of {1 + n % 12:02d}/{2000 + n // 12}",
    ),
    "an infinite search": Site(
        lambda n: f"/search?q={VOCABULARY[n * 31 % 20_000]}+{VOCABULARY[n * 17 % 20_000]}",
        lambda n: (
            f"{_SHORT_MENU} results for {VOCABULARY[n * 31 % 20_000]} {VOCABULARY[n * 17 % 20_000]} nothing was found"
        ),
    ),
    "invented items": Site(
        lambda n: f"/item/{VOCABULARY[n * 31 % 20_000]}-{VOCABULARY[n * 17 % 20_000]}",
        lambda n: f"{VOCABULARY[n * 31 % 20_000].title()} {VOCABULARY[n * 17 % 20_000].title()}",
    ),
    "a counter": Site(
        lambda n: f"/page/{n}",
        lambda n: f"Page {n} This is page number {n} of our numbered pages next {n + 1} previous {n - 1}",
    ),
}


def turning(honest: Site, trap: Site, pages: int) -> Site:
    """Return a site with the texts of an honest one for a number of pages, then of a trap, all under one pattern."""
    return Site(lambda n: f"/item/{n}", lambda n: honest.text(n) if n <= pages else trap.text(n - pages))
