"""What is told of a page says what task and result say: events are made by place, for speed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer.engine.event_emitter import EventEmitter
from gossamer.model.events import Event, EventName
from gossamer.model.records import FetchKind, FetchTask, Outcome, QueuedUrl, Result

_ORDER = FetchTask(
    id=1,
    kind=FetchKind.SITEMAP,
    url="http://h.test/a",
    url_id=b"i" * 16,
    host="h.test",
    addresses=("127.0.0.1",),
    depth=2,
    hops=0,
    attempt=3,
    issued_at=100.0,
)
_URL = QueuedUrl("http://h.test/a", b"i" * 16, "h.test", 0, 1, 2)
_RESULT = Result(
    task_id=1,
    outcome=Outcome.REDIRECT,
    status=301,
    error="error",
    sent_at=101.0,
    requests_sent=4,
    first_byte_at=101.5,
    finished_at=102.0,
    address="127.0.0.1",
    wire_bytes=5,
    content_type="text/html",
    title="title",
    redirect_to="http://h.test/b",
    links_found=6,
    worker=7,
    directives="noindex",
    usage="usage",
)
_TOLD = Event(
    ts=110.0,
    event=EventName.REDIRECT,
    url="http://h.test/a",
    host="h.test",
    depth=2,
    status=301,
    bytes=5,
    content_type="text/html",
    worker=7,
    t_ms_from_start=20_000,
    reason="redirect: error",
    order=1,
    kind="sitemap",
    sent_at=101.0,
    requests=4,
    ttfb_ms=500,
    total_ms=2000,
    address="127.0.0.1",
    attempt=3,
    target="http://h.test/b",
    title="title",
    links=6,
    new_links=8,
    directives="noindex",
    usage="usage",
)


@pytest.mark.parametrize("retry_after_s", [-1.0, 30.0])
def test_each_field_of_a_page_is_reported_under_its_own_name(retry_after_s: float) -> None:
    told: list[Event] = []
    result = replace(_RESULT, retry_after_s=retry_after_s)
    EventEmitter(told.append, 90.0).page(_ORDER, _URL, result, 8, 110.0)
    event = told[0]
    assert event.retry_after_s == max(0.0, retry_after_s)
    names = [name for name in Event.__struct_fields__ if name != "retry_after_s"]
    assert {name: getattr(event, name) for name in names} == {name: getattr(_TOLD, name) for name in names}
