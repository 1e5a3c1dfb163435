"""Does what the frontier asks for: reads and look-ups, and the record of what it found without a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.core.frontier import effects
from gossamer.core.frontier.frontier import Frontier
from gossamer.core.links.requisite import is_requisite
from gossamer.core.url.identity import host_id
from gossamer.engine.admission.first_pass import FirstPassProgress
from gossamer.engine.admission.removal import Removal
from gossamer.engine.results.results import Results
from gossamer.engine.revisit.revisiting import Revisits
from gossamer.engine.shards.host_directory import HostDirectory

if TYPE_CHECKING:
    from gossamer.ports import Ledger

DENIED_WORK = 4_000


class FrontierCommands:
    """Runs the frontier's commands."""

    def __init__(
        self,
        frontier: Frontier,
        ledger: Ledger,
        *,
        hosts: HostDirectory,
        removal: Removal,
        first_pass: FirstPassProgress,
        revisits: Revisits,
        results: Results,
    ) -> None:
        self._frontier = frontier
        self._ledger = ledger
        self._hosts = hosts
        self._removal = removal
        self._first_pass = first_pass
        self._revisits = revisits
        self._evidence = results.evidence
        self._visits = results.visits
        self.resolves: list[str] = []
        self.work = 0  # of this turn: what it did besides tasks

    def run(self, now: float, max_work: int = 0) -> bool:
        """Run what the frontier asks for; return whether there was anything.

        Hosts that are due are loaded while this turn has done less than `max_work`; by default they wait for a turn.
        """
        has_run = False
        while asked := self._frontier.take_commands(now, swaps_in=self.work < max_work):
            has_run = True
            for command in asked:
                self._run_one(command, now)
        return has_run

    def _run_one(self, command: effects.Command, now: float) -> None:
        hosts = self._hosts
        match command:
            case effects.Resolve(host):
                self.resolves.append(host)
            case effects.ReadQueue(host, after, count):
                self._frontier.read_queue(host, self._ledger.read_queue(host_id(host), after, count), count, now)
            case effects.ReadRules(host, origin):
                self.work += hosts.restore_rules(host, origin, now)
            case effects.LoadHost(host):
                hosts.load(hosts.record(host, now), now)
            case effects.SwapIn(count):
                self.work += hosts.swap_in(count, now)
            case effects.SwapOut(record, until):
                hosts.swap_out(record, until)
            case effects.KillQueue(record):
                seeds = self._revisits.queued_seeds(record.name)
                for _ in range(self._removal.kill_queue(command, now)):
                    self._first_pass.fail(record.name, now)
                self._revisits.host_failed(record, seeds, now)

    def record_denied(self, now: float) -> None:
        """Record URLs that robots.txt forbids."""
        for denied in self._frontier.take_denied():
            self.work += DENIED_WORK
            if denied.is_overridden:
                self._removal.record_overridden(denied, now)
                continue
            if denied.url.known:
                self._visits.record_denied(denied, now)
                continue
            self._removal.record_denied(denied, now)
            if is_requisite(denied.url):
                continue
            self._evidence.record_unfetched(denied.url)
            self._first_pass.fail(denied.url.host, now)

    def record_postponed(self, now: float) -> None:
        """Record known URLs whose robots.txt cannot be reached."""
        for postponed in self._frontier.visits.take_postponed():
            self._visits.postpone(postponed.url, now)
