"""The dashboard and the metrics of a running crawl, served by a process of their own.

The crawl starts it and does not wait for it. It ends with the crawl, however that ends: its standard input is a pipe of
ours. If it ends before, one line says so, and the crawl goes on. An address that cannot be listened on is found before
anything is started.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EADDRINUSE
from pathlib import Path
from threading import Thread

from msgspec import Struct

from gossamer.model.errors import UsageError
from gossamer.settings.listening import address_of
from gossamer.settings.model import Settings

ENDS_WITHIN_S = 2.0
FREE_WITHIN_S = 5.0  # the dashboard of a crawl that was killed just now ends by itself
_TRY_EVERY_S = 0.1


class Served(Struct, frozen=True):
    """What is served: of a node of many, the dashboard of the whole crawl and the metrics of the node."""

    folder: str
    ledger: str = ""


def wants_dashboard(settings: Settings) -> bool:
    """Return whether any setting asks for the dashboard."""
    return settings.ui or bool(settings.ui_listen or settings.ui_url or settings.ui_token_file)


def check_addresses(settings: Settings) -> None:
    """Raise `UsageError` if an address of the settings cannot be listened on, or a token not be read."""
    if settings.ui_token_file:
        from gossamer.web.token_file import token_in

        token_in(Path(settings.ui_token_file))
    given = {"--ui-listen": settings.ui_listen, "--metrics-listen": settings.metrics_listen}
    for option, text in given.items():
        if text:
            _check_address(text, option)


def _check_address(text: str, option: str) -> None:
    from gossamer.web.http import listener_at

    until = time.monotonic() + FREE_WITHIN_S
    while True:
        try:
            listener_at(address_of(text, option), option).close()
        except UsageError as error:
            is_taken = isinstance(error.__cause__, OSError) and error.__cause__.errno == EADDRINUSE
            if not is_taken or time.monotonic() >= until:
                raise
            time.sleep(_TRY_EVERY_S)
        else:
            return


@contextmanager
def dashboard_served(
    settings: Settings, served: Served, announce: Callable[[str], None], warn: Callable[[str], None]
) -> Iterator[None]:
    """Serve what the settings of a crawl ask for, while it runs."""
    with ExitStack() as stack:
        for words in _commands(settings, served):
            stack.callback(DashboardProcess(words, announce, warn).end)
        yield


def _commands(settings: Settings, served: Served) -> Iterator[list[str]]:
    """Yield the command lines of the processes that are wanted: at most one, on a node at most two."""
    metrics = ["--metrics-listen", settings.metrics_listen] if settings.metrics_listen else []
    has_dashboard = wants_dashboard(settings)
    given = {"--ui-listen": settings.ui_listen, "--ui-url": settings.ui_url, "--ui-token-file": settings.ui_token_file}
    listen = [word for option, value in given.items() if value for word in (option, value)]
    if has_dashboard and served.ledger:
        yield ["ui", "--follow-stdin", *listen, "--", served.ledger]
    elif has_dashboard:
        yield ["ui", "--follow-stdin", *listen, *metrics, "--", served.folder]
    if metrics and (served.ledger or not has_dashboard):
        yield ["ui", "--follow-stdin", "--metrics-only", *metrics, "--", served.folder]


class DashboardProcess:
    """The process, and a thread that passes on what it prints."""

    def __init__(self, words: list[str], announce: Callable[[str], None], warn: Callable[[str], None]) -> None:
        self._is_wanted = True
        self._announce = announce
        self._warn = warn
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "gossamer", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the crawl, which then ends this
        )
        self.thread = Thread(target=self._pass_on, name="dashboard", daemon=True)
        self.thread.start()

    def _pass_on(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._announce(line.decode("utf-8", "replace").strip())
        status = self._process.wait()
        if self._is_wanted:
            self._warn(f"the process of the dashboard has ended with status {status}; the crawl goes on without it")

    def end(self) -> None:
        self._is_wanted = False
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
