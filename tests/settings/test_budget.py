from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.model.errors import UsageError
from gossamer.settings.budget import Budget, check_ceiling, min_bytes, parts, shown, size_from
from gossamer.settings.load import from_environment, merged, settings_for_known, to_toml

MIB = 1 << 20
WORKERS = st.integers(1, 64)
CONNECTIONS = st.integers(1, 2000)
MAX_BYTES = st.integers(1, 100_000_000)
SPARE = st.integers(0, 64 << 30)


@given(WORKERS, CONNECTIONS, MAX_BYTES, SPARE)
def test_the_parts_are_no_more_than_the_whole_and_none_is_below_its_least(
    workers: int, connections: int, max_bytes: int, spare: int
) -> None:
    least = min_bytes(workers, max_bytes)
    smallest = parts(0, workers=workers, connections=connections, max_bytes=max_bytes)
    divided = parts(least + spare, workers=workers, connections=connections, max_bytes=max_bytes)
    assert sum(divided.values()) <= least + spare - (least + spare) // 10
    assert all(divided[name] >= smallest[name] for name in smallest)


@given(WORKERS, CONNECTIONS, MAX_BYTES, SPARE, st.integers(0, 1 << 30))
def test_a_higher_ceiling_makes_no_part_smaller(
    workers: int, connections: int, max_bytes: int, spare: int, more: int
) -> None:
    whole = min_bytes(workers, max_bytes) + spare
    low = parts(whole, workers=workers, connections=connections, max_bytes=max_bytes)
    high = parts(whole + more, workers=workers, connections=connections, max_bytes=max_bytes)
    assert all(high[name] >= low[name] - len(low) for name in low), "but for what rounding takes"


@given(WORKERS, CONNECTIONS, MAX_BYTES, SPARE)
def test_entries_fit_into_the_ceiling(workers: int, connections: int, max_bytes: int, spare: int) -> None:
    whole = min_bytes(workers, max_bytes) + spare
    budget = Budget.of(whole, workers=workers, connections=connections, max_bytes=max_bytes)
    assert 1 <= budget.safe_connections <= budget.connections <= connections * workers
    assert budget.safe_connections == 1 or budget.safe_connections * max_bytes <= budget.bodies
    assert budget.hosts >= 1000
    assert budget.urls >= 4 * 1000
    assert budget.seen >= 3_000_000
    assert budget.near_pages >= 10_000
    assert budget.max_idle_connections >= 32


def test_with_memory_to_spare_the_limits_are_those_of_no_ceiling() -> None:
    budget = Budget.of(64 << 30, workers=1, connections=256, max_bytes=5_000_000)
    assert (budget.connections, budget.safe_connections, budget.max_idle_connections) == (256, 256, 2048)
    assert (budget.hosts, budget.urls, budget.links, budget.names) == (50_000, 400_000, 200_000, 50_000)
    assert budget.near_pages > 100_000_000


def test_a_ceiling_below_the_least_is_divided_as_the_least() -> None:
    least = min_bytes(2, 5_000_000)
    of = {"workers": 2, "connections": 256, "max_bytes": 5_000_000}
    assert Budget.of(1, **of) == Budget.of(least, **of)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2G", 2 << 30),
        ("512M", 512 << 20),
        ("512m", 512 << 20),
        ("700MB", 700 << 20),
        ("700 MiB", 700 << 20),
        ("1.5g", 3 << 29),
        ("64k", 64 << 10),
        ("1T", 1 << 40),
        ("150000000", 150_000_000),
        ("150000000B", 150_000_000),
        (" 1G ", 1 << 30),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert size_from(text) == size


@pytest.mark.parametrize(
    "text", ["", "G", "two", "-1", "1e9", "1GG", "1 000", "0x10", "1,5G", "2X", "nan", "٢G", "9" * 300 + "G"]
)
def test_what_is_no_size_is_none(text: str) -> None:
    assert size_from(text) is None


@given(st.integers(1, 1 << 50))
def test_a_size_is_shown_in_one_word_or_two(size: int) -> None:
    assert len(shown(size).split()) <= 2
    assert "e" not in shown(size).removesuffix(" bytes")


def test_a_size_comes_from_every_source() -> None:
    assert merged(("file", {"memory": "2G"})).memory == 2 << 30
    assert merged(("file", {"memory": 300_000_000})).memory == 300_000_000
    assert merged(("environment", from_environment({"GOSSAMER_MEMORY": "512M"}))).memory == 512 << 20
    assert merged().memory is None


def test_a_size_survives_the_folder(tmp_path: Path) -> None:
    settings = merged(("flags", {"memory": "1G"}))
    stored = tmp_path / "crawl.toml"
    stored.write_text(to_toml(settings), "utf-8")
    assert settings_for_known(stored, []).memory == 1 << 30
    assert settings_for_known(stored, [("flags", {"memory": "2G"})]).memory == 2 << 30


def test_a_bad_size_is_reported_with_its_source_and_what_is_expected() -> None:
    with pytest.raises(UsageError) as refused:
        merged(("crawl.toml", {"memory": "lots"}))
    assert str(refused.value) == "crawl.toml: memory = 'lots': not a size; expected 2G, 512M or a number of bytes"
    assert refused.value.exit_status == 2


@pytest.mark.parametrize("value", [True, 1.5, -1, 0, ["1G"]])
def test_other_kinds_of_values_are_refused(value: object) -> None:
    with pytest.raises(UsageError, match=r"crawl\.toml: memory = .*: expected a whole number"):
        merged(("crawl.toml", {"memory": value}))


@pytest.mark.parametrize(("workers", "worker_factory"), [(1, "1 worker"), (3, "3 workers")])
def test_too_little_is_reported_with_the_minimum(workers: int, worker_factory: str) -> None:
    least = min_bytes(workers, 5_000_000)
    with pytest.raises(UsageError) as refused:
        merged(("flags", {"memory": least - 1, "workers": workers}))
    message = str(refused.value)
    assert f"too little for {worker_factory}" in message
    assert message.endswith(f"expected {shown(least)} or more")
    assert size_from(shown(least)) == least
    assert merged(("flags", {"memory": shown(least), "workers": workers})).memory == least


def test_larger_answers_need_a_higher_ceiling() -> None:
    check_ceiling(200 * MIB, 1, 5_000_000)
    with pytest.raises(UsageError, match="answers of up to 50000000 bytes"):
        check_ceiling(200 * MIB, 1, 50_000_000)
