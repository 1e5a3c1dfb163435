"""Links on their way to the node that owns their shard, as bytes.

A message contains all that the owner needs to admit the link as if it had found it itself. Admitting a link twice
does nothing, so messages may arrive more than once, and in any order.
"""

# Without the annotations of __future__, as in `records`.
from collections.abc import Iterator

from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder

from gossamer.core.links.intake import LinkContext
from gossamer.core.links.requisite import requisite_to
from gossamer.core.url.forms import link_to
from gossamer.model.records import FetchKind, Link, Outcome, QueuedUrl, Source, UrlId
from gossamer.model.state import DomainRank


class RobotsQuestion(Struct, array_like=True, frozen=True):
    """robots.txt of an origin redirects to a host of the receiver, who is to request it at its own pace."""

    origin: str
    url: str
    hops: int


class RobotsAnswer(Struct, array_like=True, frozen=True):
    """What came of such a request: for the owner of the origin."""

    origin: str
    url: str
    hops: int
    outcome: Outcome
    status: int = 0
    error: str = ""
    body: bytes = b""
    retry_after_s: float = -1.0


class LinkMessage(Struct, array_like=True, frozen=True):
    url: str
    depth: int
    source: Source
    kind: FetchKind
    parent: UrlId = b""
    hops: int = 0
    seed: int = 0
    https_first: bool = False
    found_on: str = ""
    lastmod: str = ""
    submitter: str = ""  # of a sitemap: the domain whose robots.txt lists it


class RequisiteMessage(Struct, array_like=True, frozen=True):
    """What a page of the sender needs, at a host of the receiver."""

    url: str
    parent: UrlId
    depth: int
    priority: int
    source: Source
    hops: int = 0
    seed: int = 0


class NodeMessage(Struct, array_like=True):
    """All that one commit sends to one shard."""

    links: list[LinkMessage] = []
    questions: list[RobotsQuestion] = []
    answers: list[RobotsAnswer] = []
    homes: dict[str, str] = {}  # domains in it that belong to the receiver by their country, and their label
    ranks: list[DomainRank] = []  # of domains of the receiver
    requisites: list[RequisiteMessage] = []


_encode = Encoder().encode
_decode = Decoder(NodeMessage).decode


def message_of(link: Link, context: LinkContext, lastmod: str = "") -> LinkMessage:
    return LinkMessage(
        url=link.url,
        depth=context.depth,
        source=context.source,
        kind=context.kind,
        parent=context.parent,
        hops=context.hops,
        seed=context.seed,
        https_first=context.https_first,
        found_on=context.found_on,
        lastmod=lastmod,
        submitter=context.submitter,
    )


def context_of(message: LinkMessage) -> LinkContext:
    return LinkContext(
        depth=message.depth,
        source=message.source,
        parent=message.parent,
        hops=message.hops,
        kind=message.kind,
        https_first=message.https_first,
        found_on=message.found_on,
        seed=message.seed,
    )


def link_of(message: LinkMessage) -> Link:
    return link_to(message.url)


def requisite_message(url: QueuedUrl) -> RequisiteMessage:
    return RequisiteMessage(url.url, url.parent, url.depth, url.priority, url.source, url.hops, url.seed)


def requisite_of(message: RequisiteMessage, seq: int, now: float) -> QueuedUrl:
    """Return the requisite of a message, as its owner queues it."""
    link = requisite_to(message.url)
    return QueuedUrl(
        url=link.url,
        id=link.id,
        host=link.host,
        priority=message.priority,
        seq=seq,
        depth=message.depth,
        kind=FetchKind.REQUISITE,
        source=message.source,
        parent=message.parent,
        hops=message.hops,
        found_at=now,
        seed=message.seed,
    )


def encode_message(message: NodeMessage) -> bytes:
    return _encode(message)


def decode_message(data: bytes) -> NodeMessage:
    return _decode(data)


def parts_of(message: NodeMessage, max_links: int) -> Iterator[NodeMessage]:
    """Yield a message in parts, in the order in which they are to be received; most consist of one."""
    links = message.links
    requisites = message.requisites
    if len(links) + len(requisites) <= max_links and len(message.answers) <= 1:
        yield message
        return
    yield NodeMessage(homes=message.homes, ranks=message.ranks)
    for begin in range(0, len(links), max_links):
        yield NodeMessage(links=links[begin : begin + max_links])
    for begin in range(0, len(requisites), max_links):
        yield NodeMessage(requisites=requisites[begin : begin + max_links])
    yield NodeMessage(questions=message.questions)
    for answer in message.answers:  # one by one: memory may have room for the rules of one
        yield NodeMessage(answers=[answer])
