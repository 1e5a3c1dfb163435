"""The endpoint for change notices: who may report what, and how it reaches the crawl.

A notice whose key is right is handed to the crawl before it is answered with 200: what was answered is not lost. All
that wait are handed over together, about once per second. If the key is not known yet, the crawl is asked to fetch its
file (`web/key_files`), the notice is answered with 202 and waits here, in memory: for `PENDING_S`, and not beyond the
end of this process, which says how many it drops.

Bounded: URLs per hour and host whose key is right; notices per hour and sender whose key is wrong or not known, so
that nobody uses up what a host may report; what waits for a key or for the crawl, bodies and connections (`web/http`).
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

from gossamer.core.politeness.networks import network_of
from gossamer.model.errors import GossamerError
from gossamer.settings.listening import Address
from gossamer.telemetry.text import plural, printable
from gossamer.web.access import is_loopback
from gossamer.web.http import BadRequestError, HttpRequest, Response, failure, fault, listening, served
from gossamer.web.indexnow import PATH, Notice, notice_in
from gossamer.web.key_files import RIGHT_S, WRONG_S, KeyState, KeyVerdict, RecentKeys, verdict_on
from gossamer.web.reporting import MAX_WAITING_URLS, Reporting
from gossamer.web.source import CrawlSource

# How much may be reported per hour, by a host or a sender and by all of them? Fixed windows, bounded in memory.

WINDOW_S: Final = 3600.0
MAX_NAMES: Final = 20_000  # that are remembered: those that reported first are forgotten


class Allowance:
    """An allowance per hour: for each host or sender, and for all together."""

    def __init__(self, per_name: int, overall: int) -> None:
        self._per_name = per_name
        self._overall = overall
        self._used: OrderedDict[str, tuple[float, int]] = OrderedDict()  # when the window began, and what was used
        self._total = (0.0, 0)

    def wait_s(self, name: str, count: int, now: float) -> float:
        """Use the allowance and return 0; if there is too little left, use nothing and return the time to wait."""
        began, used = _window(self._used.get(name, (now, 0)), now)
        total_began, total = _window(self._total, now)
        if used + count > self._per_name:
            return max(began + WINDOW_S - now, 1.0)
        if total + count > self._overall:
            return max(total_began + WINDOW_S - now, 1.0)
        self._used[name] = began, used + count
        self._used.move_to_end(name)
        self._total = total_began, total + count
        if len(self._used) > MAX_NAMES:
            self._used.popitem(last=False)
        return 0.0


def _window(window: tuple[float, int], now: float) -> tuple[float, int]:
    return window if now - window[0] < WINDOW_S else (now, 0)


MAX_POST_BYTES = 4 << 20
URLS_PER_HOST = 20_000  # per hour
URLS_OVERALL = 500_000
UNPROVED_PER_SENDER = 60  # notices per hour whose key is not known to be right
UNPROVED_OVERALL = 2_000
MAX_PENDING_KEYS = 1_000
PENDING_S = 3600.0
POLL_S = 2.0
COMPLAIN_S = 60.0
OUTSIDE = "the crawl's rules do not allow it"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ACCEPTED = {200: b"the URLs were reported to the crawl\n", 202: b"accepted; the key file is still to be fetched\n"}


class _Pending(Struct):
    """What waits for a key."""

    notice: Notice
    urls: dict[str, None]
    until: float
    is_asked: bool = False  # for the file


def sender_of(request: HttpRequest) -> str:
    """Return who sent a request: the client, or whom a reverse proxy on this machine names as its own."""
    forwarded = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    if not forwarded or not is_loopback(request.client):
        return request.client
    try:
        return network_of(str(ip_address(forwarded)))
    except ValueError:
        return request.client


class NoticeAnswers:
    """Answers notices. `run` must run."""

    def __init__(
        self, source: CrawlSource, announce: Callable[[str], None], now: Callable[[], float] = time.time
    ) -> None:
        self._source = source
        self._announce = announce
        self._now = now
        self.reporting = Reporting(source, announce)
        self._right = RecentKeys(RIGHT_S)
        self._outside = RecentKeys(WRONG_S)
        self._proved = Allowance(URLS_PER_HOST, URLS_OVERALL)
        self._unproved = Allowance(UNPROVED_PER_SENDER, UNPROVED_OVERALL)
        self._pending: dict[tuple[str, str], _Pending] = {}
        self._refused: Counter[int] = Counter()

    async def answer(self, request: HttpRequest) -> Response:
        if request.path != PATH:
            return failure(404, f"there is nothing at this address; expected {PATH}")
        if request.method not in ("GET", "POST"):
            return failure(
                405, f"{request.method} is not possible here; expected GET or POST", [("Allow", "GET, POST")]
            )
        try:
            response = await self._answer(notice_in(request), sender_of(request))
        except BadRequestError as error:
            response = failure(error.status, str(error))
        except GossamerError as error:
            response = failure(503, str(error), [("Retry-After", "60")])
        except Exception as error:
            response = failure(500, fault(f"{request.method} {request.path}", error, "notices"))
        if response.status >= 400:
            self._refused[response.status] += 1
        return response

    async def _answer(self, notice: Notice, sender: str) -> Response:
        if not self._right.has(notice.key_url, notice.key, self._now()):
            verdict = await self._look_up(notice)
            wait_s = 0.0 if verdict.state is KeyState.RIGHT else self._unproved.wait_s(sender, 1, self._now())
            if wait_s:
                return _too_many("too many notices of this sender whose key is wrong or not known", wait_s)
            if verdict.state is KeyState.WRONG:
                return failure(403, f"the key file {notice.key_url}: {verdict.reason}")
            if verdict.state is KeyState.UNKNOWN:
                return self._wait_for_key(notice)
        if len(notice.urls) > self.reporting.room:
            return _too_many("too many URLs wait for the crawl", POLL_S)
        wait_s = self._proved.wait_s(notice.host, len(notice.urls), self._now())
        if wait_s:
            return _too_many(
                f"more than {URLS_PER_HOST} URLs of {notice.host}, or {URLS_OVERALL} of all, in an hour", wait_s
            )
        await self.reporting.report(notice.urls)
        return Response(200, _ACCEPTED[200], "text/plain")

    async def _look_up(self, notice: Notice) -> KeyVerdict:
        """Judge a key by the catalog; have its file fetched again if it was fetched long ago."""
        row = await self._source.read(lambda view: view.ledger.look_up(view.ledger.url_id(notice.key_url)))
        verdict = verdict_on(row, notice.key, self._now())
        if not verdict.is_known and self._outside.has(notice.key_url, notice.key, self._now()):
            return KeyVerdict(KeyState.WRONG, OUTSIDE)
        if verdict.state is KeyState.RIGHT:
            self._right.add(notice.key_url, notice.key, self._now())
            if verdict.is_stale and self.reporting.room > 0:
                await self.reporting.report((notice.key_url,))
        return verdict

    # -- notices that wait for their key ----------------------------------------------------------

    def _wait_for_key(self, notice: Notice) -> Response:
        key = (notice.key_url, notice.key)
        pending = self._pending.get(key)
        waiting = sum(len(each.urls) for each in self._pending.values())
        if waiting + len(notice.urls) > MAX_WAITING_URLS or (not pending and len(self._pending) >= MAX_PENDING_KEYS):
            return _too_many("too many notices wait for their key", POLL_S)
        if pending is None:
            pending = self._pending[key] = _Pending(notice, {}, self._now() + PENDING_S)
            self._announce(f"{printable(notice.host)}: a notice waits for the key file {printable(notice.key_url)}")
        pending.urls |= dict.fromkeys(notice.urls)
        return Response(202, _ACCEPTED[202], "text/plain")

    async def run(self) -> None:
        """Check for keys that have been fetched, and announce what was refused; until cancelled."""
        announced_at = self._now()
        while True:
            await self._look_for_keys()
            if self._now() - announced_at >= COMPLAIN_S:
                self._announce_refused()
                announced_at = self._now()
            await asyncio.sleep(POLL_S)

    async def _look_for_keys(self) -> None:
        try:
            unasked = [pending for pending in self._pending.values() if not pending.is_asked]
            if unasked:
                await self.reporting.report(pending.notice.key_url for pending in unasked)
                for pending in unasked:
                    pending.is_asked = True
                await self._find_refused(unasked)
            for key in list(self._pending):
                if await self._is_right(key, self._pending[key]):
                    await self._report_pending(key)
        except GossamerError as error:
            self._announce(f"keys cannot be checked now: {error}")

    async def _find_refused(self, asked: Sequence[_Pending]) -> None:
        """Record the key files that a running crawl has refused: what it accepts it knows when it answers."""
        if not self._source.live.is_running():
            return
        for notice in (pending.notice for pending in asked):
            if not (await self._look_up(notice)).is_known:
                self._outside.add(notice.key_url, notice.key, self._now())

    async def _report_pending(self, key: tuple[str, str]) -> None:
        pending = self._pending.pop(key)  # first: whoever uses the key from now on is answered with 200
        try:
            await self.reporting.report(pending.urls)
        except GossamerError:
            self._pending[key] = pending
            raise

    async def _is_right(self, key: tuple[str, str], pending: _Pending) -> bool:
        """Return whether the URLs that wait for a key may be reported now; drop them if they never may."""
        notice = pending.notice
        verdict = await self._look_up(notice)
        if verdict.state is KeyState.RIGHT and not self._proved.wait_s(notice.host, len(pending.urls), self._now()):
            return True
        reason = {
            KeyState.RIGHT: f"more than {URLS_PER_HOST} of the host in an hour",
            KeyState.WRONG: f"the key file {printable(notice.key_url)}: {verdict.reason}",
            KeyState.UNKNOWN: f"the crawl did not fetch {printable(notice.key_url)} in time",
        }[verdict.state]
        if verdict.state is not KeyState.UNKNOWN or pending.until < self._now():
            del self._pending[key]
            self._announce(f"{printable(notice.host)}: {plural(len(pending.urls), 'URL')} dropped: {reason}")
        return False

    def _announce_refused(self) -> None:
        if self._refused:
            parts = ", ".join(f"{count} with {status}" for status, count in sorted(self._refused.items()))
            self._announce(f"refused: {parts}")
            self._refused.clear()

    def end(self) -> None:
        """Announce what was done, and what is dropped."""
        self._announce_refused()
        dropped = sum(len(each.urls) for each in self._pending.values())
        wait = f"; {plural(dropped, 'URL')} dropped that waited for a key" if dropped else ""
        self._announce(f"ended: {plural(self.reporting.reported, 'URL')} reported to the crawl{wait}")


async def serve(source: CrawlSource, address: Address, announce: Callable[[str], None], ended: asyncio.Event) -> None:
    """Serve until `ended` is set; then hand over what waits."""
    async with source, listening(address, "--listen") as listener:
        notices = NoticeAnswers(source, announce)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(notices.reporting.run())
            async with served(listener, notices.answer, max_body_bytes=MAX_POST_BYTES):
                where = Address(address.host, listener.getsockname()[1])
                announce(f"change notices  http://{where.text}{PATH}")
                looking = tasks.create_task(notices.run())
                await ended.wait()
            looking.cancel()
            notices.reporting.end()
        notices.end()


def run(source: CrawlSource, address: Address, announce: Callable[[str], None]) -> None:
    """Serve until a signal comes."""

    async def main() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def end() -> None:
            ended.set()
            for number in _SIGNALS:  # a second one does not wait for a crawl that does not answer
                loop.remove_signal_handler(number)

        for number in _SIGNALS:
            loop.add_signal_handler(number, end)
        await serve(source, address, announce, ended)

    asyncio.run(main())


def _too_many(text: str, wait_s: float) -> Response:
    return failure(429, f"{text}; try again later", [("Retry-After", str(max(1, round(wait_s))))])
