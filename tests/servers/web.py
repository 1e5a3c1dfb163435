"""The synthetic web for tests: a process that need not load it anew."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from gossamer.sim import running
from tests.e2e.preloaded import Preloaded


class RunningWeb(running.RunningWeb):
    """A web in a process of its own, divided from one that has loaded it."""

    def _launched(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        return Preloaded(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
