"""Clusters in virtual time, one per seed, on all cores: is anything lost, doubled, or requested too soon?

python -m benchmarks.simcluster --seeds 10000
python -m benchmarks.simcluster --plant "links to other shards are lost"
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from multiprocessing import Pool

from gossamer.sim.cluster.runs import PLANTED, planted, run_seed


def _run(task: tuple[int, str]) -> tuple[int, list[str]]:
    seed, bug = task
    try:
        with planted(bug) if bug else nullcontext():
            return seed, run_seed(seed)
    except Exception as error:  # a cluster that breaks is a finding, too
        return seed, [repr(error)]


def main() -> int:
    """Run the seeds; print those that went wrong."""
    parser = argparse.ArgumentParser(prog="simcluster", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many (200)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--plant", choices=PLANTED, default="", help="break the cluster in one place")
    arguments = parser.parse_args()
    started = time.monotonic()
    wrong = 0
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    with Pool() as pool:
        for seed, found in pool.imap_unordered(_run, ((seed, arguments.plant) for seed in seeds), chunksize=4):
            if found:
                wrong += 1
                print(f"seed {seed}: {len(found)} problems: {'; '.join(found[:3])}", flush=True)
                if arguments.plant:
                    pool.terminate()
                    break
    print(f"{len(seeds)} seeds, {wrong} with problems, {time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
