"""Which bytes identify a host, a domain and a URL, and which shard do they belong to?"""

from __future__ import annotations

from collections import Counter
from contextvars import copy_context
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.url.forms import url_id
from gossamer.core.url.identity import (
    SHARD_COUNT,
    Identity,
    current,
    domain_id,
    host_id,
    shard_of,
    shard_of_domain,
    shard_prefix,
    shard_range,
    use,
)
from gossamer.model.state import IdentityRecord


def test_the_identity_of_a_host_never_changes() -> None:
    # Written to disk, and shared between machines: another value would orphan every row.
    keyed = Identity(IdentityRecord(bytes(range(16))))
    assert keyed.host_id("www.example.org").hex() == "ebfe8a6a110b8680"
    assert keyed.host_id("example.org").hex() == "ebf50dfe84df02ad"
    assert keyed.host_candidate("www.example.org", 1).hex() == "ebfeb273ca59ff43"
    assert keyed.digest(b"http://example.org/").hex() == "ff07e33acd5b8c32"
    before = Identity(IdentityRecord(b"k" * 16, is_unkeyed=True))
    assert before.host_id("www.example.org").hex() == "4036d8fa63263a52"
    assert before.host_id("example.org").hex() == "4037554f7ebcbf45"


def test_ids_are_keyed_blake2b_of_the_number_of_the_candidate_and_the_name() -> None:
    key = bytes(range(16))
    keyed = Identity(IdentityRecord(key))
    name = b"http://example.org/"
    assert keyed.digest(name) == keyed.first_digest(name) == blake2b(b"\0" + name, digest_size=8, key=key).digest()
    assert keyed.digest(name, 3) == blake2b(b"\3" + name, digest_size=8, key=key).digest()
    other = Identity(IdentityRecord(bytes(16)))
    assert keyed.host_id("www.example.org") != other.host_id("www.example.org")


def test_each_task_has_the_identity_of_its_crawl() -> None:
    def work(key: bytes) -> tuple[bytes, bytes]:
        use(Identity(IdentityRecord(key)))
        return current().record.key, host_id("www.example.org")

    first, second = copy_context(), copy_context()
    before = host_id("www.example.org")
    found = [first.run(work, b"1" * 16), second.run(work, b"2" * 16)]
    assert first.run(host_id, "www.example.org") == found[0][1], "the other crawl changed it"
    assert second.run(host_id, "www.example.org") == found[1][1]
    assert len({before, found[0][1], found[1][1]}) == 3


def test_hosts_of_one_domain_share_its_shard() -> None:
    hosts = ["example.co.uk", "www.example.co.uk", "a.b.example.co.uk"]
    assert {shard_of(host_id(host)) for host in hosts} == {shard_of_domain("example.co.uk")}
    assert len({host_id(host) for host in hosts}) == 3
    assert shard_of(domain_id("example.co.uk")) == shard_of_domain("example.co.uk")


def test_a_final_dot_names_the_same_host() -> None:
    assert host_id("example.org.") == host_id("example.org")


@pytest.mark.parametrize("url", ["http://10.0.0.1/x", "http://[::1]/", "http://localhost:8080/", "https://a.b.test/?q"])
def test_a_url_begins_with_its_host(url: str) -> None:
    host = url.split("/")[2].rpartition(":")[0] if "localhost" in url else url.split("/")[2]
    assert url_id(url)[:8] == host_id(host)


@given(st.integers(0, SHARD_COUNT - 1), st.binary(min_size=6, max_size=20))
def test_a_shard_is_a_key_range(shard: int, rest: bytes) -> None:
    first, end = shard_range(shard)
    key = shard_prefix(shard) + rest
    assert shard_of(key) == shard
    assert key >= first
    assert end is None or key < end
    assert end is None or shard_of(end + rest) == shard + 1


def test_domains_spread_over_the_shards() -> None:
    counts = Counter(shard_of_domain(f"d{n}.test") for n in range(40_960))
    assert len(counts) > 0.99 * SHARD_COUNT
    assert max(counts.values()) < 40
