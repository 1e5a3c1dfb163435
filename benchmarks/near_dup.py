"""How well are near duplicates found, and at what cost?

    python benchmarks/near_dup.py [accuracy] [cost] [million]

accuracy  pairs of texts with known edits, judged against the exact Jaccard similarity of their 5-word shingles
cost      CPU per page of 10 KB of text: signature, index in memory, index on disk with a commit every 500 pages
million   1,000,000 pages through the durable index: memory and time a page, and the time to open it again
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from heapq import heappushpop
from pathlib import Path
from random import Random
from time import perf_counter, process_time, thread_time

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.dedup.minhash import minhash, plain_minhash
from gossamer.core.dedup.scheme import SCHEMES, NearDup, Scheme
from gossamer.core.dedup.shingles import words_of
from gossamer.foundation.kernel import kernel
from gossamer.ports import Ledger

PAIRS = 6000
COMMIT_PAGES = 500
_DRAW = Random(7)


# -- texts ----------------------------------------------------------------------------------------


def vocabulary(count: int = 20_000) -> tuple[list[str], list[float]]:
    """Return words, and how often each is used: as in natural language, by Zipf's law."""
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    words = ["".join(_DRAW.choices(letters, k=_DRAW.randint(2, 11))) for _ in range(count)]
    total, cumulated = 0.0, []
    for rank in range(1, count + 1):
        total += 1 / rank
        cumulated.append(total)
    return words, cumulated


WORDS, WEIGHTS = vocabulary()


def some_words(count: int) -> list[str]:
    return _DRAW.choices(WORDS, cum_weights=WEIGHTS, k=count)


def edited(words: list[str], wanted: float) -> list[str]:
    """Return a copy that has about the wanted Jaccard similarity: words here and there, or a passage in one piece."""
    words = list(words)
    lost = (1 - wanted) / (1 + wanted) * len(words)  # shingles that each of the two has alone
    kind = _DRAW.randrange(4)
    if kind == 0:
        start = _DRAW.randrange(max(1, len(words) - int(lost)))
        words[start : start + int(lost)] = some_words(int(lost))
    elif kind == 1:
        added = int((1 - wanted) / wanted * len(words))
        start = _DRAW.choice((0, len(words), _DRAW.randrange(len(words))))
        words[start:start] = some_words(added)
    else:
        for _ in range(round(lost / 5)):
            at = _DRAW.randrange(len(words))
            words[at : at + 1] = (some_words(1), [], [words[at], *some_words(1)])[_DRAW.randrange(3)]
    return words


def jaccard(one: str, other: str) -> float:
    a, b = (set(zip(*(words_of(text)[n:] for n in range(5)), strict=False)) for text in (one, other))
    return len(a & b) / len(a | b)


# -- accuracy -------------------------------------------------------------------------------------


def measure_accuracy() -> None:
    pairs = []
    for _ in range(PAIRS):
        first = some_words(_DRAW.randint(150, 2500))
        second = edited(first, _DRAW.uniform(0.5, 1.0))
        pairs.append((" ".join(first), " ".join(second)))
    exact = [jaccard(*pair) for pair in pairs]
    for name, scheme in SCHEMES.items():
        show_accuracy(name, exact, list(marks(scheme, pairs)))


def marks(scheme: Scheme, pairs: list[tuple[str, str]]) -> Iterator[bool]:
    """Yield for each pair whether the second text is marked, where the first texts of all pairs are kept."""
    ledger = MemoryLedger()
    ledger.use_signatures(scheme.edition)
    for number, (first, _) in enumerate(pairs):
        ledger.put_signature(number.to_bytes(16, "big"), scheme.sign(first))
    for _, second in pairs:
        yield ledger.most_similar(scheme.sign(second)) is not None


def show_accuracy(name: str, exact: list[float], marked: list[bool]) -> None:
    def share(low: float, high: float) -> str:
        chosen = [is_marked for value, is_marked in zip(exact, marked, strict=True) if low <= value < high]
        return f"{sum(chosen) / len(chosen):7.2%} of {len(chosen)}" if chosen else "none"

    print(f"{name}: share of pairs marked, by their exact Jaccard similarity")
    for step in range(10, 20):
        print(f"  {step / 20:.2f} to {(step + 1) / 20:.2f}   {share(step / 20, (step + 1) / 20 + (step == 19))}")
    print(f"  0.95 and more  {share(0.95, 2)}   (wanted: at least 98 %)")
    print(f"  0.60 to 0.85   {share(0.6, 0.85)}   (wanted: at most 2 %)")
    print(f"  below 0.85     {share(0.0, 0.85)}   (wanted: at most 2 %)")


# -- cost -----------------------------------------------------------------------------------------


def cpu_us(work: Callable[[str], object], texts: list[str]) -> float:
    started = process_time()
    for text in texts:
        work(text)
    return (process_time() - started) / len(texts) * 1e6


def note_in(ledger: Ledger) -> Callable[[str], object]:
    """Return what is done for a page, with a commit now and then."""
    ledger.use_signatures(SCHEMES[NearDup.MINHASH].edition)
    numbers = iter(range(1 << 40))

    def note(text: str) -> None:
        number = next(numbers)
        signature = minhash(text)
        if ledger.most_similar(signature) is None:
            ledger.put_signature(number.to_bytes(16, "big"), signature)
        if number % COMMIT_PAGES == COMMIT_PAGES - 1:
            ledger.commit()

    return note


def measure_cost() -> None:
    texts = [" ".join(some_words(1500)) for _ in range(5000)]
    texts += [" ".join(edited(text.split(), 0.97)) for text in texts[:500]]
    size = sum(map(len, texts)) / len(texts)
    print(f"CPU per page, {len(texts)} texts of {size / 1000:.1f} KB, one in eleven a near duplicate")
    if kernel is not None:
        print(f"  MinHash, compiled             {cpu_us(kernel.minhash, texts):7.1f} µs")
        print(f"  SimHash, compiled             {cpu_us(kernel.simhash, texts):7.1f} µs")
    print(f"  MinHash, Python alone         {cpu_us(plain_minhash, texts[:200]):7.1f} µs")
    print(f"  MinHash and index in memory   {cpu_us(note_in(MemoryLedger()), texts):7.1f} µs  (wanted: at most 200)")
    with tempfile.TemporaryDirectory() as folder:
        ledger = LocalLedger(Path(folder) / "state")
        ledger.open()
        print(f"  MinHash and index on disk     {cpu_us(note_in(ledger), texts):7.1f} µs  (wanted: at most 300)")
        ledger.close()


# -- a million ------------------------------------------------------------------------------------


def memory(kind: str) -> int:
    """Return bytes of this process: VmRSS, or RssAnon, which leaves out the mapped pages of the ledger's file."""
    with Path("/proc/self/status").open(encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{kind}:"))


def open_ledger(folder: Path) -> LocalLedger:
    ledger = LocalLedger(folder)
    ledger.open()
    ledger.use_signatures(SCHEMES[NearDup.MINHASH].edition)
    return ledger


def measure_million(pages: int = 1_000_000) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "state"
        ledger = open_ledger(folder)
        before = memory("RssAnon")
        print(f"{pages:,} pages, one in ten a near duplicate of an earlier one")
        longest = fill(ledger, pages)
        grown = memory("RssAnon") - before
        print(f"  memory           {grown / pages:6.0f} bytes per page   (wanted: at most 600)")
        print(f"  longest pages    {longest[0] * 1000:6.2f} ms in 1 of 100,000, {longest[-1] * 1000:.2f} at most")
        ledger.close()
        used = sum(path.stat().st_blocks * 512 for path in folder.iterdir())
        print(f"  disk             {used / pages:6.0f} bytes per page")
        started = perf_counter()
        ledger = open_ledger(folder)
        print(f"  opened again in  {perf_counter() - started:6.1f} s")
        ledger.close()


def fill(ledger: LocalLedger, pages: int) -> list[float]:
    """Keep signatures; print the CPU as it grows. Return how long the slowest pages held the processor, in order."""
    draw = Random(3)
    kept: list[bytes] = []
    longest = [0.0] * (pages // 100_000 or 1)
    spent = 0.0
    for number in range(pages):
        if number % 10 == 9:
            signature = draw.randbytes(20) + kept[draw.randrange(len(kept))][20:]
        else:
            signature = draw.randbytes(512)
        if number % 1000 == 0:
            kept = [*kept[-2000:], signature]
        started, cpu = thread_time(), process_time()
        if ledger.most_similar(signature) is None:
            ledger.put_signature(number.to_bytes(16, "big"), signature)
        heappushpop(longest, thread_time() - started)
        if number % COMMIT_PAGES == COMMIT_PAGES - 1:
            ledger.commit()
        spent += process_time() - cpu
        if (number + 1) % (pages // 10) == 0:
            print(f"  CPU at {number + 1:>9,}  {spent / (pages // 10) * 1e6:6.1f} µs per page, commits included")
            spent = 0.0
    return sorted(longest)


if __name__ == "__main__":
    PARTS = {"accuracy": measure_accuracy, "cost": measure_cost, "million": measure_million}
    if len(sys.argv) == 2:
        PARTS[sys.argv[1]]()
    else:  # a process each: what one part frees must not hide what another takes
        for part in sys.argv[1:] or PARTS:
            subprocess.run([sys.executable, __file__, part], check=True)
