"""Computes ranks in a process of its own: the verb `rank`, with the lowest priority.

It reads what is committed, in short transactions, as any other reader. It ends with the crawl, however that ends: its
standard input is a pipe of ours. What it writes gets its name when it is complete, so an end at any time does no harm.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from gossamer.model.errors import GossamerError
from gossamer.reading.rank_file import RankHead

PROGRAM = (sys.executable, "-m", "gossamer", "rank", "--follow-stdin", "--top", "1", "--json", "--")


class _Output(Struct):
    computed_from: RankHead


class RankJob:
    """The job for one crawl: in a folder, or in a ledger with this URL."""

    def __init__(self, crawl: str, program: Sequence[str] = PROGRAM) -> None:
        self._words = (*program, crawl)

    async def run(self) -> RankHead:
        """Compute ranks and give them to the crawl; return what they were computed from. May be cancelled."""
        process = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,  # Ctrl-C is for the crawl, which then ends this
        )
        try:
            return await self._result(process)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    @staticmethod
    async def _result(process: Process) -> RankHead:
        assert process.stdout is not None
        assert process.stderr is not None
        out, errors = await asyncio.gather(process.stdout.read(), process.stderr.read())
        status = await process.wait()
        if status:
            lines = errors.decode("utf-8", "replace").strip().splitlines() or [f"it ended with status {status}"]
            raise GossamerError(lines[0] if status > 0 else f"it was ended by signal {-status}")
        try:
            return msgspec.json.decode(out, type=_Output).computed_from
        except msgspec.MsgspecError as error:
            raise GossamerError(f"unexpected output: {error}") from error
