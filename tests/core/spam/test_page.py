"""The signals of a page, each with the honest pages that look like it."""

from __future__ import annotations

from random import Random

import pytest

from gossamer.core.dedup.minhash import minhash
from gossamer.core.spam.page import MIN_HIDDEN_DOMAINS, Signal, doorway, judge_page, verdict_of
from gossamer.model.records import SpamVerdict
from gossamer.parse.html.html import parse_html
from tests.support.sites.spam_words import ENGLISH, lexicon
from tests.support.sites.spam_words import prose as honest_prose

WORDS = (
    "river harbour window letter garden music stone winter travel paper engine bridge summer kitchen forest history "
    "market doctor island castle village teacher morning evening picture station library mountain science teacher "
    "language weather machine question answer culture country society company process service student program system"
).split()
URL = "https://www.shop.example/cheap-hotel-berlin.html"


def prose(words: int, seed: int = 1) -> str:
    """Return text with as many different words as honest prose has."""
    return honest_prose(lexicon(ENGLISH, seed), words, Random(seed))


def page(body: str, title: str = "Cheap hotel Berlin") -> bytes:
    return f"<html><head><title>{title}</title></head><body>{body}</body></html>".encode()


def judged(body: str, title: str = "Cheap hotel Berlin", url: str = URL) -> list[Signal]:
    document = parse_html(page(body, title))
    return judge_page(document, url, minhash(document.visible)).signals


def signals_of(body: str, title: str = "Cheap hotel Berlin", url: str = URL) -> list[str]:
    return [signal.name for signal in judged(body, title, url)]


# -- keyword stuffing -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Cheap hotel Berlin", "cheap hotel berlin booking discount rooms tonight"),
        ("Günstiges Hotel München", "günstiges hotel münchen zimmer buchen übernachtung preiswert"),
        ("Дешёвые отели Москвы", "дешёвые отели москвы бронирование скидки номера цены"),
    ],
)
def test_a_page_of_its_own_keywords_is_stuffed(title: str, words: str) -> None:
    draw = Random(2)
    of_keywords = [*title.lower().split(), *words.split()]
    body = " ".join(draw.choice(of_keywords) for _ in range(300))
    found = judge_page(parse_html(page(body, title)), "https://x.example/").signals
    assert [signal.name for signal in found] == ["keyword_stuffing"]
    assert " words are those of title and address (most often '" in found[0].reason


def test_stuffing_without_blanks_between_words_is_found() -> None:
    body = "、".join(["北京酒店预订", "北京便宜酒店", "北京酒店"] * 40)
    assert signals_of(body, "北京酒店预订 便宜", "https://x.example/") == ["keyword_stuffing"]


def test_a_phrase_that_is_repeated_all_over_is_stuffing() -> None:
    body = "<p>Book your hotel room in Berlin today at our best price.</p>" * 30
    assert signals_of(body) == ["keyword_stuffing"]


def test_stuffing_below_an_honest_text_is_found_at_the_end_unless_it_is_short() -> None:
    assert signals_of(prose(600) + " cheap hotel berlin" * 10) == []
    (signal,) = judge_page(parse_html(page(prose(600) + " cheap hotel berlin" * 60)), URL).signals
    assert signal.reason == (
        "keyword_stuffing: 100% of the last 90 words are those of title and address (most often 'cheap'), "
        "3 are different"
    )


@pytest.mark.parametrize(
    "body",
    [
        prose(600),
        prose(200) + " Berlin" * 8,
        # A table of yes and no: hardly any words, but not those of its title.
        "<table>" + "<tr><td>yes<td>no<td>partly<td>yes</tr>" * 100 + "</table>",
        "<table>" + "".join(f"<tr><td>Berlin<td>{n * 17 % 97}.{n % 10}<td>{n}</tr>" for n in range(200)) + "</table>",
        # A list in which every entry says something new.
        "".join(f"<li>Hotel {one}{other} Berlin" for one in WORDS[:12] for other in WORDS[:10]),
        # An index of an API.
        "".join(f"<li>hotel.berlin.{one}() in class Berlin{one.title()}" for one in WORDS * 3),
        "".join(f"<li><a href=/{one}{other}>{one}{other}</a>" for one in WORDS for other in WORDS[:8]),
    ],
)
def test_honest_repetition_is_no_stuffing(body: str) -> None:
    assert signals_of(body) == []


# -- what has nothing to do with title and address ------------------------------------------------

ELSEWHERE = ("Welcome", "https://x.example/page7")
PILLS = "pills discount pharmacy order without prescription overnight delivery best price generic".split()


def stuffed(words: list[str], count: int, seed: int = 1) -> str:
    draw = Random(seed)
    return " ".join(draw.choice(words) for _ in range(count))


def refrain(times: int) -> str:
    verse = [f"<p>{prose(24, seed)}</p>" for seed in range(times)]
    chorus = "<p>" + "<br>".join("oh the river runs down to the sea and I run with it my love".split(" and ")) + "</p>"
    return chorus.join(verse)


@pytest.mark.parametrize("markup", ["<p>{}</p>", f"<p>{prose(400)}</p><p>{{}}</p>", "{0}<br>{0}"])
@pytest.mark.parametrize(
    "words", [PILLS, ["北京酒店预订", "北京便宜酒店", "特价"], "цены отели скидки номера даром".split()]
)
def test_stuffing_with_other_words_than_those_of_title_and_address_is_found(markup: str, words: list[str]) -> None:
    (signal,) = judged(markup.format(stuffed(words, 400)), *ELSEWHERE)
    assert signal.name == "keyword_stuffing"
    assert "are different" in signal.reason


@pytest.mark.parametrize("sentences", [1, 5, 40])
def test_sentences_that_return_all_over_are_found_whatever_they_say(sentences: int) -> None:
    draw = Random(3)
    known = [prose(20, seed) + "." for seed in range(sentences)]
    body = "".join(f"<p>{draw.choice(known)} {draw.choice(known)}</p>" for _ in range(4 * sentences + 20))
    (name,) = signals_of(body, *ELSEWHERE)
    assert name in ("keyword_stuffing", "repeated_text")


def test_without_signatures_only_a_few_sentences_are_seen_to_return() -> None:
    known = [prose(12, seed) + "." for seed in range(40)]
    document = parse_html(page("".join(f"<p>{text}</p>" for text in known * 5)))
    assert judge_page(document, ELSEWHERE[1]).signals == []
    assert judge_page(document, ELSEWHERE[1], minhash(document.visible)).signals[0].name == "repeated_text"


def test_sentences_that_never_use_a_word_again_are_generated() -> None:
    draw = Random(5)
    invented = ["".join(draw.choice("aeioubdgklmnprst") for _ in range(8)) for _ in range(2000)]
    body = "".join(f"<p>{' '.join(draw.sample(invented, 9)).capitalize()}.</p>" for _ in range(40))
    assert signals_of(body, *ELSEWHERE) == ["generated_text"]
    korean = [
        "".join(draw.choice("가나다라마바사아자차카타파하거너더러머버서어저처커터퍼허") for _ in range(4))
        for _ in range(2000)
    ]
    assert signals_of("".join(f"<p>{' '.join(draw.sample(korean, 9))}.</p>" for _ in range(40)), *ELSEWHERE) == []
    # A list of names has no sentences.
    names = ", ".join(draw.sample(invented, 400))
    assert signals_of(f"<p>{names}</p>", *ELSEWHERE) == []


@pytest.mark.parametrize(
    "body",
    [
        prose(900),
        refrain(6),
        "<table>" + "<tr><td>yes<td>no<td>partly<td>yes</tr>" * 100 + "</table>",
        # A thread: what people say, each time with the same buttons below it.
        "".join(f"<p>{prose(30, n)}</p><p>Reply Like Share Report Quote, {n} minutes ago</p>" for n in range(40)),
        "".join(f"<a href='/u/{n}'>u</a> <p>{prose(5, n)}</p><div>Reply</div><div>Share</div>" for n in range(60)),
        # Goods: the same words below each of them.
        "".join(f"<p>{prose(3, n)} In stock, delivered within two days. Add to cart {n},99 €</p>" for n in range(40)),
        "".join(f"<a href='/{n}'>page</a> " for n in range(200)),
        '<div style="display:none">'
        + "Close Add to cart Quantity Remove Checkout " * 60
        + f"</div><p>{prose(150)}</p>",
        "<p>" + ", ".join(f"{one}-{other}" for one in WORDS for other in WORDS[:6]) + "</p>",
        f"<p>{' '.join(sorted({*WORDS}))}</p>" * 2 + prose(100),
        "<pre>"
        + "\n".join(f"{n:04} 0x{n * 7:08x} 0x{n * 13:08x} 0x{n:08x} 0x{n * 3:08x} 0x{n:08x}" for n in range(90)),
    ],
)
def test_honest_pages_repeat_something_too(body: str) -> None:
    assert signals_of(body, *ELSEWHERE) == []


# -- hidden text ----------------------------------------------------------------------------------

STUFFED = "cheap hotel berlin booking " * 20
FARM = "".join(f"<a href=https://site{n}.example/>x{n}</a> " for n in range(MIN_HIDDEN_DOMAINS))


@pytest.mark.parametrize(
    ("style", "hidden"),
    [
        ("position:absolute; left:-9999px", prose(80)),
        ("TEXT-INDENT: -5000px", prose(80)),
        ("font-size:0", prose(80)),
        ("font-size: 1px", prose(80)),
        ("display:none", STUFFED),
        ("visibility: hidden", STUFFED),
        ("display:none", FARM),
    ],
)
def test_hidden_text_is_found(style: str, hidden: str) -> None:
    assert signals_of(f'<div style="{style}">{hidden}</div> {prose(300)}') == ["hidden_text"]


@pytest.mark.parametrize(
    "body",
    [
        f'<div style="display:none">{prose(400)}</div>',  # an accordion, or a page that a script shows
        f"<section hidden>{prose(400)}</section>",
        f'<ul style="font-size:0"><li style="font-size:16px">{prose(200)}</ul>',  # no gaps between the columns
        f'<a style="position:absolute;left:-9999px" href="#main">Skip to the main content</a>{prose(200)}',
        f'<div style="left:50%;margin-left:-480px">{prose(200)}</div>',  # a column in the middle
        f'<div style="font-size:0.9em">{prose(200)}</div>',
        f"<noscript>{FARM}{STUFFED}</noscript>{prose(200)}",
        '<div style="display:none">'
        + "".join(f"<a href=https://s{n}.example/share>s</a>" for n in range(12))
        + "</div>",
        '<div style="display:none">' + "".join(f'<a href="/{word}">{word}</a>' for word in WORDS) + "</div>",  # a menu
        '<div style="display:none">' + "Close Add to cart Quantity " * 40 + f"</div>{prose(200)}",
    ],
)
def test_what_honest_pages_hide_is_no_spam(body: str) -> None:
    assert signals_of(body) == []


def test_a_huge_hidden_text_is_not_read_to_the_end() -> None:
    found = judge_page(parse_html(page('<div style="font-size:0">' + "word " * 1_000_000 + "</div>")), URL).signals
    assert "hidden_text: 4000 words and more are moved out of the page or too small to be read" in [
        signal.reason for signal in found
    ]


# -- link farms -----------------------------------------------------------------------------------


def test_a_farm_of_links_with_repeated_texts_is_found() -> None:
    body = "".join(f'<a href="https://site{n}.example/">best casino bonus</a> ' for n in range(60))
    assert signals_of(body, "Links", "https://x.example/") == ["link_farm"]


def test_a_farm_of_links_to_machine_made_domains_is_found() -> None:
    names = [f"{one}-{other}-online" for one in WORDS[:8] for other in WORDS[8:14]]
    body = "".join(f'<a href="//{name}.example/">{name}</a> ' for name in names)
    assert signals_of(body, "Links", "https://x.example/") == ["link_farm"]


@pytest.mark.parametrize(
    "body",
    [
        "".join(f"<li><a href=https://{word}.example/>{word.title()}</a>" for word in WORDS),  # names only
        "".join(f"<li><a href=https://{word}.example/>{word}</a>: {prose(12, n)}" for n, word in enumerate(WORDS)),
        prose(500) + "".join(f"<a href=https://{word}.example/>blog</a> " for word in WORDS),  # a blogroll
        "".join(f"<a href=/{n}>page</a> " for n in range(200)),  # its own pages
        "".join(f"<a href=https://h{n}.shop.example/>page</a> " for n in range(200)),
    ],
)
def test_honest_lists_of_links_are_no_farms(body: str) -> None:
    assert signals_of(body, "Links") == []


# -- doorways -------------------------------------------------------------------------------------


def template_of(body: str, title: str, url: str) -> bytes:
    return judge_page(parse_html(page(body, title)), url).template


def test_pages_that_differ_only_in_the_place_have_one_template() -> None:
    def of(place: str, text: str) -> bytes:
        body = f"{place}: " + "".join(f"<p>{text[at : at + 100]} {place}, 5 stars</p>" for at in range(0, 900, 100))
        return template_of(body, f"Plumber in {place}", f"https://x.example/plumber-{place.lower()}")

    text = prose(150)
    assert of("Hamburg", text) == of("Leipzig", text) != b""
    assert of("Hamburg", prose(150, seed=3)) != of("Hamburg", text)


def test_a_thin_page_that_names_its_subject_a_few_times_has_none() -> None:
    body = f"Widget {prose(150)} Widget Widget"
    assert template_of(body, "Widget", "https://x.example/widget") == b""


def test_a_menu_that_every_page_begins_with_is_no_template() -> None:
    titles = [" ".join(f"Widget {word}" for word in WORDS[at : at + 4]) for at in range(0, len(WORDS) - 4)]
    menu = "<ul>" + "".join(f"<li>{title}" for title in titles) + "</ul>"
    assert template_of(menu + prose(200), "Widget", "https://x.example/widget") == b""


def test_a_page_of_an_api_has_none() -> None:
    body = prose(150) + "".join(f" Widget Widget.set_{word}()" for word in WORDS)
    assert template_of(body, "Widget", "https://x.example/widget") == b""


# -- together -------------------------------------------------------------------------------------


def test_signals_together_are_stronger_than_each_and_the_strongest_is_first() -> None:
    weak, strong = Signal("weak", 0.5, ""), Signal("strong", 0.8, "")
    assert verdict_of([weak, strong]) == SpamVerdict(0.9, ("strong", "weak"))
    assert verdict_of([]) is None
    assert "17 other pages" in doorway(17).reason
