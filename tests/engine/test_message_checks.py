"""Messages that no node has sent: what is impossible in them is left out and named, the rest is received."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gossamer.engine.cluster.link_messages import (
    LinkMessage,
    NodeMessage,
    RequisiteMessage,
    RobotsAnswer,
    RobotsQuestion,
    encode_message,
)
from gossamer.engine.cluster.message_checks import MAX_ENTRIES, checked
from gossamer.model.records import FetchKind, Outcome, Source
from gossamer.model.state import DomainRank

URL = "http://a.test/page"
LINK = LinkMessage(URL, 1, Source.LINK, FetchKind.PAGE, b"p" * 16, found_on="http://b.test/")
HONEST = NodeMessage(
    links=[LINK, LinkMessage("https://[2001:db8::1]:8443/é".replace("é", "%C3%A9"), 0, Source.SEED, FetchKind.PAGE)],
    questions=[RobotsQuestion("http://b.test", "http://a.test/robots.txt", 1)],
    answers=[RobotsAnswer("https://a.test:444", "http://b.test/robots.txt", 1, Outcome.OK, 200, "", b"User-agent: *")],
    homes={"a.test": "de"},
    ranks=[DomainRank("a.test", 0.5), DomainRank("b.test", given=1.0)],
    requisites=[RequisiteMessage(URL + ".css", b"p" * 16, 1, -100, Source.LINK)],
)


def test_what_a_node_sends_is_received_as_it_is() -> None:
    message, problem = checked(encode_message(HONEST))
    assert problem == ""
    assert encode_message(message) == encode_message(HONEST)


@pytest.mark.parametrize("data", [
    b"",
    b"\xff\xfe",
    encode_message(HONEST)[:-9],
    b"\x91" * 200_000,
    b"\x91\xdd\xff\xff\xff\xff",
    msgspec.msgpack.encode([[["http://a.test/", "deep", 1, 0]]]),
    msgspec.msgpack.encode([[["http://a.test/", 1, 99, 0]]]),
    b"\x91\x91\x94\xa3\xed\xa0\x80\x01\x01\x00",
])  # fmt: skip
def test_what_cannot_be_decoded_is_left_out_wholly(data: bytes) -> None:
    message, problem = checked(data)
    assert encode_message(message) == encode_message(NodeMessage())
    assert problem.startswith("it cannot be decoded")


def _with(field: str, entry: object) -> bytes:
    honest: dict[str, Any] = {name: getattr(HONEST, name) for name in HONEST.__struct_fields__}
    kept = honest[field]
    honest[field] = {**kept, **entry} if isinstance(entry, dict) else [*kept, entry]
    return encode_message(NodeMessage(**honest))


def _link(url: str = URL, **changed: Any) -> LinkMessage:
    return msgspec.structs.replace(LINK, url=url, **changed)


NAN, INFINITE = float("nan"), float("inf")
ANSWER = HONEST.answers[0]
REQUISITE = HONEST.requisites[0]


@pytest.mark.parametrize(("field", "entry", "expected"), [
    ("links", _link("javascript:alert(1)"), "a link has an impossible URL"),
    ("links", _link("http://a.test"), "a link has an impossible URL"),
    ("links", _link(""), "a link has an impossible URL"),
    ("links", _link("http://a.test/" + "x" * 1_000_000), "a link has an impossible URL"),
    ("links", _link("HTTP://A.TEST/a/../b#c"), "a link has an impossible URL"),
    ("links", _link("http://a.test/\x1b[31m\n"), "a link has an impossible URL"),
    ("links", _link("http://a.test:99999999/"), "a link has an impossible URL"),
    ("links", _link("http://user:pass@a.test/"), "a link has an impossible URL"),
    ("links", _link(depth=2**62), "a link has an impossible depth, number of redirects or seed"),
    ("links", _link(depth=-1), "a link has an impossible depth, number of redirects or seed"),
    ("links", _link(hops=-(2**62)), "a link has an impossible depth, number of redirects or seed"),
    ("links", _link(seed=2**62), "a link has an impossible depth, number of redirects or seed"),
    ("links", _link(parent=b"short"), "a link has an impossible parent"),
    ("links", _link(kind=FetchKind.ROBOTS), "a link has an impossible kind"),
    ("links", _link(kind=FetchKind.REQUISITE), "a link has an impossible kind"),
    ("links", _link(found_on="elsewhere"), "a link has an impossible page that names it"),
    ("links", _link(lastmod="9" * 100_000), "a link has a text that is too long"),
    ("questions", RobotsQuestion("zzz", "http://a.test/robots.txt", 1), "a question about robots.txt has an impossible "
     "origin"),
    ("questions", RobotsQuestion("http://b.test", "zzz", 1), "a question about robots.txt has an impossible URL"),
    ("questions", RobotsQuestion("http://b.test", "http://a.test/robots.txt", -(2**60)), "a question about robots.txt "
     "has an impossible number of redirects"),
    ("answers", msgspec.structs.replace(ANSWER, origin="b.test/"), "an answer about robots.txt has an impossible "
     "origin"),
    ("answers", msgspec.structs.replace(ANSWER, retry_after_s=NAN), "an answer about robots.txt has an impossible "
     "status or waiting time"),
    ("answers", msgspec.structs.replace(ANSWER, retry_after_s=INFINITE), "an answer about robots.txt has an impossible "
     "status or waiting time"),
    ("answers", msgspec.structs.replace(ANSWER, status=-7), "an answer about robots.txt has an impossible status or "
     "waiting time"),
    ("answers", msgspec.structs.replace(ANSWER, body=b"a" * 600_000), "an answer about robots.txt has a body that is "
     "too long"),
    ("homes", {"a/b": "de"}, "a home of a domain has an impossible domain"),
    ("homes", {"": "de"}, "a home of a domain has an impossible domain"),
    ("ranks", DomainRank("c.test", NAN), "a rank has an impossible value"),
    ("ranks", DomainRank("c.test", 1e300), "a rank has an impossible value"),
    ("ranks", DomainRank("c d?", 0.5), "a rank has an impossible domain"),
    ("requisites", msgspec.structs.replace(REQUISITE, priority=2**40), "a requisite has an impossible priority"),
    ("requisites", msgspec.structs.replace(REQUISITE, url="x"), "a requisite has an impossible URL"),
])  # fmt: skip
def test_an_impossible_entry_is_left_out_and_the_rest_is_received(field: str, entry: object, expected: str) -> None:
    message, problem = checked(_with(field, entry))
    assert problem == expected
    assert encode_message(message) == encode_message(HONEST)


def test_the_first_of_several_problems_is_named_and_the_others_are_counted() -> None:
    message, problem = checked(encode_message(NodeMessage(links=[_link(""), LINK, _link("x"), _link("y")])))
    assert problem == "a link has an impossible URL, and 2 more"
    assert message.links == [LINK]


def test_a_message_with_more_entries_than_a_commit_can_have_is_left_out() -> None:
    assert checked(encode_message(NodeMessage(links=[LINK] * MAX_ENTRIES)))[1] == ""
    message, problem = checked(encode_message(NodeMessage(links=[LINK] * (MAX_ENTRIES + 1))))
    assert (message.links, problem) == ([], "it has more than 100,000 entries")
