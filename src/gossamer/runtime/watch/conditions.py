"""Which conditions must the operator know of while a crawl runs?

Once per second the figures and the machine are looked at. A condition that begins is a warning; it is reported
again only after it has ended (`warning_log`). So that a value near a limit does not begin and end again and
again, a condition ends well on the other side of it. No clock is read here: times are those of the figures.

    error_rate         over 5 % of the last 100 fetches or more; it ends when for 60 s under 2.5 % of the last 400 were
                       errors, and begins again with over 7.5 % of these: a steady rate is one warning, by any chance
    frontier_starving  for 30 s fewer URLs are queued than there are connections, most of which are idle; not if far
                       fewer URLs are found than fetched: such a crawl is nearly done
    stalled            for 60 s no request has ended, although hosts could be contacted or requests are in flight
    loop_stalled       in the last minute an event loop, of the hub or of a worker, was blocked for over a second
    open_files         over 90 % of what this process, or a worker, may open
    disk               less than 500 MB free
    memory             for 10 s over 90 % of the ceiling is in use
    pace_exceeded      two requests to a host came closer than its delay allows

A clock that jumps by more than 5 s (it was set, or the machine slept) is no condition: it is reported each time.
"""

from __future__ import annotations

from collections import deque

from gossamer.core.politeness.pace import Pace
from gossamer.model.figures import HIGH_ERROR_RATE, Figures, RunState
from gossamer.runtime.watch.gauges import Gauges
from gossamer.runtime.watch.machine import Machine
from gossamer.runtime.watch.warning_log import WarningLog
from gossamer.telemetry.text import REPORT_HINT, agreeing, count, percent, plural, size

LOOK_S = 1.0
FETCHES_JUDGED = 100
FETCHES_JUDGED_LONG = 400  # for the end of a high error rate, and for another one
AGAIN_FACTOR = 1.5
ERRORS_QUIET_S = 60.0
STARVING_S = 30.0
STALLED_S = 60.0
FILES_SHARE = 0.9
LOW_DISK_BYTES = 500_000_000
PACE_SLACK_S = 0.003  # between the clock's reading and the write
PACE_QUIET_S = 60.0
LONG_STALL_S = 1.0
STALL_WINDOW_S = 60.0
MEMORY_SHARE = 0.9
MEMORY_S = 10.0
MAX_HOSTS = 100_000


class _ErrorRate:
    """The share of errors among the last fetches."""

    def __init__(self, fetches: int) -> None:
        self._window = fetches
        # Fetches and errors, once per change: the first is at least as old as the window, if there were as many. So
        # there is one entry more than fetches in the window, however long a crawl is paused.
        self._earlier: deque[tuple[int, int]] = deque()

    def rate(self, fetches: int, errors: int) -> tuple[float, int]:
        """Return the share of errors among the last fetches, and how many these are."""
        earlier = self._earlier
        if not earlier or earlier[-1][0] != fetches:
            earlier.append((fetches, errors))
        while len(earlier) > 1 and fetches - earlier[1][0] >= self._window:
            earlier.popleft()
        judged = fetches - earlier[0][0]
        return (errors - earlier[0][1]) / judged if judged else 0.0, judged


class Conditions:
    def __init__(
        self,
        warnings: WarningLog,
        gauges: Gauges,
        *,
        connections: int,
        pace: Pace,
    ) -> None:
        self._warnings = warnings
        self._gauges = gauges
        self._connections = connections
        self._pace = pace
        self._lately = _ErrorRate(FETCHES_JUDGED)
        self._long = _ErrorRate(FETCHES_JUDGED_LONG)
        self._has_failed = False  # too many fetches in this run
        self._counts: deque[tuple[float, int, int]] = deque()  # when, URLs seen, fetches: of the last 30 s
        self._failed_at_s = 0.0  # when there were last too many errors
        self._fed_at_s = self._moved_at_s = 0.0  # when the frontier last had enough; when a request last ended
        self._fetches = 0
        self._sent_at: dict[str, float] = {}  # the last request to each host
        self._breach = ""
        self._breach_at_s = 0.0
        self._stalls: deque[tuple[float, float]] = deque()  # when, and how long: of the last minute, if long
        self._spacious_at_s = 0.0  # when there was last enough memory
        self._jumps = 0

    def look(self, figures: Figures, machine: Machine) -> None:
        """Report what has begun, and record what has ended."""
        self._judge_errors(figures)
        self._judge_frontier(figures)
        self._judge_movement(figures)
        self._judge_machine(machine)
        self._judge_stalls(figures, machine.stall_s)
        self._judge_memory(figures)
        self._judge_clock()
        self._judge_pace(figures)

    def check_request(self, host: str, sent_at: float) -> None:
        """Compare a request with the previous one to its host: called for each, 0.2 µs."""
        last = self._sent_at.get(host)
        if last is None:
            if len(self._sent_at) >= MAX_HOSTS:
                self._sent_at.clear()
            self._sent_at[host] = sent_at
            return
        gap_s = sent_at - last if sent_at > last else last - sent_at  # results come in any order
        delay_s = self._pace.floor_s(host, None)
        if gap_s < delay_s - PACE_SLACK_S:
            self._breach = f"two requests to {host} within {gap_s:.3f} s; its delay is {delay_s:g} s"
        if sent_at > last:
            self._sent_at[host] = sent_at

    # -- the conditions ---------------------------------------------------------------------------

    def _report(self, rule: str, is_so: bool, is_over: bool, text: str) -> None:
        if is_so:
            self._warnings.begin(rule, text)
        elif is_over:
            self._warnings.end(rule)

    def _judge_errors(self, figures: Figures) -> None:
        totals = figures.totals
        rate, fetches = self._lately.rate(totals.fetches, totals.errors)
        long_rate, _ = self._long.rate(totals.fetches, totals.errors)
        if fetches < FETCHES_JUDGED:
            return
        is_high = long_rate > AGAIN_FACTOR * HIGH_ERROR_RATE if self._has_failed else rate > HIGH_ERROR_RATE
        if is_high:
            self._has_failed = True
        if is_high or long_rate >= HIGH_ERROR_RATE / 2:
            self._failed_at_s = figures.run_seconds
        is_over = figures.run_seconds - self._failed_at_s >= ERRORS_QUIET_S
        text = f"{percent(rate)} of the last {plural(fetches, 'fetch')} were errors{REPORT_HINT}"
        self._report("error_rate", is_high, is_over, text)

    def _judge_frontier(self, figures: Figures) -> None:
        is_hungry = figures.urls_queued < self._connections and figures.in_flight < self._connections / 10
        is_near_goal = figures.max_pages is not None and figures.totals.pages >= 0.9 * figures.max_pages
        if not is_hungry or is_near_goal or figures.revisits is not None or figures.state is not RunState.RUNNING:
            self._fed_at_s = figures.run_seconds
        queued = f"{agreeing(figures.urls_queued, 'URL')} queued for {plural(self._connections, 'connection')}"
        is_lasting = figures.run_seconds - self._fed_at_s >= STARVING_S
        is_nearly_done = self._is_nearly_done(figures)
        is_so = is_lasting and not is_nearly_done
        text = f"the frontier starves: {queued}; in use: {figures.in_flight}"
        self._report("frontier_starving", is_so, not is_lasting, text)

    def _is_nearly_done(self, figures: Figures) -> bool:
        """Return whether far fewer URLs were found lately than fetched, so that a short queue is the end of it."""
        counts = self._counts
        if not counts or counts[-1][0] != figures.run_seconds:  # which stands still while it is paused
            counts.append((figures.run_seconds, figures.totals.urls_seen, figures.totals.fetches))
        while counts[0][0] < figures.run_seconds - STARVING_S:
            counts.popleft()
        _, seen, fetches = counts[0]
        return figures.totals.urls_seen - seen <= (figures.totals.fetches - fetches) / 2

    def _judge_movement(self, figures: Figures) -> None:
        fetches = figures.totals.fetches
        could_move = figures.in_flight > 0 or figures.hosts.get("ready", 0) > 0
        if fetches != self._fetches or not could_move or figures.state is not RunState.RUNNING:
            self._fetches = fetches
            self._moved_at_s = figures.run_seconds
        still_s = figures.run_seconds - self._moved_at_s
        text = f"no request has ended for {still_s:.0f} s; in flight: {figures.in_flight}"
        self._report("stalled", still_s >= STALLED_S, still_s < LOOK_S, text)

    def _judge_machine(self, machine: Machine) -> None:
        share = machine.open_files / machine.max_files if machine.max_files > 0 else 0.0
        text = (
            f"{count(machine.open_files)} of {plural(machine.max_files, 'file')} are open; raise the limit (ulimit -n)"
        )
        self._report("open_files", share > FILES_SHARE, share < FILES_SHARE - 0.1, text)
        text = f"{size(machine.free_bytes)} are free on the disk; a full one ends the crawl, which can be resumed"
        is_over = machine.free_bytes > 1.2 * LOW_DISK_BYTES
        self._report("disk", machine.free_bytes < LOW_DISK_BYTES, is_over, text)

    def _judge_stalls(self, figures: Figures, stall_s: float) -> None:
        stalls = self._stalls
        now_s = figures.run_seconds
        if stall_s > LONG_STALL_S:
            stalls.append((now_s, stall_s))
        while stalls and now_s - stalls[0][0] > STALL_WINDOW_S:
            stalls.popleft()
        longest_s = max((each for _, each in stalls), default=0.0)
        text = f"an event loop was blocked for {longest_s:.1f} s in the last minute; requests were late meanwhile"
        self._report("loop_stalled", bool(stalls), not stalls, text)

    def _judge_memory(self, figures: Figures) -> None:
        used = figures.private_bytes
        ceiling = figures.memory_ceiling_bytes
        if used <= MEMORY_SHARE * ceiling or not ceiling:
            self._spacious_at_s = figures.run_seconds
        is_so = figures.run_seconds - self._spacious_at_s >= MEMORY_S
        text = f"{size(used)} of memory are in use, near the ceiling of {size(ceiling)}; --memory sets another"
        self._report("memory", is_so, used <= (MEMORY_SHARE - 0.1) * ceiling, text)

    def _judge_clock(self) -> None:
        if self._gauges.clock_jumps > self._jumps:
            self._jumps = self._gauges.clock_jumps
            jump = f"the machine's clock jumped by {self._gauges.jump_s:+.0f} s: it was set, or the machine slept"
            self._warnings.warn("clock_jumped", f"{jump}; delays are kept, the times of this run are as if it had not")

    def _judge_pace(self, figures: Figures) -> None:
        if self._breach:
            self._breach_at_s = figures.run_seconds
        is_over = figures.run_seconds - self._breach_at_s > PACE_QUIET_S
        text = f"politeness was exceeded: {self._breach}; 'gossamer audit' lists all cases"
        self._report("pace_exceeded", bool(self._breach), is_over, text)
        self._breach = ""
