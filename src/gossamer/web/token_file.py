"""Which token opens the dashboard, if it is to outlast the process? That in a file, made if there is none.

A token that a proxy or a program knows need not be read from what is printed, and is not printed.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from gossamer.model.errors import UsageError
from gossamer.web.access import TOKEN_BYTES

_TOKEN = r"(?a)[\w-]{16,256}"  # noqa: S105 - a pattern
_MAX_CHARS = 4096  # of the file


def token_in(path: Path) -> str:
    """Return the token in a file; it is made if there is no such file. Raises `UsageError` if that cannot be."""
    try:
        with (
            suppress(FileExistsError),
            os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as new,
        ):
            new.write(f"{secrets.token_urlsafe(TOKEN_BYTES)}\n")
        with path.open(encoding="utf-8", errors="replace") as file:
            token = file.read(_MAX_CHARS).strip()
    except OSError as error:
        raise UsageError(f"--ui-token-file {path}: {error.strerror or error}") from error
    if not re.fullmatch(_TOKEN, token):
        what = "contains no token; expected 16 to 256 letters, digits, '-' and '_', or no file: then one is made"
        raise UsageError(f"--ui-token-file {path}: {what}")
    return token
