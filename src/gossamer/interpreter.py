"""Is this Python suited to crawl with?

An interpreter that was built without profile-guided optimisation needs more CPU for the same page
(docs/performance.md).

Only the standard library is imported, and the file can be run alone: `PYTHON -I interpreter.py` exits with status 0
if `make` should set up the environment with that Python, and with another status if not.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

OLDEST = (3, 11)


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
    return (
        sys.version_info >= OLDEST
        and find_spec("venv") is not None
        and find_spec("ensurepip") is not None
        and Path(sysconfig.get_config_var("INCLUDEPY") or "", "Python.h").exists()
        and is_optimised(sysconfig.get_config_vars())
    )


if __name__ == "__main__":
    sys.exit(not is_fit())
