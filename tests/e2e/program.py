"""Runs the program as a user does: a process, its output, its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gossamer.foundation import failpoints
from tests.e2e import preloaded
from tests.e2e.preloaded import GOSSAMER
from tests.servers.web import RunningWeb


def start(
    *arguments: str, environment: dict[str, str] | None = None, cwd: Path | None = None, is_new: bool = False
) -> subprocess.Popen[str]:
    """Start the program; `is_new`: in a process that has nothing loaded and a seed of hashes of its own."""
    if not is_new and cwd is None and not set(environment or {}) - {failpoints.VARIABLE}:
        return preloaded.start(arguments, {**_bare_environment(), **(environment or {})})
    return subprocess.Popen(
        [*GOSSAMER, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**_bare_environment(), **(environment or {})},
        cwd=cwd,
    )


def run(
    *arguments: str, environment: dict[str, str] | None = None, cwd: Path | None = None, is_new: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    process = start(*arguments, environment=environment, cwd=cwd, is_new=is_new)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@contextmanager
def beside(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the program beside the test; nothing of it is left if the test fails."""
    process = start(*arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(process: subprocess.Popen[str], words: str) -> str:
    """Return the first line of stderr with these words."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return line
    raise AssertionError(f"no line with {words!r}")


def kill_at_each(arguments: Sequence[str], deaths: Iterable[str]) -> None:
    """Run the program again and again, killed at one failpoint after the other."""
    for death in deaths:
        killed = run(*arguments, environment={"GOSSAMER_FAILPOINT": death})
        assert killed.returncode == -signal.SIGKILL, killed.stderr


def survive(arguments: Sequence[str], deaths: Iterable[str]) -> None:
    """Run the program, killed at one failpoint after the other, and then to its end."""
    kill_at_each(arguments, deaths)
    done = run(*arguments)
    assert done.returncode == 0, done.stderr


def _bare_environment() -> dict[str, str]:
    def is_ours(name: str) -> bool:
        return name.startswith("GOSSAMER_") or name.lower().endswith("_proxy")

    return {name: value for name, value in os.environ.items() if not is_ours(name)}


def crawl_options(web: RunningWeb, out: Path, pace_ms: int) -> list[str]:
    return [
        *("--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "--politeness-ms", str(pace_ms)),
        *("--out", str(out), "--max-wait", "3", "--json"),
    ]


def crawl(
    web: RunningWeb, out: Path, pace_ms: int, *more: str, seeds: Sequence[str] = (), is_new: bool = False
) -> dict[str, Any]:
    done = run("crawl", *(seeds or web.seeds()), *crawl_options(web, out, pace_ms), *more, is_new=is_new)
    assert done.returncode == 0, done.stderr
    return summary_of(done.stdout)


def summary_of(stdout: str) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(stdout.strip().splitlines()[-1])
    return summary


def fetched_urls(out: Path, *, kind: str = "") -> list[str]:
    urls = []
    for path in sorted((out / "events").glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            event = json.loads(line)
            if event.get("order") and event.get("kind", "") == kind and "duplicate" not in event["event"]:
                urls.append(event["url"])
    return urls
