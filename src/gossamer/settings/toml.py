"""TOML files: read with one line that says what is wrong, and values as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from gossamer.model.errors import UsageError


def read_toml(path: Path) -> dict[str, Any]:
    """Return the values of a configuration file."""
    import tomllib  # 3 ms: most crawls begin without a file

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot read the configuration: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error


def toml_value(value: Any) -> str:  # noqa: ANN401 - the value of any setting
    """Return a value in TOML; an object becomes an inline table."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_value(key)} = {toml_value(each)}" for key, each in value.items()) + "}"
    # JSON's strings, numbers, booleans and lists are TOML too, except DEL, which JSON does not escape.
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
