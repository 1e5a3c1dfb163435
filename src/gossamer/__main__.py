"""The program, as `gossamer` and as `python -m gossamer`: is this Python fit for it?

An old version could not even import what the command line needs, so this is asked first.
"""

from __future__ import annotations

import gc
import sys

from gossamer.foundation.interpreter import FAULTY, faults


def run_program() -> None:
    """Run the program and exit."""
    wrong = faults()
    if wrong:
        print(f"gossamer: {'; '.join(wrong)}", file=sys.stderr)
        sys.exit(FAULTY)
    gc.disable()  # until a verb runs: what is loaded is not garbage. 7 ms
    from gossamer.cli import main

    main.run_program()


if __name__ == "__main__":
    run_program()
