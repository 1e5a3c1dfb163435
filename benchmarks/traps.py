"""Which sites without end are cut, after how many requests, and is an honest site ever cut?

python -m benchmarks.traps [PAGES]
"""

from __future__ import annotations

import sys
from struct import Struct

from gossamer.core.dedup.minhash import minhash
from gossamer.core.novelty import LANES, Novelty, PageMark
from gossamer.parse.fingerprint import text_fingerprint
from gossamer.sim.trap_sites import HONEST, TRAPS, Site

_unpack_lanes = Struct(f"<{LANES}I").unpack_from


def requests_until_cut(site: Site, pages: int) -> int | None:
    """Return after how many pages a site is held; None if it never is."""
    novelty = Novelty()
    for number in range(1, pages + 1):
        url, text = f"http://a.test{site.path(number)}", site.text(number).encode()
        if novelty.refusal(url, "a.test") is not None:
            return number - 1
        mark = PageMark(text_fingerprint(text, url), _unpack_lanes(minhash(text)), len(text.split()))
        novelty.record(url, "a.test", mark, 0.0)
    return None


def main() -> int:
    """Print a line per site; fail if a trap goes on or an honest site is cut."""
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    wrong = 0
    for kind, sites in (("trap", TRAPS), ("honest", HONEST)):
        for name, site in sites.items():
            cut = requests_until_cut(site, pages)
            wrong += (cut is None) is (kind == "trap")
            print(f"{kind:<7} {name:<30} {'whole' if cut is None else f'cut after {cut} watched pages'}")
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
