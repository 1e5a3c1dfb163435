"""`python -m gossamer`: the program, if its script is not on the PATH."""

from __future__ import annotations

from gossamer.cli.main import run_program

if __name__ == "__main__":
    run_program()
