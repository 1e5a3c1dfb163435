"""The topic of documents on a real broker: logins, rights, sizes, and the last message of a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType  # type: ignore[attr-defined]

from gossamer.backends.kafka_feed.topic import KafkaTopic
from gossamer.model.errors import StoreUnavailableError, UsageError
from gossamer.ports.document_topic import FeedMessage
from tests.servers import engines
from tests.servers.kafka import KafkaServer, allow, guarded_kafka, shared_kafka
from tests.servers.topics import messages_in, new_topic, read_topic


@pytest.fixture(scope="module", params=[engines.param("kafka")])
def kafka() -> KafkaServer:
    return shared_kafka()


def test_the_last_message_of_a_key_counts_and_a_page_that_is_gone_has_no_value(kafka: KafkaServer) -> None:
    url = new_topic(kafka)
    with closing(KafkaTopic(url)) as topic:
        topic.check()
        assert topic.send([FeedMessage("http://a.test/", b'{"n":1}'), FeedMessage("http://b.test/", b'{"n":2}')]) == []
        assert topic.send([FeedMessage("http://a.test/", None), FeedMessage("http://\u4e2d.test/", b'{"n":3}')]) == []
        topic.send([FeedMessage("http://c.test/", b"{}"), FeedMessage("http://c.test/", None)])
    assert read_topic(url) == {
        "http://a.test/": None, "http://b.test/": {"n": 2}, "http://\u4e2d.test/": {"n": 3}, "http://c.test/": None,
    }  # fmt: skip
    assert len(messages_in(url)) == 5


def test_what_does_not_fit_is_shortened_and_the_rest_is_not(kafka: KafkaServer) -> None:
    url = new_topic(kafka, config={"max.message.bytes": "5000"})
    large = b'{"text":"%s"}' % (b"x" * 6000)
    messages = [FeedMessage(f"http://s{number}.test/", b'{"n":"%s"}' % (b"y" * 400)) for number in range(40)]
    messages.insert(7, FeedMessage("http://large.test/", large, lambda: b'{"is_cut":true}'))
    with closing(KafkaTopic(url)) as topic:
        assert topic.send(messages) == ["http://large.test/"]
        assert read_topic(url)["http://large.test/"] == {"is_cut": True}
        assert len(read_topic(url)) == 41
        with pytest.raises(StoreUnavailableError, match=r"also without its text.*raise max\.message\.bytes"):
            topic.send([FeedMessage("http://large.test/", large, lambda: large)])


def test_a_topic_that_takes_less_than_it_said_gets_messages_one_by_one(kafka: KafkaServer) -> None:
    url = new_topic(kafka, partitions=1, config={"max.message.bytes": "1000000"})
    with closing(KafkaTopic(url)) as topic:
        topic.send([FeedMessage("http://first.test/", b"{}")])  # it knows the size by now
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]

        admin = kafka.admin()
        entry = ConfigEntry("max.message.bytes", "3000", incremental_operation=AlterConfigOpType.SET)
        (done,) = admin.incremental_alter_configs(
            [ConfigResource(ResourceType.TOPIC, topic.topic, incremental_configs=[entry])]
        ).values()
        done.result(30)
        noise = [bytes(str(number * number * 7919 + each), "ascii") for number in range(400) for each in range(3)]
        messages = [
            FeedMessage(f"http://s{number}.test/", b'{"n":"%s"}' % b"".join(noise[number * 100 : number * 100 + 100]))
            for number in range(10)
        ]
        assert topic.send(messages) == []
    assert len(read_topic(url)) == 11


@pytest.fixture(params=[engines.param("kafka")])
def guarded(tmp_path: Path) -> Iterator[tuple[KafkaServer, str]]:
    with guarded_kafka(tmp_path / "broker") as server:
        yield server


def test_logins_and_rights(guarded: tuple[KafkaServer, str]) -> None:
    server, address = guarded
    name = new_topic(server).rpartition("/")[2]
    with pytest.raises(UsageError, match="GOSSAMER_KAFKA_PASSWORD") as refused:
        KafkaTopic(f"kafka://me:wrong-one@{address}/{name}").check()
    assert "wrong-one" not in str(refused.value)
    topic = KafkaTopic(f"kafka://me:right-one@{address}/{name}")
    with pytest.raises(UsageError, match="expected a user who may describe the topic and write to it"):
        topic.check()
    allow(server, name, AclOperation.DESCRIBE)
    with pytest.raises(UsageError, match="no right to write to this topic"):
        topic.check()
    with pytest.raises(StoreUnavailableError, match="expected a user who may describe the topic and write to it"):
        topic.send([FeedMessage("http://a.test/", b"{}")])
    allow(server, name, AclOperation.WRITE)
    topic.check()
    assert topic.send([FeedMessage("http://a.test/", b"{}")]) == []
    topic.close()
    assert read_topic(f"kafka://{server.address}/{name}") == {"http://a.test/": {}}
