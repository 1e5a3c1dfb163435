"""How tests run: Hypothesis finds the same things on every machine, servers are shared, and every skip is explained."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from gossamer.core.url.identity import Identity, use
from tests import rewriting, starvation
from tests.amount import amount
from tests.servers import engines, java

# A background job and nohup ignore these, and programs inherit that: tests start programs that must not.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

WAITING_FOLDERS = {"e2e", "hostile", "measuring"}

settings.register_profile(
    "stable",
    deadline=None,
    derandomize=True,
    max_examples=amount(30, 60),
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("search", parent=settings.get_profile("stable"), derandomize=False, max_examples=1000)
settings.register_profile("unshrunk", parent=settings.get_profile("stable"), phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "stable"))


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        java.begin_sharing()
        if config.getoption("numprocesses", None):
            rewriting.rewrite_all(Path(__file__).parent)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    engines.skip_what_is_not_required(items)
    items[:] = spread(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def spread(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """Order tests so that at any time some processes of a test run wait and others compute.

    The processes get equal parts of the list, in order; who has finished takes from the end of another's part. Tests of
    crawls mostly wait, and there are fewer of them, but they take longer: each part has its share, evenly spread. What
    shares a crawl is in one part.
    """
    modules = [list(tests) for _, tests in groupby(items, _place)]
    waiting = [tests for tests in modules if tests[0].path.parent.name in WAITING_FOLDERS]
    computing = [tests for tests in modules if tests[0].path.parent.name not in WAITING_FOLDERS]
    placed = [(place / len(kind), tests) for kind in (waiting, computing) for place, tests in enumerate(kind)]
    mixed = [tests for _, tests in sorted(placed, key=lambda each: each[0])]
    return [test for first in range(processes) for tests in mixed[first::processes] for test in tests]


def _place(item: pytest.Item) -> Path:
    """Return the module of a test, or its folder if the modules of that share a crawl."""
    return item.path.parent if item.path.parent.name == "hostile" else item.path


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    engines.allow(*engines.names_of(item))
    return starvation.run_test(item, nextitem) or None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why tests were skipped, a line per reason, and how many were repeated."""
    reports = [one for kind in terminalreporter.stats.values() for one in kind if isinstance(one, pytest.TestReport)]
    skipped = [report.longrepr[2] for report in reports if report.skipped and isinstance(report.longrepr, tuple)]
    reasons = Counter(reason.removeprefix("Skipped: ") for reason in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")
    repeated = sum(name == starvation.REPEATED for report in reports for name, _ in report.user_properties)
    if repeated:
        terminalreporter.write_line(f"{repeated} repeated: measure time, which others took")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        java.end_sharing()


@pytest.fixture(autouse=True)
def same_identity() -> Iterator[None]:
    """Key and regions of a crawl that was opened hold for the whole process: a test does not leave them to the next."""
    use(Identity())
    yield
    use(Identity())
