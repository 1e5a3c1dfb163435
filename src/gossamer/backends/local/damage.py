"""What if a damaged ledger ends the process? One line, and an exit status that says so.

LMDB checks little of what it reads. Most damage becomes an exception, of LMDB or in decoding; but some ends the process
by a signal: a page number that leads nowhere, or an assertion in LMDB. Nothing is lost by that, since a commit is whole
or not there; `_damage` makes the signal a line that says what to do. Only programs ask for it (`end_with_a_line`): with
the library, the application decides about signals. Without the compiled part the process dies as LMDB has it.
"""

from __future__ import annotations

from pathlib import Path

from gossamer.model.errors import HOW_TO_REBUILD, CorruptFolderError

try:
    from gossamer.backends.local import _damage
except ImportError:  # not compiled
    _damage = None  # type: ignore[assignment]

IS_COMPILED = _damage is not None
WORKER_STATUS = 76  # of a worker that ended for this reason
_program = ""
_status = 0


def end_with_a_line(program: str, status: int = CorruptFolderError.exit_status) -> None:
    """Let this process end with a line and a status if it dies of a damaged ledger; `program` begins the line."""
    global _program, _status
    _program, _status = program, status


def watch(folder: Path) -> None:
    """Use the name of a ledger that is being opened for that line. No effect unless a program has asked for it."""
    if _damage is None or not _program:
        return
    text = f"{_program}: {folder}: the ledger is damaged: reading it would end the process{HOW_TO_REBUILD}\n"
    _damage.watch(_status, text.encode("utf-8", "replace")[-8000:])
