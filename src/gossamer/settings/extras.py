"""How is an optional package of this installation added?"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

# What uv and pipx leave in the environment of a program -> how it is installed anew, with an extra.
_OWNERS = {"uv-receipt.toml": "uv tool install --force", "pipx_metadata.json": "pipx install --force"}


def pip_install(extra: str) -> str:
    """Return the command that adds an extra to this installation.

    In a virtual environment that is not active, `pip` alone would be the system's: it installs elsewhere, or refuses.
    An environment of uv or pipx belongs to them, and has no pip.
    """
    for record, command in _OWNERS.items():
        if Path(sys.prefix, record).exists():
            return f"{command} 'gossamer[{extra}]'"
    import shutil

    own = Path(sys.prefix) / "bin" / "pip"
    found = shutil.which("pip")
    is_other = sys.prefix != sys.base_prefix and own.exists() and (found is None or Path(found) != own)
    return f"{shlex.quote(str(own)) if is_other else 'pip'} install 'gossamer[{extra}]'"
