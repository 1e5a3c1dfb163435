"""A real Prometheus scrapes a crawl: what it has of the paused crawl is what the crawl says when it stops."""

from __future__ import annotations

import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.program import crawl_options, run, start, summary_of
from tests.servers import engines, prometheus
from tests.servers.web import RunningWeb

LONGEST_S = 60.0
ALERTS = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
# By field of the summary: what Prometheus is asked for.
SAME = {
    "pages": "gossamer_pages_total",
    "fetches": "sum(gossamer_fetches_total)",
    "errors": "gossamer_errors_total",
    "bytes": "gossamer_bytes_total",
    "urls_seen": "gossamer_urls_seen_total",
    "urls_queued": 'sum(gossamer_urls{state="queued"})',
    "dead": 'sum(gossamer_urls{state="dead"})',
    "unique_hosts": "gossamer_unique_hosts_total",
    "unique_domains": "gossamer_unique_domains_total",
    "robots_disallowed": "gossamer_robots_disallowed_total",
    "duplicates": 'sum(gossamer_duplicates_total{kind="exact"})',
    "near_duplicates": 'sum(gossamer_duplicates_total{kind="near"})',
    "worker_deaths": "gossamer_worker_deaths_total",
    "memory_ceiling_bytes": "gossamer_memory_ceiling_bytes",
}


@pytest.fixture(scope="module", params=[engines.param("prometheus")])
def program() -> str:
    return str(engines.program("prometheus"))


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("rough", domains=14, hosts=20, pages=600, slow=0.0)) as web:
        yield web


def wait_for(is_so: Callable[[], object]) -> None:
    until = time.monotonic() + LONGEST_S
    while not is_so():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.1)


def metrics_url(crawl: subprocess.Popen[str]) -> str:
    """Return the address that a crawl prints."""
    assert crawl.stderr is not None
    for line in crawl.stderr:
        found = re.search(r"http://[\d.:]+/metrics", line)
        if found is not None:
            return found[0]
    raise AssertionError("no address of metrics was printed")


def scraped(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return bytes(answer.read()).decode()


def value_of(server: prometheus.Prometheus, expression: str) -> float:
    return next(iter(server.query(expression).values()), -1.0)


def test_what_prometheus_has_of_a_paused_crawl_is_the_summary_of_its_stop(
    web: RunningWeb, program: str, tmp_path: Path
) -> None:
    out = tmp_path / "c"
    options = [*crawl_options(web, out, 60), "--metrics-listen", "127.0.0.1:0", "--retry-wait", "0.05", "--no-progress"]
    with start("crawl", *web.seeds(), *options) as crawl:
        try:
            stored = stored_when_paused(crawl, out, program, tmp_path)
            assert run("stop", str(out)).returncode == 0
            stdout, stderr = crawl.communicate(timeout=LONGEST_S)
        finally:
            crawl.kill()
    assert crawl.returncode == 11, stderr
    summary: dict[str, Any] = summary_of(stdout)
    assert 50 < summary["pages"] < 600, "it was stopped on its way"
    assert stored == {field: summary[field] for field in SAME}


def stored_when_paused(crawl: subprocess.Popen[str], out: Path, program: str, folder: Path) -> dict[str, float]:
    """Return what Prometheus has stored of a crawl after it was paused."""
    url = metrics_url(crawl)
    target = url.removeprefix("http://").removesuffix("/metrics")
    with prometheus.running(program, folder / "prometheus", target, ALERTS) as server:
        wait_for(lambda: value_of(server, "gossamer_pages_total") > 50)
        assert run("pause", str(out)).returncode == 0
        wait_for(lambda: is_still(scraped(url)))
        still_at = time.time()
        wait_for(lambda: value_of(server, "timestamp(gossamer_pages_total)") > still_at + 1)
        assert server.query("up") == {"": 1}
        assert value_of(server, 'gossamer_state{state="paused"}') == 1
        assert value_of(server, 'gossamer_bound_by{resource="paused"}') == 1
        answered = value_of(server, "sum(gossamer_answers_total)")
        assert server.query("gossamer_fetch_seconds_count")["first_byte"] >= 0.9 * answered, "robots.txt included"
        return {field: value_of(server, expression) for field, expression in SAME.items()}


def is_still(text: str) -> bool:
    """Return whether a crawl is paused, and nothing is on its way."""
    return 'gossamer_state{state="paused"} 1' in text and "\ngossamer_in_flight_requests 0\n" in text
