"""A name that was made to have another's id takes nothing from it: both are fetched, and both can be looked up.

The forged names are second preimages by xxh3, whose hash ids had until format 3 of the ledger (`benchmarks/forge.py`).
In a crawl that an earlier version began, they still have the same first candidate; in a new one, ids have a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_digest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.url.forms import host_of, link_to
from gossamer.core.url.identity import Identity, current, host_id, use
from gossamer.model.events import EventName
from gossamer.model.records import FetchKind, UrlState
from gossamer.model.state import IdentityRecord
from gossamer.ports import Ledger
from tests.engine.test_crawl import Bench

VICTIM = "www.victim.test"
FORGED_HOST = (
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.xxu3aeo3f5of5hxxxx7ftmtgvtev74x.xxpqjft7xcrfnqxxxxlrsecwfqhhasx"
    ".xxxxxxxxxxxxxxxxxxx.a200532.test"
)
PAGE = "http://shared.test/account"
FORGED_PAGE = (
    "http://shared.test/xxxxxxxxxxxxxxxg6p6lxusqrjsxxxxi4qsoxhprogsxxxx5efxctbjmyrxxxxxl3xljcpfdsbexxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxxxxxxxx"
)
UNKEYED = IdentityRecord(b"k" * 16, is_unkeyed=True)


@contextmanager
def identified(identity: Identity) -> Iterator[None]:
    before = current()
    use(identity)
    try:
        yield
    finally:
        use(before)


@pytest.fixture(params=["new", "upgraded"])
def identity(request: pytest.FixtureRequest) -> Iterator[Identity]:
    made = Identity(IdentityRecord(b"secret of a run.") if request.param == "new" else UNKEYED)
    with identified(made):
        yield made


@pytest.fixture(params=["memory", "local"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path, identity: Identity) -> Iterator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger()
        return
    local = LocalLedger(tmp_path / "state")
    local.open()
    yield local
    local.close()


def fetched(bench: Bench) -> list[str]:
    """Run a crawl to its end; return the pages that were requested."""
    pages = list[str]()
    for _ in range(60):
        for task in bench.tasks(after_s=1.0):
            if task.kind is FetchKind.PAGE:
                pages.append(task.url)
            bench.end(task)
    return pages


def test_the_forged_names_have_the_same_unkeyed_hash() -> None:
    assert xxh3_64_digest(FORGED_PAGE.encode()) == xxh3_64_digest(PAGE.encode())
    assert Identity(UNKEYED).host_id(FORGED_HOST) == Identity(UNKEYED).host_id(VICTIM)


@pytest.mark.parametrize("first", [FORGED_HOST, VICTIM])
def test_both_of_two_hosts_with_one_hash_are_fetched(ledger: Ledger, first: str) -> None:
    second = VICTIM if first == FORGED_HOST else FORGED_HOST
    bench = Bench("http://attacker.test/", ledger=ledger)
    (task,) = bench.past_robots()
    bench.end(task, links=[link_to(f"http://{first}/")])
    bench.tasks(after_s=1.0)
    bench.crawl.add_seeds([link_to(f"http://{second}/a"), link_to(f"http://{second}/b")], bench.now)
    bench = Bench(ledger=ledger, now=bench.now)  # as after a restart: what is in memory must not be needed
    pages = fetched(bench)
    assert sorted(pages) == sorted([f"http://{first}/", f"http://{second}/a", f"http://{second}/b"])
    assert bench.told(EventName.EXCLUDED_BY_RULE) == []
    for host, count in ((first, 1), (second, 2)):
        record = ledger.host(host)
        assert record is not None
        assert (record.name, record.pages) == (host, count)
    assert ledger.host_id(first) != ledger.host_id(second)


def test_two_hosts_with_one_hash_in_one_page_are_both_fetched(ledger: Ledger) -> None:
    bench = Bench("http://attacker.test/", ledger=ledger)
    (task,) = bench.past_robots()
    bench.end(task, links=[link_to(f"http://{FORGED_HOST}/"), link_to(f"http://{VICTIM}/")])
    assert sorted(fetched(bench)) == sorted([f"http://{FORGED_HOST}/", f"http://{VICTIM}/"])


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("at_once", [True, False])
def test_both_of_two_urls_with_one_hash_are_fetched(ledger: Ledger, is_reversed: bool, at_once: bool) -> None:
    urls = [FORGED_PAGE, PAGE][:: -1 if is_reversed else 1]
    bench = Bench("http://shared.test/", ledger=ledger)
    (task,) = bench.past_robots()
    bench.end(task, links=[link_to(url) for url in (urls if at_once else urls[:1])])
    if not at_once:
        (task,) = bench.tasks(after_s=1.0)
        bench.end(task, links=[link_to(urls[1])])
        assert fetched(bench) == urls[1:]
    else:
        assert fetched(bench) == urls
    ids = [ledger.url_id(url) for url in urls]
    assert len(set(ids)) == 2
    for url, url_id in zip(urls, ids, strict=True):
        row = ledger.look_up(url_id)
        assert row is not None
        assert (row.url, row.state) == (url, UrlState.DONE)
    # Each is known from now on.
    assert bench.crawl.add_seeds([link_to(url) for url in urls], bench.now) == 0


NAMES = st.sampled_from([f"{label}.{domain}.test" for label in "ab" for domain in ("c", "d", "e")])
URLS = st.lists(st.builds("http://{}/{}".format, NAMES, st.integers(0, 12)), max_size=40, unique=True)


@given(URLS, st.integers(4, 8), st.booleans(), st.lists(st.integers(1, 10), min_size=1, max_size=5))
def test_nothing_is_lost_if_ids_collide_all_the_time(
    urls: list[str], bits: int, is_unkeyed: bool, sizes: list[int]
) -> None:
    # The hash keeps so few bits, the lowest ones, that most hosts and URLs share theirs with others.
    narrow = Identity(IdentityRecord(b"k" * 16, is_unkeyed), mask=(1 << bits) - 1)
    with identified(narrow):
        ledger = MemoryLedger()
        bench = Bench(ledger=ledger, limits=FrontierLimits(), delay_s=0.0)
        left = iter(urls)
        for size in [*sizes, len(urls)]:
            bench.crawl.add_seeds([link_to(url) for url in islice(left, size)], bench.now)
            for task in bench.tasks(after_s=1.0):
                bench.end(task)
        assert {row.url for _, row in ledger.urls()} == set(urls)
        requested = set(fetched(bench)) | {row.url for _, row in ledger.urls() if row.state is UrlState.DONE}
        assert requested == set(urls)
        for url in urls:
            row = ledger.look_up(ledger.url_id(url))
            assert row is not None
            assert row.url == url
        hosts = {host_of(url) for url in urls}
        assert {record.name for record in ledger.hosts()} == hosts
        assert len({host_id(host) for host in hosts}) == len(hosts)
