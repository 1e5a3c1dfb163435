"""Runs libcurl's multi interface from an event loop.

libcurl's multi interface requests that sockets are watched and that it is called at a
time. Its sockets are watched by our own epoll set, and the event loop watches only that
set: one loop callback per batch instead of one per socket, and no registration with the
loop per request (libcurl unregisters and registers a keep-alive connection with every
request; here that is two dictionary writes, not two system calls). Works the same under
asyncio and uvloop.

Invariants
- `_watched` may contain a socket that libcurl has closed since: the kernel has then
  dropped it from the set, and `forget` is called (SOCKOPTFUNCTION) before its number is reused.
- libcurl is never called from within its own callbacks.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from time import monotonic
from typing import Final

from gossamer.fetch.curl.libcurl import CurlMulti, pycurl

_EVENTS: Final = {
    pycurl.POLL_NONE: 0,
    pycurl.POLL_REMOVE: 0,
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
_BATCH: Final = 512
_SLICE_S: Final = 0.012  # a TLS handshake takes half a millisecond; shorter slices cost more because of cold caches


def _ready(events: int) -> int:
    """Translate epoll's bits into libcurl's; an error or a hang-up is found by reading."""
    mask = 0
    if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
        mask |= pycurl.CSELECT_IN
    if events & select.EPOLLOUT:
        mask |= pycurl.CSELECT_OUT
    if events & select.EPOLLERR:
        mask |= pycurl.CSELECT_ERR
    return mask


_READY: Final = tuple(_ready(events) for events in range(32))


class Poller:
    """Drives one CurlMulti from the running event loop; `on_progress` is called after libcurl ran."""

    def __init__(self, multi: CurlMulti, loop: asyncio.AbstractEventLoop, on_progress: Callable[[], None]) -> None:
        self._multi = multi
        self._loop = loop
        self._on_progress = on_progress
        self._epoll = select.epoll()
        self._watched: dict[int, int] = {}  # socket -> events it is registered for
        self._wanted: dict[int, int] = {}  # socket -> events libcurl waits for
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._due_at = 0.0  # 0: libcurl requested no call
        self._kick: asyncio.Handle | None = None
        self.running = 0  # transfers in flight, as libcurl counted them last
        multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        loop.add_reader(self._epoll.fileno(), self._on_ready)

    def close(self) -> None:
        """Stop watching. The CurlMulti must be closed after, not before."""
        self._loop.remove_reader(self._epoll.fileno())
        for handle in (self._timer, self._kick):
            if handle is not None:
                handle.cancel()
        self._timer = self._kick = None
        self._epoll.close()
        self._watched.clear()
        self._wanted.clear()

    def forget(self, fd: int) -> None:
        """Forget a socket number: libcurl has just opened a new socket with it."""
        self._watched.pop(fd, None)
        self._wanted.pop(fd, None)

    def kick(self) -> None:
        """Run libcurl in the next iteration of the loop: transfers were added."""
        if self._kick is None:
            self._kick = self._loop.call_soon(self._run_due)

    def _on_socket(self, what: int, fd: int, _multi: object, _data: object) -> None:
        if self._epoll.closed:
            return
        events = _EVENTS[what]
        self._wanted[fd] = events
        if not events:
            # It stays registered: the next request on it then costs nothing, and the kernel drops it if libcurl
            # closes it. If it becomes ready while nothing waits for it, it is dropped then.
            return
        watched = self._watched.get(fd)
        if watched == events:
            return
        self._watched[fd] = events
        if watched is None:
            self._epoll.register(fd, events)
        else:
            self._epoll.modify(fd, events)

    def _unwatch(self, fd: int) -> None:
        self._watched.pop(fd, None)
        try:
            self._epoll.unregister(fd)
        except OSError:
            pass  # closed by libcurl: the kernel has removed it

    def _on_ready(self) -> None:
        wanted = self._wanted
        act = self._multi.socket_action
        until = monotonic() + _SLICE_S
        for fd, events in self._epoll.poll(0, _BATCH):
            if wanted.get(fd):
                _, self.running = act(fd, _READY[events & 31])
            else:
                self._unwatch(fd)
            if monotonic() >= until:
                break  # the kernel reports the others again
        self._on_progress()

    def _on_timer(self, timeout_ms: int) -> None:
        if timeout_ms < 0:
            self._due_at = 0.0
        elif timeout_ms == 0:
            self.kick()
        else:
            due_at = self._loop.time() + timeout_ms / 1000
            self._due_at = due_at
            # Almost always later than before: the existing timer stays, and checks again when it fires.
            if self._timer is None or due_at < self._timer_at:
                self._set_timer(due_at)

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._on_timer_due)

    def _on_timer_due(self) -> None:
        self._timer = None
        if not self._due_at:
            return
        if self._due_at > self._loop.time() + 0.001:
            self._set_timer(self._due_at)
            return
        self._due_at = 0.0
        self._run_due()

    def _run_due(self) -> None:
        if self._kick is not None:
            self._kick.cancel()
            self._kick = None
        _, self.running = self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._on_progress()
