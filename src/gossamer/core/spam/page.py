"""What speaks for spam in a page? Signals with a name, a score, and a sentence with the numbers that decided.

| signal             | given if                                                                                      |
|--------------------|-----------------------------------------------------------------------------------------------|
| `keyword_stuffing` | the words of title and address are most of the text, which has hardly any others; or hardly   |
|                    | any of the words of its lines are different                                                   |
| `repeated_text`    | most of its lines repeat what others say, to the letter                                       |
| `generated_text`   | sentences that never use a word again                                                         |
| `hidden_text`      | many words are moved out of the page or too small to be read; or what is hidden is stuffed, or |
|                    | leads to many domains                                                                         |
| `link_farm`        | hardly any text, links to very many domains, with repeated or machine-made names              |
| `doorway`          | (by the engine) other pages of the host differ only in the words of title and address         |

Each has an honest case beside it that must not be marked: tables, word lists and indexes of names (every entry says
something new, and they are no lines of running text); refrains; menus, accordions and texts for screen readers
(short, or shown on demand); link lists (of different names); thin pages (which name their subject once or twice). A
page alone has no consequences: `core/spam/hosts.py`.

Pure. 20 µs for a page with 10 KB of text, of which 16 are the words (`core/spam/words.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import unquote

from msgspec import Struct

from gossamer.core.dedup.shingles import MAX_CHARS
from gossamer.core.spam.names import is_machine_made
from gossamer.core.spam.words import HEAD_BYTES, HEAD_WORDS, Repetition, repetition_of
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of, path_of
from gossamer.model.exchanges import Document, HiddenPart
from gossamer.model.records import SpamVerdict

MIN_WORDS = 120
MAX_VOCABULARY = 0.25
MIN_KEYWORDS = 0.25  # of the words
MAX_VOCABULARY_OF_PHRASES = 0.2  # of whole sentences that return
MIN_KEYWORDS_OF_PHRASES = 0.12
MIN_TAIL_WORDS = 60  # at the end of a text whose beginning may be honest
MIN_TAIL_KEYWORDS = 0.35
MAX_TAIL_VOCABULARY = 0.2
MAX_PROSE_VOCABULARY = 0.95  # of 90 words in sentences, a fifth to a third occurred before
MIN_HIDDEN_WORDS = 50
MAX_HIDDEN_BYTES = 20_000  # in which words are counted
MIN_HIDDEN_DOMAINS = 20  # that links in hidden parts lead to; buttons for sharing are fewer
REMOVED = 1  # the only way of `parse/html/hiding` to hide that honest pages use for long texts
MIN_RUN = 100  # words of running text
MAX_RUN_VOCABULARY = 0.2
MIN_TAIL_RUN = 30
MAX_TAIL_RUN_VOCABULARY = 0.25
MIN_REPEATING_WORDS = 150
MIN_RUN_SHARE = 0.5  # of the words: in tables and menus texts are repeated, too
MAX_NEW = 0.3  # of the shingles
MAX_HIDDEN_SHARE = 0.2  # of a text: buttons of dialogs return without being spam
MIN_SALAD = 120  # words of running text, without codes
MIN_SALAD_VOCABULARY = 0.9  # of 2,000 real pages none has more than 0.85, unless in ideographs
MAX_WORDS_PER_SENTENCE = 30  # on average: more are no sentences, but a list
MIN_LINKS = 30
MAX_WORDS_PER_LINK = 8
MIN_FOREIGN = 0.7  # of the links
MIN_DOMAINS = 30
MAX_LINK_VOCABULARY = 0.35
MIN_MACHINE_MADE = 0.5  # of the domains
MAX_LINKS_READ = 1000
MIN_ECHOES = 8  # of a word of the address, in a text that may be a template
MIN_ECHO_SHARE = 0.02
MIN_TEMPLATE_WORDS = 80
MAX_TEMPLATE_CODES = 0.1  # of the words: pages of an API differ in little else
DOORWAY = "doorway"
DOORWAY_SCORE = 0.7
_SENTENCE_END = rb"[a-z\x80-\xff][.!?](?=\s|$)"
_EAST_ASIAN = rb"[\xe3-\xed]"  # pairs of characters, which count as words, and Korean words seldom return
_COMMON_LABELS = frozenset({"", "www."})


class Signal(Struct, frozen=True):
    name: str
    score: float  # from 0 to 1
    reason: str


class PageSpam(Struct, frozen=True):
    signals: list[Signal] = []
    template: bytes = b""  # what is left of its text without the words of title and address, if it may be a template
    is_prose: bool = True  # it repeats some words, as sentences do; a text of few words does not


NOTHING = PageSpam()


def judge_page(document: Document, url: str, signature: bytes = b"") -> PageSpam:
    """Return what speaks for spam in a page; without the MinHash signature of its text repetition is not seen."""
    keys = _keys(document.title, url)
    text = document.visible
    words = repetition_of(text, *keys)
    signals: list[Signal] = []
    if words.words >= MIN_WORDS and (
        words.hits >= MIN_KEYWORDS_OF_PHRASES * words.words or words.tail_hits >= MIN_TAIL_KEYWORDS * words.tail_words
    ):
        _add(signals, _stuffing(words))
    links = len(document.hrefs)
    if words.run >= MIN_RUN and not signals and document.words > MAX_WORDS_PER_LINK * links:
        _add(signals, _running(words, document, signature, keys))
    if document.hidden:
        _add(signals, _hidden(text, document.hidden, keys, url))
    if links >= MIN_LINKS and document.words <= MAX_WORDS_PER_LINK * links:
        _add(signals, _link_farm(document.hrefs, words, document.words, url))
    template = b""
    if words.echoes >= MIN_ECHOES and words.rest_words >= MIN_TEMPLATE_WORDS:
        is_dense = words.echoes >= MIN_ECHO_SHARE * words.words
        if is_dense and words.codes <= MAX_TEMPLATE_CODES * words.words:
            template = words.rest.to_bytes(8)
    is_prose = _is_prose(words)
    return PageSpam(signals, template, is_prose) if signals or template or not is_prose else NOTHING


def _is_prose(words: Repetition) -> bool:
    """Return whether words are repeated as sentences repeat theirs, at the end of a text: before that may be a menu."""
    if words.tail_words >= MIN_TAIL_WORDS:
        return words.tail_distinct < MAX_PROSE_VOCABULARY * words.tail_words
    return words.words >= MIN_TAIL_WORDS and words.distinct < MAX_PROSE_VOCABULARY * words.words


def _keys(title: str, url: str) -> tuple[bytes, bytes]:
    """Return the texts whose words are keywords: the title, and the address without its domain."""
    if not title.isascii():
        title = f"{title} {title.lower()}"  # of words, only ASCII letters are brought to lower case
    path = path_of(url)
    if "%" in path:
        path = unquote(path)
    return title.encode(), (_own_labels(host_of(url)) + path).encode()


@lru_cache(maxsize=1024)  # pages of a host follow each other
def _own_labels(host: str) -> str:
    """Return what stands before the domain in the name of a host, unless it is the same everywhere."""
    labels = host[: -len(registrable_domain(host))]
    return "" if labels in _COMMON_LABELS else labels


def verdict_of(signals: Sequence[Signal]) -> SpamVerdict | None:
    """Return what several signals say together; None if there are none."""
    if not signals:
        return None
    doubt = 1.0
    for signal in signals:
        doubt *= 1.0 - signal.score
    ranked = sorted(signals, key=lambda signal: (-signal.score, signal.name))
    return SpamVerdict(round(1.0 - doubt, 3), tuple(signal.name for signal in ranked))


def with_signal(before: SpamVerdict | None, signal: Signal) -> SpamVerdict:
    if before is None:
        return SpamVerdict(signal.score, (signal.name,))
    score = round(1.0 - (1.0 - before.score) * (1.0 - signal.score), 3)
    is_first = signal.score > before.score
    return SpamVerdict(score, (signal.name, *before.signals) if is_first else (*before.signals, signal.name))


def doorway(pages: int) -> Signal:
    """Return the signal of a page whose text other pages of its host have, but for the words of title and address."""
    reason = f"doorway: its text is that of {pages} other pages of its host, but for the words of title and address"
    return Signal(DOORWAY, DOORWAY_SCORE, reason)


def _add(signals: list[Signal], signal: Signal | None) -> None:
    if signal is not None:
        signals.append(signal)


def _is_stuffed(words: Repetition) -> bool:
    """Return whether the words of title and address are most of a whole text."""
    if words.vocabulary <= MAX_VOCABULARY and words.keyword_share >= MIN_KEYWORDS:
        return True
    return words.vocabulary <= MAX_VOCABULARY_OF_PHRASES and words.keyword_share >= MIN_KEYWORDS_OF_PHRASES


def _is_stuffed_at_the_end(words: Repetition) -> bool:
    enough = words.tail_words >= MIN_TAIL_WORDS and words.tail_hits >= MIN_TAIL_KEYWORDS * words.tail_words
    return enough and words.tail_distinct <= MAX_TAIL_VOCABULARY * words.tail_words


def _stuffing(words: Repetition) -> Signal | None:
    if _is_stuffed(words):
        share = words.keyword_share
        where = f"{words.words} words"
        distinct = words.distinct
    elif _is_stuffed_at_the_end(words):
        share = words.tail_hits / words.tail_words
        where = f"the last {words.tail_words} words"
        distinct = words.tail_distinct
    else:
        return None
    reason = (
        f"keyword_stuffing: {share:.0%} of {where} are those of title and address "
        f"(most often '{words.top.decode('utf-8', 'replace')}'), {distinct} are different"
    )
    return Signal("keyword_stuffing", round(min(0.95, 0.5 + share), 3), reason)


def _running(words: Repetition, document: Document, signature: bytes, keys: tuple[bytes, bytes]) -> Signal | None:
    """Return the signal of what the lines of a text say, whatever title and address are."""
    text = document.visible
    found = _stuffed_lines(words)
    if found is not None:
        return found if not document.hidden else _stuffed_lines(repetition_of(_shown(text, document.hidden), *keys))
    is_long = document.words >= MIN_REPEATING_WORDS and words.run >= MIN_RUN_SHARE * words.words
    hidden = sum(part.end - part.start for part in document.hidden) if document.hidden else 0
    if is_long and signature and hidden <= MAX_HIDDEN_SHARE * len(text):
        new = _distinct_shingles(signature)
        count = document.words * min(len(text), MAX_CHARS) // len(text)  # of these the signature is
        if new <= MAX_NEW * count:
            reason = f"repeated_text: of {count} words about {count - new} stand in texts that it has several times"
            return Signal("repeated_text", 0.7, reason)
    salad = words.run - words.run_codes
    if salad >= MIN_SALAD and words.run_distinct - words.run_codes >= MIN_SALAD_VOCABULARY * salad:
        sentences = len(re.findall(_SENTENCE_END, text[:HEAD_BYTES]))
        is_prose = sentences * MAX_WORDS_PER_SENTENCE >= min(document.words, HEAD_WORDS)
        if is_prose and not re.search(_EAST_ASIAN, text[:HEAD_BYTES]):
            different = words.run_distinct - words.run_codes
            reason = f"generated_text: {different} of {salad} words in its sentences are different"
            return Signal("generated_text", 0.5, reason)
    return None


def _stuffed_lines(words: Repetition) -> Signal | None:
    if words.long_run >= MIN_RUN and words.long_distinct <= MAX_RUN_VOCABULARY * words.long_run:
        return _few_words(words.long_distinct, words.long_run, "")
    tail = words.tail_long
    if tail >= MIN_TAIL_RUN and words.tail_long_distinct <= MAX_TAIL_RUN_VOCABULARY * tail:
        return _few_words(words.tail_long_distinct, tail, "last ")
    return None


def _shown(text: bytes, hidden: Sequence[HiddenPart]) -> bytes:
    """Return a text without its hidden parts."""
    parts = []
    end = 0
    for part in sorted(hidden, key=lambda part: part.start):
        parts.append(text[end : part.start])
        end = max(end, part.end)
    return b"\n".join([*parts, text[end:]])


def _few_words(distinct: int, words: int, which: str) -> Signal:
    reason = f"keyword_stuffing: only {distinct} of the {which}{words} words in its long lines are different"
    return Signal("keyword_stuffing", 0.7, reason)


def _distinct_shingles(signature: bytes) -> int:
    """Return how many different shingles a text has, about: 9 % is the standard deviation.

    Each lane of a MinHash signature is the least of as many uniform numbers of 32 bits.
    """
    lanes = memoryview(signature).cast("I")
    return round((len(lanes) << 32) / (sum(lanes) + 1)) - 1


def _hidden(text: bytes, parts: Sequence[HiddenPart], keys: tuple[bytes, bytes], url: str) -> Signal | None:
    """Return the signal of what is hidden: disguised at length, or stuffed, or with links to many domains."""
    hrefs = [href for part in parts for href in part.hrefs]
    if len(hrefs) >= MIN_HIDDEN_DOMAINS:
        domains, _ = _foreign_domains(hrefs, url)
        if len(domains) >= MIN_HIDDEN_DOMAINS:
            reason = f"hidden_text: {len(hrefs)} hidden links lead to {len(domains)} other domains"
            return Signal("hidden_text", 0.8, reason)
    if sum(part.end - part.start for part in parts) < 2 * MIN_HIDDEN_WORDS:
        return None  # a word and a blank have two bytes at least
    disguised = b" ".join(text[part.start : part.end] for part in parts if part.how != REMOVED)
    count = len(disguised[:MAX_HIDDEN_BYTES].split())
    if count >= MIN_HIDDEN_WORDS:
        more = " and more" if len(disguised) > MAX_HIDDEN_BYTES else ""
        reason = f"hidden_text: {count} words{more} are moved out of the page or too small to be read"
        return Signal("hidden_text", 0.7, reason)
    words = repetition_of(b" ".join(text[part.start : part.end] for part in parts), *keys)
    if words.words >= MIN_HIDDEN_WORDS and _is_stuffed(words):
        reason = f"hidden_text: {words.keyword_share:.0%} of {words.words} hidden words are those of title and address"
        return Signal("hidden_text", 0.8, reason)
    return None


def _foreign_domains(hrefs: Sequence[str], url: str) -> tuple[set[str], int]:
    """Return the other domains that links lead to, and how many links do."""
    domains: set[str] = set()
    links = 0
    own = registrable_domain(host_of(url))
    for href in hrefs[:MAX_LINKS_READ]:
        scheme, mark, rest = href.partition("//")
        if not mark or scheme.lower() not in ("http:", "https:", ""):
            continue
        host = rest.partition("/")[0].partition("?")[0].rpartition("@")[2].partition(":")[0].lower()
        domain = registrable_domain(host)
        if domain and domain != own:
            domains.add(domain)
            links += 1
    return domains, links


def _link_farm(hrefs: Sequence[str], words: Repetition, count: int, url: str) -> Signal | None:
    read = min(len(hrefs), MAX_LINKS_READ)
    domains, foreign = _foreign_domains(hrefs, url)
    if len(domains) < MIN_DOMAINS or foreign < MIN_FOREIGN * read:
        return None
    made = sum(is_machine_made(domain.partition(".")[0]) for domain in domains)
    is_repeated = words.words >= MIN_LINKS and words.vocabulary <= MAX_LINK_VOCABULARY
    if not is_repeated and made < MIN_MACHINE_MADE * len(domains):
        return None
    reason = (
        f"link_farm: {foreign} of {read} links lead to {len(domains)} other domains, {made} of them with machine-made "
        f"names, beside {count} words, {words.distinct} of {words.words} different"
    )
    return Signal("link_farm", 0.7, reason)
