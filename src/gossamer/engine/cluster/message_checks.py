"""What may be received of a message that a ledger delivers: anybody who can write there can write anything.

A message is decoded, and each entry is compared with what a node can have sent. What cannot be decoded is left out
wholly, of the rest the entries that are impossible: a URL in another form than the canonical one, a number beyond its
range, an origin that is none. The caller puts the message aside before it is removed from its inbox. What a node could
have sent is judged by the receiver as ever: scope, addresses and robots.txt. About 1.5 µs per link, in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from gossamer.core.robots.answers import MAX_ROBOTS_HOPS
from gossamer.core.robots.rules import MAX_ROBOTS_BYTES
from gossamer.core.url.forms import canonical, host_of, origin_of
from gossamer.engine.cluster.link_messages import (
    LinkMessage,
    NodeMessage,
    RequisiteMessage,
    RobotsAnswer,
    RobotsQuestion,
    decode_message,
)
from gossamer.model.records import FetchKind, UrlId
from gossamer.model.state import DomainRank

MAX_ENTRIES = 100_000  # of a message: they are part of one commit, 10 to 25 µs each
MAX_DEPTH = 1_000_000
MAX_SEEDS = 1 << 32
MAX_TEXT_CHARS = 1_000
_MAX_PRIORITY = (1 << 31) - 1  # see `core/ledger/rows`
_LINK_KINDS = (FetchKind.PAGE, FetchKind.SITEMAP)
_Entry = TypeVar("_Entry")


class CheckedMessage(NamedTuple):
    """What may be received of a message, and what is wrong with the rest; empty if nothing is."""

    message: NodeMessage
    problem: str = ""


def checked(data: bytes) -> CheckedMessage:
    """Decode a message without what no node can have sent."""
    try:
        message = decode_message(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return CheckedMessage(NodeMessage(), f"it cannot be decoded ({error})")
    entries = len(message.links) + len(message.requisites) + len(message.questions) + len(message.answers)
    if entries + len(message.ranks) + len(message.homes) > MAX_ENTRIES:
        return CheckedMessage(NodeMessage(), f"it has more than {MAX_ENTRIES:,} entries")
    wrong: list[str] = []
    kept = NodeMessage(
        links=_kept(message.links, _link_problem, "a link", wrong),
        questions=_kept(message.questions, _question_problem, "a question about robots.txt", wrong),
        answers=_kept(message.answers, _answer_problem, "an answer about robots.txt", wrong),
        homes=dict(_kept(list(message.homes.items()), _home_problem, "a home of a domain", wrong)),
        ranks=_kept(message.ranks, _rank_problem, "a rank", wrong),
        requisites=_kept(message.requisites, _requisite_problem, "a requisite", wrong),
    )
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return CheckedMessage(kept, f"{wrong[0]}{more}") if wrong else CheckedMessage(message)


def _kept(entries: Sequence[_Entry], problem_of: Callable[[_Entry], str], what: str, wrong: list[str]) -> list[_Entry]:
    kept: list[_Entry] = []
    for entry in entries:
        if problem := problem_of(entry):
            wrong.append(f"{what} has {problem}")
        else:
            kept.append(entry)
    return kept


def _link_problem(link: LinkMessage) -> str:
    if link.kind not in _LINK_KINDS:
        return "an impossible kind"
    if link.found_on and canonical(link.found_on) != link.found_on:
        return "an impossible page that names it"
    if max(len(link.lastmod), len(link.submitter)) > MAX_TEXT_CHARS:
        return "a text that is too long"
    return _place_problem(link.url, link.parent, depth=link.depth, hops=link.hops, seed=link.seed)


def _requisite_problem(requisite: RequisiteMessage) -> str:
    if not -_MAX_PRIORITY <= requisite.priority <= _MAX_PRIORITY:
        return "an impossible priority"
    place = {"depth": requisite.depth, "hops": requisite.hops, "seed": requisite.seed}
    return _place_problem(requisite.url, requisite.parent, **place)


def _place_problem(url: str, parent: UrlId, *, depth: int, hops: int, seed: int) -> str:
    if canonical(url) != url:
        return "an impossible URL"
    if len(parent) not in (0, 16):
        return "an impossible parent"
    if not (0 <= depth <= MAX_DEPTH and 0 <= hops <= MAX_DEPTH and 0 <= seed < MAX_SEEDS):
        return "an impossible depth, number of redirects or seed"
    return ""


def _question_problem(question: RobotsQuestion) -> str:
    return _robots_problem(question.origin, question.url, question.hops)


def _answer_problem(answer: RobotsAnswer) -> str:
    if not (0 <= answer.status <= 999 and -1.0 <= answer.retry_after_s < float("inf")):
        return "an impossible status or waiting time"
    if len(answer.body) > MAX_ROBOTS_BYTES:
        return "a body that is too long"
    return _robots_problem(answer.origin, answer.url, answer.hops)


def _robots_problem(origin: str, url: str, hops: int) -> str:
    home = canonical(origin + "/")
    if home is None or origin_of(home) != origin:
        return "an impossible origin"
    if canonical(url) != url:
        return "an impossible URL"
    return "" if 0 <= hops <= MAX_ROBOTS_HOPS else "an impossible number of redirects"


def _home_problem(home: tuple[str, str]) -> str:
    domain, label = home
    return "an impossible domain or label" if len(label) > MAX_TEXT_CHARS else _domain_problem(domain)


def _rank_problem(rank: DomainRank) -> str:
    is_share = all(-1.0 <= share <= 1.0 for share in (rank.computed, rank.given))
    return _domain_problem(rank.domain) if is_share else "an impossible value"


def _domain_problem(domain: str) -> str:
    home = f"http://{domain}/"
    return "" if domain and canonical(home) == home and host_of(home) == domain else "an impossible domain"
