"""A stopped crawl in a folder: changes are stored for its next run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from gossamer.assembly.run import open_ledger
from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.url.forms import canonical
from gossamer.engine.results.evidence import release_quarantine
from gossamer.model import commands
from gossamer.model.commands import OperatorCommand, SettingCommand
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.state import ALL_PATTERNS, CrawlState
from gossamer.reading.host_states import left_alone
from gossamer.runtime.session.opt_out import blocked_among, blocked_names, check_not_listed, name_in
from gossamer.settings.changes import described, unblocked_hint, with_command
from gossamer.settings.load import rewritten, settings_for_known
from gossamer.settings.seeds import seeds_in
from gossamer.telemetry.text import agreeing, printable, released

MAX_REPORTED = 100_000  # that wait for the next run


class NotRunningError(GossamerError):
    """A command that only a running crawl can obey."""

    exit_status = 1


class StoppedCrawl:
    """A stopped crawl: see `gossamer.control.target.Target`."""

    def __init__(self, folder: CrawlFolder) -> None:
        self._folder = folder

    def obey(self, command: OperatorCommand, by: str) -> str:
        """Change the settings, or store seeds and URLs for the next run."""
        if isinstance(command, commands.PauseCrawl | commands.StopCrawl | commands.ResumeCrawl | commands.RetryLetters):
            raise NotRunningError(f"{self._folder.path}: the crawl does not run")
        if isinstance(command, commands.UnblockNames):
            check_not_listed(self._folder.path, command.names)
        self._folder.lock()
        try:
            match command:
                case commands.ReleasePattern(pattern):
                    return self._release(pattern)
                case commands.AddSeeds(seeds):
                    done = self._add_seeds(seeds)
                case commands.ReportChanges(urls):
                    done = self._report_changes(urls)
                case _:
                    done = self._set(command)
        finally:
            self._folder.release()
        hint = f"; {unblocked_hint(str(self._folder.path))}" if isinstance(command, commands.UnblockNames) else ""
        return f"{done}; the crawl does not run: this is for its next run{hint}"

    def _set(self, command: SettingCommand) -> str:
        path = self._folder.settings_path
        before = settings_for_known(path, [])
        changed = with_command(before, command)
        self._folder.write_settings(rewritten(path, changed, before))
        done = described(changed, command)
        if isinstance(command, commands.BlockNames):
            with closing(open_ledger(self._folder, is_readonly=True)) as ledger:
                done += f"; {left_alone(ledger.hosts(), [name_in(name) for name in command.names])}"
        return done

    def _add_seeds(self, seeds: Sequence[str]) -> str:
        seeds_in(seeds)
        with self._changed_state() as state:
            state.added_seeds = [*state.added_seeds, *seeds]
        settings = settings_for_known(self._folder.settings_path, [])
        blocked = blocked_among(seeds, blocked_names(self._folder.path, settings.block_host))
        return f"{agreeing(len(seeds), 'seed')} added{blocked}"

    def _report_changes(self, urls: Sequence[str]) -> str:
        found = [canonical(url) for url in urls]
        with self._changed_state() as state:
            known = dict.fromkeys([*state.reported_urls, *filter(None, found)])
            if len(known) > MAX_REPORTED:
                raise UsageError(
                    f"{self._folder.path}: more than {MAX_REPORTED} reported URLs wait; resume the crawl first"
                )
            state.reported_urls = list(known)
        bad = f", {found.count(None)} refused (not_a_url)" if None in found else ""
        return f"{agreeing(len(urls) - found.count(None), 'URL')} reported as changed{bad}"

    @contextmanager
    def _changed_state(self) -> Iterator[CrawlState]:
        """Yield the state of the crawl, and commit it unless an error is raised."""
        with closing(open_ledger(self._folder, is_readonly=False)) as ledger:
            state = ledger.crawl_state() or CrawlState()
            yield state
            ledger.put_crawl_state(state)
            ledger.commit()

    def _release(self, pattern: str) -> str:
        with closing(open_ledger(self._folder, is_readonly=False)) as ledger:
            ended = release_quarantine(ledger, pattern)
            ledger.commit()
        path = self._folder.path
        if ended:
            return f"{released(ended)}, queued with the next run; 'gossamer resume {path}' continues with them"
        if pattern == ALL_PATTERNS:
            return released(ended)
        raise UsageError(f"{printable(pattern)}: no such pattern is in quarantine; 'gossamer traps {path}' lists them")
