"""The topics that `--feed` and `gossamer feed --to` can name, by the scheme of their URL. One is added by a line here.

The module of a topic is imported only if it is used: its client library is an extra of the package.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

from msgspec import Struct

from gossamer.model.errors import UsageError
from gossamer.ports.document_topic import DocumentTopic
from gossamer.settings.extras import pip_install
from gossamer.settings.stores import KAFKA, complete_store, scheme_of


class TopicModule(Protocol):
    """What the module of a topic provides."""

    def open_topic(self, url: str) -> DocumentTopic:
        """Return the topic behind a URL. Nothing is sent before the first call."""
        ...


class _Client(Struct, frozen=True):
    """The module of a topic, and the library that it needs."""

    module: str
    library: str
    extra: str


TOPICS: Mapping[str, _Client] = {KAFKA: _Client("gossamer.backends.kafka_feed.topic", "confluent_kafka", "kafka")}


def open_topic(url: str, option: str = "feed") -> DocumentTopic:
    """Return the topic behind a URL; raise UsageError if its client library is not installed."""
    client = TOPICS[scheme_of(url)]
    if find_spec(client.library) is None:
        raise UsageError(f"{scheme_of(url)}:// needs the package {client.library}: {pip_install(client.extra)}")
    return cast(TopicModule, import_module(client.module)).open_topic(complete_store(url, os.environ, option))


def check_topics(urls: Sequence[str]) -> None:
    """Raise UsageError if one of the topics cannot be used now. Before anything is started."""
    for url in urls:
        with closing(open_topic(url)) as topic:
            topic.check()
