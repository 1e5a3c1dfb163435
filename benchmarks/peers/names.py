"""A name server for the broad web, as a process: `python -m benchmarks.peers.names HOSTS.json` prints its address.

It ends when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec
import uvloop

from gossamer.sim.web.dns import NameFault, NameServer, Zone
from gossamer.sim.web.web import WebPlan


async def _serve(addresses: dict[str, str]) -> None:
    zone = Zone(WebPlan(), {name: NameFault(addresses=(address,)) for name, address in addresses.items()})
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, stop.set)
    async with NameServer(zone) as names:
        print(names.address, flush=True)
        await stop.wait()


if __name__ == "__main__":
    uvloop.run(_serve(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=dict[str, str])))
