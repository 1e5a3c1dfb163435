"""Reads secrets: from an environment variable, or from the first line of a file.

No message has a part of a secret in it. A variable that is set but empty counts as missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gossamer.model.errors import UsageError
from gossamer.settings.requests import SecretSource

MAX_SECRET_BYTES = 16_384


def read_secret(source: SecretSource, where: str, environment: Mapping[str, str]) -> str:
    """Return a secret; `where` says what it is for. Empty if no place is named."""
    if source.env:
        secret = environment.get(source.env, "")
        place = f"the environment variable {source.env}"
        if not secret:
            raise UsageError(f"{where}: {place} is not set; every machine that crawls needs it")
    elif source.file:
        secret = _first_line(source.file, where)
        place = source.file
        if not secret:
            raise UsageError(f"{where}: {place}: empty; expected the secret in its first line")
    else:
        return ""
    if len(secret) > MAX_SECRET_BYTES or any(ord(each) < 32 or ord(each) == 127 for each in secret):
        raise UsageError(f"{where}: {place}: not a line of text of at most {MAX_SECRET_BYTES} characters")
    return secret


def _first_line(path: str, where: str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_SECRET_BYTES + 2)
    except OSError as error:
        raise UsageError(f"{where}: {path}: cannot read the secret: {error.strerror or error}") from error
    try:
        return data.decode().split("\n", 1)[0].rstrip("\r")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: {path}: not text in UTF-8; expected the secret in its first line") from error
