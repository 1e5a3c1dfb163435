"""Can a URL be made whose id is another's? The four-list attack, on ids without a key and on those of a crawl.

    python -m benchmarks.forge [--minutes N]

Ids were the unkeyed xxh3_64 of a name until format 3 of the ledger. Of 128 bytes it is an invertible function of a sum
of eight terms, so a second preimage is a matter of seconds (D. Wagner, A Generalized Birthday Problem, 2002). Each
round makes some for a new victim, which shows that the attack works; then asks whether one of them, or of a million
other URLs, has the id of the victim in a crawl whose key the attacker does not know. The best of these show how close
that comes: about as many equal bits as there are bits in the number of tries.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
import subprocess
import tempfile
import time
from pathlib import Path

from xxhash import xxh3_64_digest, xxh3_64_intdigest

from gossamer.core.url.identity import KEY_BYTES, Identity
from gossamer.model.state import IdentityRecord

LENGTH = 128
FREE = (2, 3, 4, 5)  # blocks of 16 bytes
RANDOM_TRIES = 1_000_000
_MAX_FOUND = 64
_SECRET = bytes.fromhex(  # of xxh3 without a seed: its first 128 bytes
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
)


class Forger:
    """The attack, compiled."""

    def __init__(self, folder: Path) -> None:
        path = folder / "forge.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
        self._forge = ctypes.CDLL(str(path)).forge
        self._forge.argtypes = [
            ctypes.c_char_p,
            ctypes.POINTER(ctypes.c_int),
            ctypes.c_uint64,
            ctypes.c_char_p,
            ctypes.c_uint64,
            ctypes.c_char_p,
            ctypes.c_int,
        ]

    def forge(self, template: str, digest: int, seed: int, free: tuple[int, ...] = FREE) -> list[str]:
        """Return texts like a template of 128 bytes, free blocks aside, whose xxh3_64 is the given one."""
        assert len(template) == LENGTH
        found = ctypes.create_string_buffer(LENGTH * _MAX_FOUND)
        blocks = (ctypes.c_int * 4)(*free)
        count = self._forge(template.encode(), blocks, digest, _SECRET, seed, found, _MAX_FOUND)
        return [found.raw[LENGTH * n : LENGTH * (n + 1)].decode() for n in range(count)]


def forged_urls(forger: Forger, victim: str, seed: int) -> list[str]:
    """Return URLs on the victim's host with its xxh3_64."""
    start = victim[: victim.index("/", 8) + 1]
    template = (start + "x" * LENGTH)[:LENGTH]
    return forger.forge(template, xxh3_64_intdigest(victim.encode()), seed)


def forged_hosts(forger: Forger, victim: str, victims_domain: str, seed: int) -> list[str]:
    """Return hosts of a domain of the attacker's, in the shard of the victim's, with the victim's xxh3_64."""
    shard = xxh3_64_intdigest(victims_domain.encode()) >> 52
    names = (f"a{number}.test" for number in itertools.count(seed * 100_000))
    domain = next(name for name in names if xxh3_64_intdigest(name.encode()) >> 52 == shard)
    blocks = ["xxxxxxxxxxxxxxxx"] * 7
    for number in (1, 3, 5):
        blocks[number] = "xxxxxxxxxxxxxxx."
    template = "".join(blocks) + ("x" * 15 + f".{domain}")[-16:]
    return forger.forge(template, xxh3_64_intdigest(victim.encode()), seed)


def equal_bits(one: bytes, other: bytes) -> int:
    """Return how many leading bits of two hashes are equal."""
    return 64 - (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_length()


def main() -> int:
    """Attack until the time is over, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forge", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="of CPU")
    minutes: float = parser.parse_args().minutes
    rounds = unkeyed = keyed = tries = 0
    best = 0
    with tempfile.TemporaryDirectory(prefix="gossamer-forge-") as name:
        forger = Forger(Path(name))
        while time.process_time() < 60 * minutes or not rounds:
            rounds += 1
            victim = f"https://shared.test/victim/{rounds}"
            began = time.process_time()
            forged = forged_urls(forger, victim, rounds)
            took = time.process_time() - began
            assert all(xxh3_64_digest(url.encode()) == xxh3_64_digest(victim.encode()) for url in forged)
            unkeyed += len(forged)
            identity = Identity(IdentityRecord(os.urandom(KEY_BYTES)))
            wanted = identity.digest(victim.encode())
            others = (f"https://shared.test/{rounds}/{number}" for number in range(RANDOM_TRIES))
            for url in itertools.chain(forged, others):
                tries += 1
                found = identity.digest(url.encode())
                if found[:2] == wanted[:2]:
                    best = max(best, equal_bits(found, wanted))
                    keyed += found == wanted
            print(
                f"round {rounds}: {len(forged)} forged in {took:.1f} s; so far {unkeyed} without a key, "
                f"{keyed} of {tries:,} with one (at most {best} of 64 bits equal), {time.process_time():.0f} s of CPU",
                flush=True,
            )
    return int(keyed > 0 or not unkeyed)


if __name__ == "__main__":
    raise SystemExit(main())
