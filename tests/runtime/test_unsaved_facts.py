from __future__ import annotations

from pathlib import Path

from gossamer.events import EventName
from gossamer.runtime.unsaved_facts import read_unsaved_facts
from tests.inspect.folders import event, write_events


def test_refusals_and_robots_targets_of_the_last_run_are_known(tmp_path: Path) -> None:
    write_events(tmp_path, "1", [event(EventName.RETRY, ts=1.0, host="old.test", status=429, retry_after_s=9.0)])
    write_events(
        tmp_path,
        "2",
        [
            event(EventName.RETRY, ts=100.0, host="a.test", status=429, retry_after_s=60.0),
            event(EventName.RETRY, ts=101.0, host="a.test", status=503, retry_after_s=10.0),
            event(EventName.ROBOTS_FETCHED, host="b.test", status=302, kind="robots", target="http://c.test/r"),
            event(EventName.FETCH_OK, host="d.test", status=200, retry_after_s=60.0),
        ],
    )
    with (tmp_path / "2.jsonl").open("ab") as file:
        file.write(b'{"ts":1,"retry_after_s":')
    write_events(tmp_path, "3", [])
    facts = read_unsaved_facts(tmp_path)
    assert facts.quiet_until == {"a.test": 160.0}
    assert facts.robots_targets == {"http://c.test/r"}


def test_a_folder_without_events_has_no_facts(tmp_path: Path) -> None:
    assert read_unsaved_facts(tmp_path).quiet_until == {}
