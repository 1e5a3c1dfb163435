"""Facts that a killed run had written to its events, and perhaps not to the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.model.events import EventName
from gossamer.runtime.recovery.unsaved_facts import read_unsaved_facts
from gossamer.telemetry.event_log import file_stem
from tests.reading.folders import event, write_events


def write_run(folder: Path, started_at: float, host: str, retry_after_s: float = 60.0) -> None:
    """Write the events of a run in which one host refused a second after the start."""
    refusal = event(EventName.RETRY, ts=started_at + 1, host=host, status=429, retry_after_s=retry_after_s)
    write_events(folder, file_stem(started_at), [refusal])


def test_refusals_and_robots_targets_of_the_last_run_are_known(tmp_path: Path) -> None:
    write_run(tmp_path, 1.0, "old.test")
    write_events(
        tmp_path,
        file_stem(99.0),
        [
            event(EventName.RETRY, ts=100.0, host="a.test", status=429, retry_after_s=60.0),
            event(EventName.RETRY, ts=101.0, host="a.test", status=503, retry_after_s=10.0),
            event(EventName.ROBOTS_FETCHED, host="b.test", status=302, kind="robots", target="http://c.test/r"),
            event(EventName.FETCH_OK, host="d.test", status=200, retry_after_s=60.0),
        ],
    )
    with (tmp_path / f"{file_stem(99.0)}.jsonl").open("ab") as file:
        file.write(b'{"ts":1,"retry_after_s":')
    write_events(tmp_path, file_stem(200.0), [])
    facts = read_unsaved_facts(tmp_path, 100.5)
    assert facts.parked_until == {"a.test": 160.0}
    assert facts.robots_targets == {"http://c.test/r"}


@pytest.mark.parametrize(
    ("saved_at", "hosts"),
    [
        (0.0, ["a.test", "b.test", "c.test"]),  # no run has ever committed
        (15.0, ["a.test", "b.test", "c.test"]),
        (25.0, ["b.test", "c.test"]),
        (35.0, ["c.test"]),
        (1e9, ["c.test"]),
    ],
)
def test_runs_that_were_killed_before_they_had_committed_do_not_hide_the_one_before(
    tmp_path: Path, saved_at: float, hosts: list[str]
) -> None:
    for started_at, host in ((10.0, "a.test"), (20.0, "b.test"), (30.0, "c.test")):
        write_run(tmp_path, started_at, host)
    assert sorted(read_unsaved_facts(tmp_path, saved_at).parked_until) == hosts


def test_a_folder_without_events_has_no_facts(tmp_path: Path) -> None:
    assert read_unsaved_facts(tmp_path, 0.0).parked_until == {}
