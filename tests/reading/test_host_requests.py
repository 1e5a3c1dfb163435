from __future__ import annotations

from pathlib import Path

from gossamer.model.events import EventName
from gossamer.reading.requests.host_requests import host_requests
from tests.reading.folders import event, write_events


def test_every_request_to_a_host_is_listed_with_its_purpose(tmp_path: Path) -> None:
    write_events(
        tmp_path,
        "1",
        [
            event(EventName.ERROR, host="a.test", kind="dns", requests=0, reason="dns_failed: no answer"),
            event(EventName.ROBOTS_FETCHED, host="a.test", kind="robots", order=1, status=404, reason="client_error"),
            event(EventName.FETCH_OK, host="a.test", order=2, status=200, url="http://a.test/"),
            event(EventName.ERROR, host="a.test", order=3, depth=2, attempt=1, status=404, reason="client_error"),
            event(EventName.FETCH_OK, host="b.test", order=4, status=200),
        ],
    )
    assert [(one.purpose, one.outcome, one.requests) for one in host_requests([tmp_path], "a.test")] == [
        ("name look-up", "dns_failed", 0),
        ("robots.txt", "client_error", 1),
        ("seed", "ok", 1),
        ("page, depth 2, retry 1", "client_error", 1),
    ]
