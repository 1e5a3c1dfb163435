"""Which compiled parts of the package are there, and what does it cost if they are not?

A wheel of this system has them; a package that was installed from source without a C compiler, or the wheel for any
system, has not. Python does their work then: everything is the same, but slower.
"""

from __future__ import annotations

import os

from gossamer.archive import digests
from gossamer.backends.local import damage, partitions
from gossamer.foundation.kernel import kernel
from gossamer.parse.html import scan
from gossamer.runtime.session import signals

NO_KERNEL = "GOSSAMER_NO_KERNEL"  # in the environment: the compiled parts are not wanted
COST_OF_MISSING = (
    "a page costs up to 14 times the CPU time (--near-dup off: 6 times); install a wheel of this system, or a C "
    "compiler and gossamer again"
)


def compiled_parts() -> tuple[list[str], list[str]]:
    """Return the names of the parts that are there, and of those that are missing."""
    parts = {
        "page scanner": scan.scan.__module__ != "gossamer.parse.html.scan_python",
        "signatures": kernel is not None,
    }
    parts["forced exit"] = signals.IS_COMPILED
    parts["damaged ledger"] = damage.IS_COMPILED
    parts["seen URLs"] = partitions.IS_COMPILED
    parts["digests"] = digests.sha1_base32 is not digests.plain_sha1_base32
    there = [name for name, is_there in parts.items() if is_there]
    return there, [name for name, is_there in parts.items() if not is_there]


def warning_of_missing() -> str:
    """Return what the operator must know before a crawl; empty if all is there, or was not wanted."""
    _, missing = compiled_parts()
    if not missing or os.environ.get(NO_KERNEL):
        return ""
    return f"compiled parts are missing ({', '.join(missing)}): {COST_OF_MISSING}"
