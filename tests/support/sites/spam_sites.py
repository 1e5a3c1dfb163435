"""Sites with spam, and honest sites that look like them: for tests and benchmarks.

A site is a host with pages, made from a seed: the same seed makes the same pages. Kinds of spam are in `SPAM`, honest
ones in `HONEST`; `farm_hosts` are many hosts of one domain with two pages each. Every page leads to the next `FANOUT`.
Spam is not pure: a page may begin with up to `MAX_PROSE` of honest text, and one page in ten of such a site is honest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from msgspec import Struct

from tests.support.sites.spam_words import LANGUAGES, Language, lexicon, prose

FANOUT = 5
MAX_PROSE = 0.5
HONEST_SHARE = 0.1  # of the pages of a site with spam


class SpamPage(Struct, frozen=True):
    """A page: its path, its markup, and whether it is spam."""

    path: str
    body: str
    is_spam: bool


class SpamSite(Struct, frozen=True):
    """A host and its pages, the first of which is the front page."""

    host: str
    kind: str
    pages: list[SpamPage]

    @property
    def is_spam(self) -> bool:
        """Whether most of its pages are spam."""
        return 2 * sum(page.is_spam for page in self.pages) > len(self.pages)


class _Draft:
    """What the parts of a page are made of."""

    def __init__(self, language: Language, seed: int) -> None:
        self.language = language
        self.draw = Random(f"{language.code} {seed}")
        self.words = lexicon(language, seed)
        self.topic = self.draw.sample(language.keywords, 4)

    def prose(self, low: int, high: int) -> str:
        return prose(self.words, self.draw.randint(low, high), self.draw)

    def name(self) -> str:
        return self.words[self.draw.randrange(60, len(self.words))].capitalize()


_Part = tuple[str, str, str]  # path, title, markup
_Maker = Callable[[_Draft, int], _Part]


# -- spam -----------------------------------------------------------------------------------------


def _stuffed(draft: _Draft, number: int) -> _Part:
    place = draft.draw.choice(draft.language.places)
    keywords = [*draft.topic, place, *draft.draw.sample(draft.language.keywords, 4)]
    count = draft.draw.randint(200, 500)
    honest = draft.prose(1, 1 + int(count * draft.draw.random() * MAX_PROSE))
    text = " ".join(draft.draw.choice(keywords) for _ in range(count))
    return f"/{'-'.join(draft.topic[:2])}-{number}", f"{' '.join(draft.topic)} {place}", f"<p>{honest}</p><p>{text}</p>"


def _phrases(draft: _Draft, number: int) -> _Part:
    topic = " ".join(draft.topic[:3])
    sentences = [f"{draft.name()} {topic} {draft.name()}." for _ in range(3)]
    text = " ".join(draft.draw.choice(sentences) for _ in range(draft.draw.randint(40, 90)))
    return f"/{draft.topic[0]}/{number}", f"{topic} {number}", f"<p>{text}</p>"


_STYLES = ("display:none", "position:absolute;left:-9999px", "font-size:0", "text-indent:-5000px", "visibility:hidden")


def _hidden(draft: _Draft, number: int) -> _Part:
    style = draft.draw.choice(_STYLES)
    keywords = [*draft.topic, draft.draw.choice(draft.language.places)]
    stuffing = " ".join(draft.draw.choice(keywords) for _ in range(draft.draw.randint(40, 200)))
    markup = f'<p>{draft.prose(150, 500)}</p><div style="{style}">{stuffing}</div>'
    return f"/page{number}", " ".join(draft.topic), markup


def _link_farm(draft: _Draft, number: int) -> _Part:
    count = draft.draw.randint(25, 120)
    names = [
        "-".join(draft.draw.sample(("best", "online", "shop", "deal", "super", "sale", "top", "free", "now"), 3))
        for _ in range(count)
    ]
    links = " ".join(
        f'<a href="https://{name}{n}.example/">{" ".join(draft.draw.sample(draft.topic, 2))}</a>'
        for n, name in enumerate(names)
    )
    return f"/links/{number}", f"{draft.topic[0]} links", f"{links}<p>{draft.prose(5, 40)}</p>"


def _doorway(draft: _Draft, number: int) -> _Part:
    places = draft.language.places
    place = places[number % len(places)] + ("" if number < len(places) else draft.words[60 + number])
    fixed = Random(f"{draft.language.code} {draft.topic}")
    parts = [prose(draft.words, 20, fixed) for _ in range(draft.draw.choice((10, 10, 10, 9)))]
    text = "".join(f"<p>{draft.topic[0]} {place}: {part}</p>" for part in parts)
    return f"/{draft.topic[0]}-{place}", f"{draft.topic[0]} {place}", text


def _elsewhere(draft: _Draft, number: int) -> _Part:
    """Keywords that neither the title nor the address has."""
    count = draft.draw.randint(200, 500)
    keywords = draft.draw.sample(draft.language.keywords, min(8, len(draft.language.keywords)))
    honest = draft.prose(1, 1 + int(count * draft.draw.random() * MAX_PROSE))
    text = " ".join(draft.draw.choice(keywords) for _ in range(count))
    return f"/{number}", draft.name(), f"<p>{honest}</p><p>{text}</p>"


def _repeated(draft: _Draft, number: int) -> _Part:
    """Sentences of a small stock."""
    stock = [f"{draft.prose(14, 30).capitalize()}." for _ in range(draft.draw.randint(2, 20))]
    texts = [" ".join(draft.draw.choice(stock) for _ in range(3)) for _ in range(3 * len(stock))]
    return f"/story/{number}", draft.name(), "".join(f"<p>{text}</p>" for text in texts)


def _generated(draft: _Draft, number: int) -> _Part:
    """Sentences of words drawn from a dictionary."""
    words = [
        "".join(draft.draw.choice("aeioubdgklmnprstvw") for _ in range(draft.draw.randint(4, 9))) for _ in range(5000)
    ]
    sentences = (" ".join(draft.draw.choice(words) for _ in range(draft.draw.randint(6, 14))) for _ in range(40))
    return f"/post/{number}", draft.name(), "".join(f"<p>{text.capitalize()}.</p>" for text in sentences)


SPAM: Mapping[str, _Maker] = {
    "elsewhere": _elsewhere,
    "repeated": _repeated,
    "generated": _generated,
    "stuffed": _stuffed,
    "phrases": _phrases,
    "hidden": _hidden,
    "link_farm": _link_farm,
    "doorway": _doorway,
}


# -- honest ---------------------------------------------------------------------------------------


def _blog(draft: _Draft, number: int) -> _Part:
    roll = " ".join(f'<a href="https://{draft.name().lower()}.example/">{draft.name()}</a>' for _ in range(40))
    title = f"{draft.name()} {draft.name()}"
    return f"/{number}/{title.lower().replace(' ', '-')}", title, f"<p>{draft.prose(200, 900)}</p><ul>{roll}</ul>"


def _shop(draft: _Draft, number: int) -> _Part:
    kind = draft.topic[0]
    rows = "".join(
        f"<li>{draft.name()} {kind} {draft.name()} {draft.draw.randint(10, 999)},00 € {draft.language.buy}"
        f'<div style="display:none">{draft.language.buy} × {draft.language.more}</div>'
        for _ in range(40)
    )
    return f"/{kind}?page={number}", f"{kind} {number}", f"<ul>{rows}</ul>"


def _directory(draft: _Draft, number: int) -> _Part:
    has_texts = number % 2
    rows = "".join(
        f'<li><a href="https://{draft.name().lower()}.example/">{draft.name()} {draft.name()}</a>'
        + (f" {draft.prose(8, 15)}" if has_texts else "")
        for _ in range(80)
    )
    return f"/links/{number}", f"Links {number}", f"<ul>{rows}</ul>"


def _api(draft: _Draft, number: int) -> _Part:
    name = draft.name()
    rows = "".join(
        f'<li><a href="#{n}">{name}.{draft.name().lower()}()</a> in {name}, {draft.prose(0, 6)}' for n in range(60)
    )
    return f"/api/{name.lower()}.html", f"{name} — {name}", f"<p>{draft.prose(20, 60)}</p><ul>{rows}</ul>"


def _tables(draft: _Draft, number: int) -> _Part:
    cells = ("yes", "no", "partly") if number % 2 else tuple(f"{draft.draw.random() * 900:.2f}" for _ in range(60))
    rows = "".join(
        f"<tr><td>{draft.name()}" + "".join(f"<td>{draft.draw.choice(cells)}" for _ in range(8)) for _ in range(60)
    )
    return f"/table/{number}", f"{draft.topic[0]} {number}", f"<p>{draft.prose(20, 80)}</p><table>{rows}</table>"


def _glossary(draft: _Draft, number: int) -> _Part:
    rows = "".join(f"<dt>{draft.name()}<dd>{draft.prose(3, 10)}" for _ in range(120))
    return f"/words/{number}", f"Words {number}", f"<dl>{rows}</dl>"


def _accordion(draft: _Draft, number: int) -> _Part:
    answers = "".join(
        f'<h3>{draft.prose(4, 8)}</h3><div style="display:none">{draft.prose(40, 120)}</div>' for _ in range(8)
    )
    skip = '<a style="position:absolute;left:-9999px" href="#main">Skip to the main content of this page</a>'
    return f"/faq/{number}", f"{draft.topic[0]} {number}", skip + answers


def _profiles(draft: _Draft, number: int) -> _Part:
    fixed = Random(f"{draft.language.code} {draft.topic}")
    name = draft.name()
    return f"/user/{name.lower()}", name, f"<h1>{name}</h1><p>{prose(draft.words, 200, fixed)}</p><p>{name}</p>"


def _guide(draft: _Draft, number: int) -> _Part:
    place = draft.language.places[number % len(draft.language.places)]
    text = "".join(f"<p>{place}: {draft.prose(20, 60)}</p>" for _ in range(10))
    return f"/guide/{place}-{number}", f"{draft.topic[0]} {place}", text


def _versions(draft: _Draft, number: int) -> _Part:
    chapter, version = divmod(number, 5)
    fixed = Random(f"{draft.topic} {chapter}")
    text = prose(draft.words, 300, fixed)
    return (
        f"/{version}/chapter{chapter}",
        f"{draft.topic[0]} {chapter}",
        f"<p>{draft.topic[0]} {version}</p><p>{text}</p>",
    )


def _thread(draft: _Draft, number: int) -> _Part:
    """What people say, each time with the same buttons below it."""
    buttons = f"{draft.language.more} · {draft.language.buy} · {draft.language.more}"
    posts = "".join(f"<p>{draft.prose(5, 60)}</p><p>{buttons} ({n} min)</p>" for n in range(30))
    return f"/thread/{number}", draft.prose(4, 8), posts


def _songs(draft: _Draft, number: int) -> _Part:
    refrain = "".join(f"{draft.prose(6, 9)}<br>" for _ in range(4))
    verses = (f"<p>{''.join(f'{draft.prose(6, 9)}<br>' for _ in range(6))}</p>" for _ in range(4))
    return f"/song/{number}", draft.prose(2, 4), f"<p>{refrain}</p>".join(verses)


HONEST: Mapping[str, _Maker] = {
    "thread": _thread,
    "songs": _songs,
    "versions": _versions,
    "blog": _blog,
    "shop": _shop,
    "directory": _directory,
    "api": _api,
    "tables": _tables,
    "glossary": _glossary,
    "accordion": _accordion,
    "profiles": _profiles,
    "guide": _guide,
}


# -- sites ----------------------------------------------------------------------------------------


def site(kind: str, host: str, pages: int, seed: int) -> SpamSite:
    """Return a site of a kind."""
    draft = _Draft(LANGUAGES[seed % len(LANGUAGES)], seed)
    maker = SPAM.get(kind) or HONEST[kind]
    made: list[tuple[_Part, bool]] = [(("/", host, f"<p>{draft.prose(100, 200)}</p>"), False)]
    for number in range(1, pages):
        is_spam = kind in SPAM and draft.draw.random() >= HONEST_SHARE
        made.append(((maker if is_spam or kind in HONEST else _blog)(draft, number), is_spam))
    paths = [part[0] for part, _ in made]
    return SpamSite(
        host,
        kind,
        [
            SpamPage(part[0], _page(draft.language, part, paths[number + 1 : number + 1 + FANOUT]), is_spam)
            for number, (part, is_spam) in enumerate(made)
        ],
    )


def _page(language: Language, part: _Part, following: list[str]) -> str:
    _, title, markup = part
    links = "".join(f'<a href="{path}">{language.more}</a> ' for path in following)
    return (
        f'<html lang="{language.code}"><head><meta charset="utf-8"><title>{title}</title></head>'
        f"<body>{markup}<p>{links}</p></body></html>"
    )


def hosting(domain: str, hosts: int, seed: int) -> list[SpamSite]:
    """Return the hosts of a domain where people have blogs and previews: names like a farm's, and honest pages."""
    draw = Random(f"hosting {seed}")
    found = []
    for number in range(hosts):
        words = lexicon(LANGUAGES[0], number)
        label = "-".join(draw.sample(words[40:], 3)) if number % 2 else f"{draw.getrandbits(48):012x}x1y2z3"
        found.append(site("blog", f"{label}.{domain}", 3, seed * 1000 + number))
    return found


def farm_hosts(domain: str, hosts: int, seed: int) -> list[SpamSite]:
    """Return the hosts of a farm: machine-made names in one domain, with two pages of spam each."""
    draw = Random(f"farm {seed}")
    found = []
    for number in range(hosts):
        language = LANGUAGES[draw.randrange(len(LANGUAGES))]
        label = "-".join(draw.sample(("best", "cheap", "hotel", "casino", "bonus", "online", "shop", "deal"), 3))
        draft = _Draft(language, seed * 1000 + number)
        parts = [("/", *_stuffed(draft, 0)[1:]), _stuffed(draft, 1)]
        paths = [part[0] for part in parts]
        pages = [
            SpamPage(path, _page(language, part, paths[1:]), True) for path, part in zip(paths, parts, strict=True)
        ]
        found.append(
            SpamSite(f"{label}-{2 * chr(97 + number // 26)}{chr(97 + number % 26)}.{domain}", "farm_host", pages)
        )
    return found
