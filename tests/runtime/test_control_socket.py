"""The socket of a running crawl: what becomes of its clients when the crawl ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from gossamer.model.commands import OperatorCommand
from gossamer.runtime.session.control_socket import FILE_NAME, served


def test_a_client_that_stays_connected_is_no_error_when_the_crawl_ends(tmp_path: Path) -> None:
    """Python 3.12.0 and 3.12.1 print a traceback if the handler of a connection ends as cancelled."""

    async def obey(_command: OperatorCommand, _by: str) -> str:
        return "done"

    async def run() -> list[asyncio.Task[object]]:
        known = asyncio.all_tasks()
        async with served(tmp_path, obey, lambda _query: msgspec.Raw(b"null")):
            _, writer = await asyncio.open_unix_connection(str(tmp_path / FILE_NAME))
            reader, second = await asyncio.open_unix_connection(str(tmp_path / FILE_NAME))
            second.write(b'{"command": "pause"}\n')
            assert b"done" in await reader.readline()
            handlers = list(asyncio.all_tasks() - known)
        for task in handlers:  # as when the loop is closed
            task.cancel()
        await asyncio.wait(handlers)
        writer.close()
        second.close()
        return handlers

    handlers = asyncio.run(asyncio.wait_for(run(), 20))
    assert len(handlers) == 2
    assert not any(task.cancelled() for task in handlers)
