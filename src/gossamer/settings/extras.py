"""How is an optional package of this installation added?"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def pip_install(extra: str) -> str:
    """Return the command that adds an extra to this installation.

    In a virtual environment that is not active, `pip` alone would be the system's: it installs elsewhere, or refuses.
    """
    own, found = Path(sys.prefix) / "bin" / "pip", shutil.which("pip")
    is_other = sys.prefix != sys.base_prefix and own.exists() and (found is None or Path(found) != own)
    return f"{shlex.quote(str(own)) if is_other else 'pip'} install 'gossamer[{extra}]'"
