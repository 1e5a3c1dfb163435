"""Which hosts answer "not found" with status 200?"""

from __future__ import annotations

from gossamer.core.traps.soft_not_found import SoftNotFound
from gossamer.core.url.identity import host_id, shard_of


def test_a_host_is_probed_once_and_only_for_a_reason() -> None:
    soft = SoftNotFound(suspicious=3)
    assert [soft.record("good.test", str(number).encode()) for number in range(50)] == [False] * 50
    assert [soft.record("bad.test", b"sorry") for _ in range(6)] == [False, False, True, False, False, False]


def test_suspicion_survives_a_restart_and_leaves_with_its_shard() -> None:
    soft = SoftNotFound(suspicious=3)
    soft.record("bad.test", b"sorry")
    soft.record("bad.test", b"sorry")
    assert soft.take_changed() == {"bad.test"}
    again = SoftNotFound(suspicious=3)
    again.restore("bad.test", soft.repeated("bad.test"), is_probed=False)
    assert again.record("bad.test", b"sorry")
    assert again.is_probed("bad.test")
    soft.release({shard_of(host_id("bad.test"))})
    assert not soft.repeated("bad.test")


def test_few_hosts_and_few_texts_are_watched() -> None:
    soft = SoftNotFound(suspicious=3, max_hosts=2, texts=1)
    for host in ("a.test", "b.test", "c.test"):
        soft.record(host, b"sorry")
        soft.record(host, b"sorry")
    assert [bool(soft.repeated(host)) for host in ("a.test", "b.test", "c.test")] == [False, True, True]
    assert not soft.record("c.test", b"another"), "there is no room for it"
    assert not soft.record("c.test", b"another")
    assert not soft.record("c.test", b"another")
