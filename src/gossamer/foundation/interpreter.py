"""Is this Python suited to crawl with?

The program refuses to start with an interpreter that is too old, or that computes what it relies on wrongly
(`faults`: 0.1 ms). One that was built without profile-guided optimisation works, but needs more CPU for the same page
(docs/performance.md).

Only the standard library is imported, and the file can be run alone: `PYTHON -I interpreter.py` exits with status 0
if `make` should set up the environment with that Python, with 3 if only for want of a better one, and else, with one
line that says why, with 2. It must be read by Pythons that are too old.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

OLDEST = (3, 11)
NEWEST_TESTED = (3, 14)
USABLE = 3  # exit status
FAULTY = 2
# Modules that are left out of an interpreter without a word if a library was missing when it was built.
_OPTIONAL_MODULES = {"_ctypes": "libffi", "_sqlite3": "SQLite", "_ssl": "OpenSSL", "zlib": "zlib"}


def faults() -> list[str]:
    """Return what of this Python makes it unfit, and what would be right, each as one line. It costs 0.1 ms."""
    version = ".".join(map(str, sys.version_info[:3]))
    expected = f"expected CPython {OLDEST[0]}.{OLDEST[1]} or newer"
    if sys.version_info < OLDEST:
        return [f"Python {version} is too old; {expected}"]
    found = []
    if sys.implementation.name != "cpython":
        found.append(f"this is {sys.implementation.name} {version}; {expected}")
    if sys.maxsize < 1 << 40:
        found.append(
            f"Python {version} is a 32-bit program, and the ledger needs more addresses; expected a 64-bit one"
        )
    if not _matches_rightly():
        found.append(f"Python {version} matches regular expressions wrongly; expected an unchanged release of CPython")
    return found


def _matches_rightly() -> bool:
    """Return whether possessive quantifiers and groups that are tried again do what parsers of pages expect of them.

    Behind a group possessive quantifiers are wrong in several versions, so there are none (docs/decisions/051).
    """
    try:
        probe = re.compile(rb"a*+a|b{0,2}+b|(?:-(?!>)[^-]*+)*->(1+)\n")
        found = probe.fullmatch(b"-c--d->11\n")
        return found is not None and found[1] == b"11" and not probe.match(b"aaa") and not probe.match(b"bb")
    except Exception:
        return False


def missing_modules() -> list[str]:
    """Return the modules without which this Python was built, each with the library that was missing then."""
    from importlib.util import find_spec

    return [f"{name} ({library})" for name, library in _OPTIONAL_MODULES.items() if find_spec(name) is None]


def is_optimised(build: Mapping[str, Any]) -> bool:
    """Return whether an interpreter was built with a profile, by the variables of `sysconfig`."""
    if "--enable-optimizations" in (build.get("CONFIG_ARGS") or ""):
        return True
    # `make profile-opt` does the same without the option. GCC, Clang:
    flags = build.get("PY_CFLAGS_NODIST") or ""
    if "-fprofile-use" in flags or "-fprofile-instr-use" in flags:
        return True
    # Debian and Ubuntu do that, and then delete the flags from the records, so that extensions are built without them:
    # of the two variables that configure writes, for creating a profile and for using it, only the first is left.
    return bool(build.get("PGO_PROF_GEN_FLAG")) and not build.get("PGO_PROF_USE_FLAG")


def is_fit() -> bool:
    """Return whether this Python can create environments and build the compiled parts, and is optimised."""
    import sysconfig
    from importlib.util import find_spec
    from pathlib import Path

    return (
        find_spec("venv") is not None
        and find_spec("ensurepip") is not None
        and Path(sysconfig.get_config_var("INCLUDEPY") or "", "Python.h").exists()
        and is_optimised(sysconfig.get_config_vars())
    )


def main() -> int:
    """Return the exit status that tells `make` what this Python is worth; say what is wrong with it."""
    wrong = faults() or [f"built without {name}" for name in missing_modules()]
    if wrong:
        print(f"{sys.executable}: {'; '.join(wrong)}", file=sys.stderr)
        return FAULTY
    return 0 if is_fit() else USABLE


if __name__ == "__main__":
    sys.exit(main())
