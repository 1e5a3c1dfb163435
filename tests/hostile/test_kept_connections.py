"""A kept connection that dies under a request: the page is asked for again, but not before its host's delay."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from gossamer.model.records import UrlState
from tests.e2e.program import run
from tests.hostile.crawling import Aftermath, crawl_catalogue
from tests.hostile.serving import ROBOTS, Call, Catalogue, HostileServer, Seen

DELAY_S = 0.2
SLACK_S = 0.02  # the server takes its times in a thread; on a busy machine the first of two may be late
PAGES = tuple(f"/{number}" for number in range(1, 9))
HUNG_UP_ON = ("/3", "/6")  # the first request for each is read and not answered


def hanging_up() -> Catalogue:
    """Return a site of nine pages that keeps its connections, but for the first request for some pages."""
    catalogue = Catalogue()
    left = set(HUNG_UP_ON)

    @catalogue.serves("k01")
    async def site(call: Call) -> None:
        if call.path in left:
            left.remove(call.path)
            call.is_last = True
        else:
            links = "".join(f'<a href="{path}">{path}</a>' for path in PAGES) if call.path == "/" else ""
            await call.html(f"<title>{call.path}</title><p>This is the page at {call.path}.{links}")

    return catalogue


@pytest.fixture(scope="module", params=["1", "2"], ids=["one process", "two workers"])
def after(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    pace = ("--politeness-ms", str(round(DELAY_S * 1000)), "--retry-wait", "0", "--workers", request.param)
    with HostileServer(hanging_up()) as server:
        aftermath = crawl_catalogue(server, tmp_path_factory.mktemp("kept") / "out", ["k01"], *pace)
        yield aftermath
        aftermath.close()


def arrivals(after: Aftermath) -> list[Seen]:
    """Return every request that the host got, robots.txt included."""
    return sorted(after.server.requests("k01") + after.server.requests("k01", ROBOTS), key=lambda seen: seen.at)


def test_the_requests_that_got_no_answer_came_on_max_idle_connections(after: Aftermath) -> None:
    for path in HUNG_UP_ON:
        dropped, _ = after.server.requests("k01", path)
        assert any(seen.connection == dropped.connection and seen.at < dropped.at for seen in arrivals(after))


def test_nothing_is_asked_for_again_inside_the_delay(after: Aftermath) -> None:
    gaps = [(second.at - first.at, first.path, second.path) for first, second in pairwise(arrivals(after))]
    assert min(gaps)[0] >= DELAY_S - SLACK_S, min(gaps)


def test_every_page_is_fetched_in_the_end_and_none_more_often_than_needed(after: Aftermath) -> None:
    for path in ("/", *PAGES):
        assert after.times_asked("k01", path) == 1 + (path in HUNG_UP_ON)
        row = after.row("k01", path)
        assert (row.state, row.outcome) == (UrlState.DONE, "ok")
        assert len(after.archived("k01", path)) == 1
    assert (after.summary["pages"], after.summary["urls_queued"], after.summary["dead"]) == (1 + len(PAGES), 0, 0)


def test_the_crawl_tells_of_the_retries_and_passes_its_audit(after: Aftermath) -> None:
    retried = {event["url"].rpartition("/")[2]: event["reason"] for event in after.told("k01", "retry")}
    assert sorted(retried) == [path.strip("/") for path in HUNG_UP_ON]
    assert all(reason.startswith("disconnected") for reason in retried.values())
    done = run("audit", str(after.out))
    assert done.returncode == 0, done.stdout
