"""A ledger that was emptied, cut off, replaced or damaged: one clear line, and not a byte of the archive is lost."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.backends.local.damage import IS_COMPILED
from gossamer.reading.folder import CrawlReader
from gossamer.sim.web.web import preset
from tests.amount import amount
from tests.e2e.program import crawl, crawl_options, run
from tests.servers.web import RunningWeb


class Damaged:
    """A web, and a crawl of it that stopped in the middle."""

    def __init__(self, web: RunningWeb, path: Path) -> None:
        self.web = web
        self.path = path
        crawl(web, path, 0, "--max-pages", "90", "--save-interval", "20")

    def copied(self, path: Path) -> Path:
        shutil.copytree(self.path, path)
        return path

    def resume(self, path: Path, *more: str) -> tuple[int, str]:
        options = crawl_options(self.web, path, 0)
        done = run("crawl", *options, "--max-pages", "1000", *more)
        return done.returncode, done.stderr


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Damaged]:
    with RunningWeb(preset("small", pages=150, slow=0.0)) as web:
        yield Damaged(web, tmp_path_factory.mktemp("damaged") / "crawl")


def _stored(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (path / "archive").iterdir()}


def _is_one_line(text: str, *words: str) -> bool:
    return len(text.strip().splitlines()) == 1 and all(word in text for word in words)


@pytest.mark.parametrize("damage", ["emptied", "removed", "cut off", "folder removed"])
def test_an_archive_without_its_ledger_is_left_alone(damaged: Damaged, tmp_path: Path, damage: str) -> None:
    path = damaged.copied(tmp_path / "c")
    ledger = path / "state" / "data.mdb"
    before = _stored(path)
    if damage == "emptied":
        ledger.write_bytes(b"")
    elif damage == "removed":
        ledger.unlink()
    elif damage == "cut off":
        ledger.write_bytes(ledger.read_bytes()[:20_000])
    else:
        shutil.rmtree(path / "state")
    for verb in ("resume", "status", "verify"):
        done = run(verb, str(path))
        assert done.returncode == 1, (verb, done.stderr)
        assert _is_one_line(done.stderr, "ledger", "verify DIR --mend") or verb == "resume"
        assert "--mend" in done.stderr
        assert "Traceback" not in done.stderr
    assert _stored(path) == before


def test_a_ledger_of_another_crawl_is_refused(damaged: Damaged, tmp_path: Path) -> None:
    path = damaged.copied(tmp_path / "c")
    before = _stored(path)
    with RunningWeb(preset("small", pages=20, slow=0.0)) as web:
        crawl(web, tmp_path / "other", 0)
    shutil.copy(tmp_path / "other" / "state" / "data.mdb", path / "state" / "data.mdb")
    done = run("resume", str(path))
    assert done.returncode == 1
    assert "belongs to another archive" in done.stderr
    assert _stored(path) == before
    done = run("verify", str(path), "--mend")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ledger rebuilt from" in done.stdout
    assert "belongs to another archive" in done.stdout
    assert _stored(path) == before
    with CrawlReader(damaged.path) as one, CrawlReader(path) as other:
        assert {key for key, _ in one.ledger.urls()} == {key for key, _ in other.ledger.urls()}


def test_an_archive_file_that_is_missing_is_reported(damaged: Damaged, tmp_path: Path) -> None:
    path = damaged.copied(tmp_path / "c")
    gone = sorted((path / "archive").iterdir())[1]
    gone.unlink()
    status, err = damaged.resume(path, "--max-time", "0.1")
    assert status == 0
    assert f"1 archive files that were committed are missing, as {gone.name}" in err


@pytest.mark.parametrize("damage", ["emptied", "cut off"])
def test_a_ledger_is_rebuilt_from_the_archive(damaged: Damaged, tmp_path: Path, damage: str) -> None:
    path = damaged.copied(tmp_path / "c")
    ledger = path / "state" / "data.mdb"
    lost = ledger.read_bytes()
    ledger.write_bytes(b"" if damage == "emptied" else lost[:30_000])
    before = _stored(path)
    done = run("verify", str(path), "--mend")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ledger rebuilt from" in done.stdout
    assert _stored(path) == before
    assert len(list((path / "aside").glob("state-*/data.mdb"))) == 1
    with CrawlReader(damaged.path) as one, CrawlReader(path) as other:
        assert one.state.totals.pages == other.state.totals.pages
        states = [Counter(row.state for _, row in reader.ledger.urls()) for reader in (one, other)]
        assert states[0] == states[1]
        assert {key for key, _ in one.ledger.urls()} == {key for key, _ in other.ledger.urls()}
        depths = [{key: (row.depth, row.parent) for key, row in reader.ledger.urls()} for reader in (one, other)]
        same = sum(depths[0][key] == depths[1][key] for key in depths[0])
        assert same >= 0.9 * len(depths[0])
    status, err = damaged.resume(path)
    assert status == 0, err
    assert run("verify", str(path)).returncode == 0
    with CrawlReader(path) as whole:
        assert whole.state.totals.pages == 150


@pytest.mark.parametrize("seed", range(amount(6, 24)))
def test_flipped_bits_are_a_clear_line_and_cost_nothing(damaged: Damaged, tmp_path: Path, seed: int) -> None:
    path = damaged.copied(tmp_path / "c")
    ledger = path / "state" / "data.mdb"
    data, chance = bytearray(ledger.read_bytes()), random.Random(seed)
    for _ in range(chance.choice((1, 8, 64, 500))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    ledger.write_bytes(bytes(data))
    before = _stored(path)
    verb = ("status", "verify", "resume")[seed % 3]
    done = run(verb, str(path), *(("--max-time", "0.5") if verb == "resume" else ()))
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    after = _stored(path)
    assert all(after[name].startswith(data) or data.startswith(after[name]) for name, data in before.items())
    assert sum(map(len, after.values())) >= sum(map(len, before.values()))


def _zeroed(path: Path, seed: int) -> None:
    """Overwrite a part of the ledger behind its first pages, as a disk does that loses sectors."""
    ledger = path / "state" / "data.mdb"
    data, chance = bytearray(ledger.read_bytes()), random.Random(seed)
    start = chance.randrange(4, len(data) // 4096 // 2) * 4096
    data[start : start + 50_000] = bytes(50_000)
    ledger.write_bytes(bytes(data))


def test_a_ledger_that_ends_its_readers_is_a_line_and_can_be_mended(damaged: Damaged, tmp_path: Path) -> None:
    would_die = []
    for seed in range(8):
        path = damaged.copied(tmp_path / f"c{seed}")
        before = _stored(path)
        _zeroed(path, seed)
        for verb in ("report", "resume"):
            done = run(verb, str(path), *(("--max-time", "0.5") if verb == "resume" else ()))
            assert done.returncode in (0, 1), (seed, verb, done.returncode, done.stderr)
            assert "Traceback" not in done.stderr
            if "would end the process" in done.stderr:
                assert f"gossamer {verb}: {path}/state: the ledger is damaged" in done.stderr.splitlines()[-1]
                would_die.append(path)
        after = _stored(path)
        assert all(after[name].startswith(data) for name, data in before.items())
    assert would_die, "no seed has damage of that kind"
    if not IS_COMPILED:
        return
    done = run("verify", str(would_die[0]), "--mend")
    assert done.returncode == 0, done.stderr
    assert "reading it ended a process" in done.stdout
    assert run("report", str(would_die[0])).returncode == 0


@pytest.mark.skipif(not IS_COMPILED, reason="need compiled parts: install a C compiler, then make clean test")
@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS])
def test_a_death_that_the_ledger_did_not_cause_is_no_damage(damaged: Damaged, number: signal.Signals) -> None:
    script = f"""
import os, sys
from pathlib import Path
from gossamer.backends.local import damage
from gossamer.backends.local.damage import IS_COMPILED
from gossamer.reading.folder import CrawlReader
damage.end_with_a_line("gossamer")
with CrawlReader(Path(sys.argv[1])):
    os.kill(os.getpid(), {int(number)})
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(damaged.path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (-number, "")
