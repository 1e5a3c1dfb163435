"""Does a damaged crawl folder ever cost stored pages, or end in a traceback? Random damage, many times.

    python -m benchmarks.damage [--rounds 200] [--seed 1]

A crawl is stopped in the middle, and another one killed. Each round copies one of them, damages the files of its state
(emptied, removed, cut off, overwritten, bits flipped, replaced by those of another crawl, settings torn) and runs the
verbs that a user would try next. Required: exit status 0, 1 or 2 within a minute, no traceback, no death by a signal,
and every byte of the archive is still there, in its file or moved aside. A round whose damage was not noticed is fine:
a flipped bit may hit a free page. At the end an archive file is removed, to see that a loss would be found.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from gossamer.sim.running import RunningWeb
from gossamer.sim.web.web import preset

GOSSAMER = (sys.executable, "-m", "gossamer.cli.main")
MAX_S = 60.0
PAGES = 150
_FLIPS = (1, 8, 64, 500)

Damage = Callable[[Path, Path, random.Random], None]


def _of_ledger(change: Callable[[bytearray, random.Random], bytes | bytearray]) -> Damage:
    """Return a damage to the bytes of the ledger."""

    def apply(folder: Path, _other: Path, chance: random.Random) -> None:
        ledger = folder / "state" / "data.mdb"
        ledger.write_bytes(change(bytearray(ledger.read_bytes()), chance))

    return apply


def _flipped(data: bytearray, chance: random.Random) -> bytearray:
    for _ in range(chance.choice(_FLIPS)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def _overwritten(data: bytearray, chance: random.Random) -> bytearray:
    start, length = chance.randrange(len(data)), chance.choice((16, 4096, 50_000))
    end = min(len(data), start + length)
    data[start:end] = bytes(end - start) if chance.random() < 0.5 else chance.randbytes(end - start)
    return data


def _remove_state(folder: Path, _other: Path, _chance: random.Random) -> None:
    shutil.rmtree(folder / "state")


def _remove_some(folder: Path, _other: Path, chance: random.Random) -> None:
    files = [path for path in (folder / "state").rglob("*") if path.is_file()]
    for path in chance.sample(files, chance.randint(1, len(files))):
        path.unlink()


def _replace_ledger(folder: Path, other: Path, _chance: random.Random) -> None:
    shutil.copy(other / "state" / "data.mdb", folder / "state" / "data.mdb")


def _tear_settings(folder: Path, _other: Path, chance: random.Random) -> None:
    settings = folder / "crawl.toml"
    data = settings.read_bytes()
    settings.write_bytes(data[: chance.randrange(len(data))])


def _cut_events(folder: Path, _other: Path, chance: random.Random) -> None:
    for path in (folder / "events").iterdir():
        data = path.read_bytes()
        path.write_bytes(data[: chance.randrange(len(data) + 1)])


DAMAGES: dict[str, Damage] = {
    "emptied": _of_ledger(lambda _data, _chance: b""),
    "cut off": _of_ledger(lambda data, chance: data[: chance.randrange(len(data))]),
    "flipped bits": _of_ledger(_flipped),
    "overwritten": _of_ledger(_overwritten),
    "state removed": _remove_state,
    "files of state removed": _remove_some,
    "ledger of another crawl": _replace_ledger,
    "settings torn": _tear_settings,
    "events cut": _cut_events,
}
PLANS = (
    ("resume",),
    ("status", "resume"),
    ("verify", "resume"),
    ("verify --mend", "resume"),
    ("report", "why", "resume"),
)


class Round:
    """One damaged folder, and what the verbs did to it."""

    def __init__(self, folder: Path, web: RunningWeb) -> None:
        self._folder = folder
        self._web = web
        self._before = _stored(folder)
        self.statuses: list[int] = []

    def run(self, verb: str) -> str:
        """Run a verb; return what is wrong, if anything is."""
        words = [*verb.split(), str(self._folder)]
        if verb == "resume":
            words += ["--max-time", "1", "--no-progress"]
        elif verb == "why":
            words.append(self._web.seeds()[0])
        try:
            done = subprocess.run([*GOSSAMER, *words], capture_output=True, text=True, timeout=MAX_S, check=False)
        except subprocess.TimeoutExpired:
            return f"{verb}: not over after {MAX_S:.0f} s"
        self.statuses.append(done.returncode)
        if "Traceback" in done.stderr + done.stdout:
            return f"{verb}: {done.stderr.strip().splitlines()[-1][:200]}"
        if done.returncode not in (0, 1, 2):
            return f"{verb}: exit status {done.returncode}"
        if done.returncode and not done.stderr.strip() and not done.stdout.strip():
            return f"{verb}: exit status {done.returncode} without a word"
        return ""

    def lost_bytes(self) -> int:
        """Return how many bytes of the archive are neither in their file nor set aside."""
        aside = b"\0".join(path.read_bytes() for path in self._folder.glob("aside/**/*") if path.is_file())
        after, lost = _stored(self._folder), 0
        for name, data in self._before.items():
            kept = after.get(name) or after.get(name.removesuffix(".open")) or b""
            if not kept.startswith(data):
                same = len(kept) if data.startswith(kept) else 0
                lost += 0 if data[same:] in aside else len(data) - same
        return lost


def _stored(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "archive").glob("*") if path.is_file()}


def crawled(web: RunningWeb, folder: Path, *, is_killed: bool) -> Path:
    """Crawl a part of the web: until a limit, or until a kill -9."""
    options = ("--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "--no-progress", "--save-interval", "20")
    command = [*GOSSAMER, "crawl", *web.seeds(), "--out", str(folder), "--scope", "any", *options]
    if not is_killed:
        subprocess.run([*command, "--politeness-ms", "0", "-n", "90"], capture_output=True, timeout=MAX_S, check=True)
        return folder
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([*command, "--politeness-ms", "50"], stdout=quiet, stderr=quiet)
    while len(web.log()) < PAGES // 2 and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.wait()
    (folder / "state" / "control").unlink(missing_ok=True)  # a socket cannot be copied
    return folder


def main() -> int:
    """Damage and check; print what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.damage", description="Damage crawl folders at random.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    statuses: Counter[str] = Counter()
    faults: list[str] = []
    plan = preset("small", pages=PAGES, slow=0.0)
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gossamer-damage-")))
        web, more = (stack.enter_context(RunningWeb(plan)) for _ in range(2))
        killed = crawled(web, work / "killed", is_killed=True)
        stopped, other = (crawled(more, work / each, is_killed=False) for each in ("stopped", "other"))
        for number in range(arguments.rounds):
            folder = work / f"c{number}"
            source, served = chance.choice(((killed, web), (stopped, more)))
            shutil.copytree(source, folder)
            what, verbs = chance.choice(list(DAMAGES)), chance.choice(PLANS)
            checked = Round(folder, served)
            DAMAGES[what](folder, other, chance)
            found = [fault for fault in map(checked.run, verbs) if fault]
            if lost := checked.lost_bytes():
                found.append(f"{lost} bytes of the archive are gone")
            faults += [f"round {number}, {source.name}, {what}: {fault}" for fault in found]
            statuses.update(f"{what}: {status}" for status in checked.statuses[-1:])
            shutil.rmtree(folder)
        is_sharp = _finds_a_loss(stopped, work / "sharp", more)
    print("\n".join([*faults, *(f"{count:4} {what}" for what, count in sorted(statuses.items()))]))
    print(f"{arguments.rounds} damaged folders: {len(faults)} faults" + ("" if is_sharp else "; A LOSS IS NOT NOTICED"))
    return 1 if faults or not is_sharp else 0


def _finds_a_loss(source: Path, folder: Path, web: RunningWeb) -> bool:
    """Return whether a removed archive file would be noticed here."""
    shutil.copytree(source, folder)
    checked = Round(folder, web)
    next((folder / "archive").iterdir()).unlink()
    return checked.lost_bytes() > 0


if __name__ == "__main__":
    sys.exit(main())
