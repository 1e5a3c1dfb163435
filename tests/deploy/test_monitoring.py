"""The alerts and the dashboard are valid, fire when they should, and use only metrics that exist."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.model.figures import ActiveWarning, BoundBy, Figures, Forecast, Histogram, Resource, Totals
from gossamer.telemetry.metrics import LASTING_RULES, render
from tests.servers import engines

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARD = DEPLOY / "grafana" / "gossamer.json"
NODE = 'job="gossamer",instance="a:9464"'
AT = "20m"
GB = 10**9

# By alert: series with which it fires, and with which it does not. Values as in `promtool test rules`, one per minute.
CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "GossamerNotScraped": (
        {"up": "1x10 0x20", "gossamer_forecast_seconds": "900-10x10 stale"},
        {"up": "1x10 0x20", "gossamer_forecast_seconds": "300-27x10 stale"},
    ),
    "GossamerErrorRate": (
        {"gossamer_errors_total": "0+10x30", "gossamer_fetches_total outcome=ok": "0+90x30"},
        {"gossamer_errors_total": "0+1x30", "gossamer_fetches_total outcome=ok": "0+90x30"},
    ),
    "GossamerFrontierStarving": (
        {"gossamer_warning rule=frontier_starving": "1x30"},
        {"gossamer_warning rule=frontier_starving": "0x16 1x2 0x10"},
    ),
    "GossamerStalled": ({"gossamer_warning rule=stalled": "1x30"}, {"gossamer_warning rule=stalled": "0x30"}),
    "GossamerLoopStalled": (
        {"gossamer_warning rule=loop_stalled": "1x30"},
        {"gossamer_warning rule=loop_stalled": "0x16 1x2 0x10"},
    ),
    "GossamerOpenFiles": ({"gossamer_warning rule=open_files": "1x30"}, {"gossamer_warning rule=open_files": "0x30"}),
    "GossamerMemory": (
        {"gossamer_private_bytes": f"{2 * GB}x30", "gossamer_memory_ceiling_bytes": f"{2 * GB}x30"},
        {"gossamer_private_bytes": f"{2 * GB}x30", "gossamer_memory_ceiling_bytes": "0x30"},
    ),
    "GossamerDisk": (
        {"gossamer_free_bytes": f"{GB}x30", "gossamer_warning rule=disk": "0x30"},
        {"gossamer_free_bytes": f"{9 * GB}x30", "gossamer_warning rule=disk": "0x30"},
    ),
    "GossamerWorkerDied": (
        {"gossamer_worker_deaths_total": "0x15 1x15"},
        {"gossamer_worker_deaths_total": "3x30"},
    ),
    "GossamerClockJump": ({"gossamer_clock_jumps_total": "0x15 1x15"}, {"gossamer_clock_jumps_total": "1x30"}),
    "GossamerPaceExceeded": (
        {"gossamer_warning rule=pace_exceeded": "1x30"},
        {"gossamer_warning rule=pace_exceeded": "0x30"},
    ),
    "GossamerFailedWrites": (
        {"gossamer_failed_writes_total": "0+1x30"},
        {"gossamer_failed_writes_total": "7x30"},
    ),
    "GossamerSlowCommits": (
        {f"gossamer_commit_seconds_bucket le={le}": "0+9x30" if le == "+Inf" else "0x30" for le in ("5", "10", "+Inf")},
        {f"gossamer_commit_seconds_bucket le={le}": "0+9x30" for le in ("5", "10", "+Inf")},
    ),
}


@pytest.fixture(scope="module", params=[engines.param("prometheus")])
def promtool() -> str:
    return str(engines.program("prometheus").with_name("promtool"))


def checked(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def everything() -> set[str]:
    """Return the names of all metrics of a crawl of which everything is known."""
    figures = Figures(
        totals=Totals(outcomes={"ok": 1}, statuses={"200": 1}, held={"calendar": 1}),
        out="c",
        hosts={"ready": 1},
        latency={"total": Histogram()},
        core_share={"hub": 0.1},
        bound_by=BoundBy(Resource.CPU, ""),
        max_pages=9,
        forecast=Forecast(1.0),
        warnings=[ActiveWarning("disk", "", 1.0, is_lasting=True)],
    )
    return {re.split(r"[{ ]", line)[0] for line in render(figures).splitlines() if not line.startswith("#")}


def expressions(value: Any) -> Iterator[str]:
    """Yield the queries in a dashboard."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key in ("expr", "query") and isinstance(part, str) and "gossamer_" in part:
                yield part
            else:
                yield from expressions(part)
    elif isinstance(value, list):
        for part in value:
            yield from expressions(part)


def series(name: str) -> str:
    metric, _, labels = name.partition(" ")
    own = "".join(f',{label}="{value}"' for label, _, value in (pair.partition("=") for pair in labels.split()))
    return f"{metric}{{{NODE}{own}}}"


def one_case(alert: str, values: dict[str, str], *, fires: bool) -> dict[str, Any]:
    inputs = [{"series": series(name), "values": f"{points}"} for name, points in values.items()]
    if "up" not in values:
        inputs.append({"series": series("up"), "values": "1x30"})
    count = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    expected = [{"labels": "{}", "value": int(fires)}]
    return {
        "name": f"{alert} {'fires' if fires else 'does not fire'}",
        "interval": "1m",
        "input_series": inputs,
        "promql_expr_test": [{"expr": count, "eval_time": AT, "exp_samples": expected}],
    }


def test_the_alerts_are_valid(promtool: str) -> None:
    checked(promtool, "check", "rules", ALERTS)


def test_every_alert_has_a_case_where_it_fires_and_one_where_it_does_not() -> None:
    assert set(re.findall(r"- alert: (\w+)", ALERTS.read_text())) == set(CASES)


def test_each_alert_fires_when_it_should_and_not_otherwise(promtool: str, tmp_path: Path) -> None:
    cases = [
        one_case(alert, values, fires=fires)
        for alert, (firing, quiet) in CASES.items()
        for values, fires in ((firing, True), (quiet, False))
    ]
    plan = tmp_path / "cases.yml"
    plan.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": cases}))
    checked(promtool, "test", "rules", plan)


def test_a_case_that_is_wrong_would_be_found(promtool: str, tmp_path: Path) -> None:
    plan = tmp_path / "cases.yml"
    case = one_case("GossamerStalled", {"gossamer_warning rule=stalled": "0x30"}, fires=True)
    plan.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [case]}))
    with pytest.raises(AssertionError, match="GossamerStalled"):
        checked(promtool, "test", "rules", plan)


def test_alerts_and_dashboard_use_only_metrics_that_exist() -> None:
    known = everything()
    for path in (ALERTS, DASHBOARD):
        used = set(re.findall(r"\bgossamer_[a-z0-9_]+", path.read_text()))
        assert used - known == set(), path.name
        assert len(used) > 8


def test_every_rule_that_an_alert_asks_for_has_a_series() -> None:
    asked = set(re.findall(r'rule="(\w+)"', ALERTS.read_text()))
    assert asked <= set(LASTING_RULES)


def test_every_query_of_the_dashboard_is_valid(promtool: str, tmp_path: Path) -> None:
    queries = [
        re.sub(r"^label_values\((.*), \w+\)$", r"\1", query).replace("$__rate_interval", "1m")
        for query in expressions(json.loads(DASHBOARD.read_text()))
    ]
    assert len(queries) > 25
    rules = [{"record": f"query_{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "queries.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked(promtool, "check", "rules", "--lint=none", file)


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_the_configuration_of_prometheus_is_valid(promtool: str) -> None:
    checked(promtool, "check", "config", DEPLOY / "prometheus" / "prometheus.yml")
