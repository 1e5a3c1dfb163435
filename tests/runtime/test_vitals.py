from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from gossamer.runtime.watch.vitals import MemoryWatch, StallProbe, _container_limits, machine_bytes, private_bytes


def test_private_memory_grows_with_what_is_written_to() -> None:
    before = private_bytes()
    block = bytearray(50_000_000)
    block[:] = b"x" * len(block)
    assert 45e6 < private_bytes() - before < 110e6
    del block


def test_private_memory_of_another_process() -> None:
    command = [sys.executable, "-c", "input(len(b'x' * 10_000_000))"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.read(1)
        assert private_bytes(other.pid) > 1e6
        other.communicate(b"\n")
    assert private_bytes(other.pid) == 0, "it is gone"


def test_the_probe_counts_the_workers_too() -> None:
    async def main() -> None:
        told: list[int] = []
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as worker:
            alone = private_bytes()
            probe = StallProbe(memory=MemoryWatch(lambda: [worker.pid], told.append))
            probe.start()
            await asyncio.sleep(0.2)
            probe.stop()
            worker.communicate(b"\n")
        assert len(told) >= 2
        assert told[-1] > alone
        assert probe.peak_private >= max(told)

    asyncio.run(main())


def test_the_machine_has_memory() -> None:
    assert machine_bytes() > 1e8


def test_the_least_limit_of_all_groups_around_the_process_counts(tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    inner = groups / "outer" / "inner"
    inner.mkdir(parents=True)
    (groups / "outer" / "memory.max").write_text("500000000\n")
    (inner / "memory.max").write_text("max\n")
    proc = tmp_path / "cgroup"
    proc.write_text("0::/outer/inner\n")
    assert list(_container_limits(proc, groups)) == [500_000_000]


def test_limits_of_the_older_kind_of_groups(tmp_path: Path) -> None:
    folder = tmp_path / "groups" / "memory" / "box"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("300000000\n")
    proc = tmp_path / "cgroup"
    proc.write_text("5:cpu:/box\n4:memory:/box\n")
    assert list(_container_limits(proc, tmp_path / "groups")) == [300_000_000]
    assert list(_container_limits(tmp_path / "nothing", tmp_path)) == []
