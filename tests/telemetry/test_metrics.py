"""The metrics are Prometheus' text format, and say what the figures say."""

from __future__ import annotations

import re
import subprocess
from itertools import accumulate, pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer import __version__
from gossamer.model.figures import (
    BOUNDS_S,
    ActiveWarning,
    BoundBy,
    Figures,
    Forecast,
    Histogram,
    Resource,
    RunState,
    Totals,
)
from gossamer.runtime.watch import conditions
from gossamer.telemetry.metrics import LASTING_RULES, render
from tests.servers import engines

_LINE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')
_PAIR = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}

numbers = st.integers(0, 2**48)
times = st.floats(0, 1e9) | st.just(inf)
words = st.text(min_size=1, max_size=8)
histograms = st.builds(
    Histogram, st.lists(st.integers(0, 1000), min_size=len(BOUNDS_S) + 1, max_size=len(BOUNDS_S) + 1), times
)
all_totals = st.builds(
    Totals,
    pages=numbers,
    errors=numbers,
    bytes=numbers,
    urls_seen=numbers,
    dead=numbers,
    duplicates=numbers,
    seconds=times,
    outcomes=st.dictionaries(words, numbers, max_size=4),
    statuses=st.dictionaries(st.integers(100, 999).map(str), numbers, max_size=4),
    held=st.dictionaries(words, numbers, max_size=3),
)
all_figures = st.builds(
    Figures,
    totals=all_totals,
    out=words,
    state=st.sampled_from(RunState),
    urls_queued=numbers,
    urls_parked=numbers,
    hosts=st.dictionaries(words, numbers, max_size=3),
    worker_deaths=numbers,
    private_bytes=numbers,
    compression_ratio=times,
    started_at=times,
    max_pages=st.none() | numbers,
    latency=st.dictionaries(words, histograms, max_size=3),
    commit_time=histograms,
    flush_time=histograms,
    core_share=st.dictionaries(words, times, max_size=2),
    bound_by=st.none() | st.builds(BoundBy, st.sampled_from(Resource), words),
    forecast=st.none() | st.builds(Forecast, st.none() | times),
    warnings=st.lists(st.builds(ActiveWarning, words, words, times, st.booleans()), max_size=4),
)


class Parsed:
    """Metrics as a reader has them: samples by name and labels, kinds by name."""

    def __init__(self, text: str) -> None:
        self.samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        self.kinds: dict[str, str] = {}
        self.helps: set[str] = set()
        assert text.endswith("\n")
        for line in text.removesuffix("\n").split("\n"):
            self._read(line)

    def _read(self, line: str) -> None:
        if line.startswith("# HELP "):
            self.helps.add(line.split(" ", 3)[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in self.kinds, f"{name} twice"
            self.kinds[name] = kind
        else:
            match = _LINE.fullmatch(line)
            assert match is not None, line
            name, labels, value = match.groups()
            pairs = frozenset(
                (key, re.sub(r"\\.", lambda e: _ESCAPES[e[0]], raw)) for key, raw in _PAIR.findall(labels or "")
            )
            assert (name, pairs) not in self.samples, line
            self.samples[name, pairs] = float(value)

    def __call__(self, name: str, **labels: str) -> float:
        return self.samples[f"gossamer_{name}", frozenset(labels.items())]

    def by(self, name: str, label: str) -> dict[str, float]:
        """Return the samples of a name by a label."""
        found = {pairs: value for (one, pairs), value in self.samples.items() if one == f"gossamer_{name}"}
        return {dict(pairs)[label]: value for pairs, value in found.items()}


def check_histogram(parsed: Parsed, name: str, histogram: Histogram, **labels: str) -> None:
    bounds = [*(str(bound) if bound != int(bound) else str(int(bound)) for bound in BOUNDS_S), "+Inf"]
    buckets = [parsed(f"{name}_bucket", **labels, le=bound) for bound in bounds]
    assert buckets == list(accumulate(histogram.counts))
    assert parsed(f"{name}_count", **labels) == histogram.count == buckets[-1]
    assert parsed(f"{name}_sum", **labels) == histogram.sum_s
    assert all(a <= b for a, b in pairwise(buckets))


@given(all_figures)
def test_what_is_rendered_reads_back_as_the_figures(figures: Figures) -> None:
    parsed, totals = Parsed(render(figures)), figures.totals
    assert parsed("pages_total") == totals.pages
    assert parsed("errors_total") == totals.errors
    assert parsed("bytes_total") == totals.bytes
    assert parsed.by("fetches_total", "outcome") == totals.outcomes
    assert sum(parsed.by("answers_total", "class").values()) == sum(totals.statuses.values())
    assert parsed.by("held_urls", "rule") == totals.held
    assert parsed("urls", state="queued") == figures.urls_queued
    assert parsed("urls", state="parked") == figures.urls_parked
    assert parsed("urls", state="dead") == totals.dead
    assert parsed.by("hosts", "state") == figures.hosts
    assert parsed.by("core_share", "process") == figures.core_share
    assert parsed("worker_deaths_total") == figures.worker_deaths
    assert parsed("private_bytes") == figures.private_bytes
    assert parsed("process_start_time_seconds") == figures.started_at
    assert [name for name, value in parsed.by("state", "state").items() if value] == [figures.state.value]
    bound_by = [name for name, value in parsed.by("bound_by", "resource").items() if value]
    assert bound_by == ([] if figures.bound_by is None else [figures.bound_by.resource.value])
    lasting = {name for name, value in parsed.by("warning", "rule").items() if value}
    assert lasting == {warning.rule for warning in figures.warnings if warning.is_lasting}
    check_histogram(parsed, "commit_seconds", figures.commit_time)
    check_histogram(parsed, "flush_seconds", figures.flush_time)
    for phase, histogram in figures.latency.items():
        check_histogram(parsed, "fetch_seconds", histogram, phase=phase)
    known = None if figures.forecast is None else figures.forecast.seconds
    assert parsed.samples.get(("gossamer_forecast_seconds", frozenset())) == known


@given(all_figures)
def test_every_family_has_a_type_and_a_help_and_nothing_is_labelled_by_host(figures: Figures) -> None:
    parsed = Parsed(render(figures))
    assert set(parsed.kinds) == parsed.helps
    for name, labels in parsed.samples:
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        assert parsed.kinds.get(name) in ("counter", "gauge") or parsed.kinds.get(family) == "histogram"
        assert (parsed.kinds.get(name) == "counter") == name.endswith("_total")
        assert not {"host", "domain", "url", "out"} & {label for label, _ in labels}


def test_the_program_says_which_it_is() -> None:
    assert Parsed(render(Figures(totals=Totals(), out="c")))("build_info", version=__version__) == 1


def test_every_condition_that_lasts_has_a_series_while_it_does_not_hold() -> None:
    rules = Parsed(render(Figures(totals=Totals(), out="c"))).by("warning", "rule")
    assert rules == dict.fromkeys(LASTING_RULES, 0)
    described = dict(re.findall(r"^    ([a-z_]+)  +(.*)$", conditions.__doc__ or "", re.MULTILINE))
    assert {rule for rule, when in described.items() if "each time" not in when} == set(LASTING_RULES)


@pytest.mark.engine("prometheus")
def test_the_figures_of_a_whole_run_pass_prometheus_own_check() -> None:
    figures = Figures(
        totals=Totals(pages=7, outcomes={"ok": 7, 'a"b\\c\n': 1}, statuses={"200": 7}, held={"calendar": 2}),
        out="c",
        hosts={"ready": 3},
        latency={"dns": Histogram(), "total": Histogram([1] * (len(BOUNDS_S) + 1), 12.5)},
        core_share={"hub": 0.5},
        max_pages=100,
        forecast=Forecast(12.0),
    )
    done = subprocess.run(
        [engines.program("prometheus").with_name("promtool"), "check", "metrics"],
        check=False,
        input=render(figures),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
