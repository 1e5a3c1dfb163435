"""A crawl with its dashboard, as a user starts it: the program, its printed address, a browser."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.program import crawl_options, start
from tests.servers.web import RunningWeb

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}")


def wait_for(is_so: Callable[[], object], longest_s: float = 60.0) -> None:
    until = time.monotonic() + longest_s
    while not is_so():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def address_in(process: subprocess.Popen[str]) -> str:
    """Return the address of the page that a process prints."""
    output = process.stderr if "crawl" in list(map(str, process.args))[3:4] else process.stdout  # type: ignore[arg-type]
    assert output is not None
    for line in output:
        if found := ADDRESS.search(line):
            return found.group()
    raise AssertionError("no address was printed")


class PageCrawl:
    """A crawl that runs with `--ui`."""

    def __init__(self, web: RunningWeb, out: Path, *more: str, pace_ms: int = 100) -> None:
        self.web, self.out = web, out
        options = (*crawl_options(web, out, pace_ms), "--no-progress", "--ui", *more)
        self.process = start("crawl", *web.seeds(), *options)
        self.address = address_in(self.process)

    def requests_to(self, host: str) -> int:
        return sum(request.host == host for request in self.web.log())

    def wait_for_requests(self, more: int) -> None:
        wanted = len(self.web.log()) + more
        wait_for(lambda: len(self.web.log()) >= wanted)

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, err


@contextmanager
def shown(crawl: Path | str, *more: str) -> Iterator[str]:
    """Yield the address of the page of a folder or ledger, by `gossamer ui`."""
    process = start("ui", str(crawl), *more)
    try:
        yield address_in(process)
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0
