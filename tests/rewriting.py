"""Rewrites the assertions of all modules of tests once, before the processes of a test run start.

pytest keeps what it makes of a module beside it. In a fresh checkout every process would make it at the same time: 6 s
of CPU each. Here two processes make half of it each, and the others find it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook

PROCESSES = 2
MIN_MODULES = 50  # fewer are not worth it


def rewrite_all(folder: Path) -> None:
    """Rewrite the modules that have not been, if these are many."""
    modules = [path for path in sorted(folder.rglob("test_*.py")) if not _is_kept(path)]
    if sys.dont_write_bytecode or len(modules) < MIN_MODULES:
        return
    hook = next(finder for finder in sys.meta_path if isinstance(finder, AssertionRewritingHook))
    children = []
    for first in range(PROCESSES):
        child = os.fork()
        if child == 0:
            for path in modules[first::PROCESSES]:
                with suppress(BaseException):  # what is wrong with a module is said when it is collected
                    _load(path, hook)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def _is_kept(path: Path) -> bool:
    tag = f"{sys.implementation.cache_tag}-pytest-{pytest.__version__}"
    return (path.parent / "__pycache__" / f"{path.stem}.{tag}.pyc").exists()


def _load(path: Path, hook: AssertionRewritingHook) -> None:
    spec = spec_from_file_location(f"rewritten.{path.stem}", path, loader=hook)
    assert spec is not None
    hook.exec_module(module_from_spec(spec))
