"""A package without its compiled parts says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WITHOUT = (
    "import sys; sys.modules['gossamer.foundation._kernel'] = None; sys.modules['gossamer.parse.html._scan'] = None; "
)
CALL = "from gossamer.cli.main import main; sys.exit(main(sys.argv[1:]))"


def run_without_compiled_parts(
    folder: Path, *words: str, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + CALL, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)


def test_doctor_warns_of_missing_parts_and_a_crawl_does(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    told = run_without_compiled_parts(tmp_path, "doctor", environment=environment)
    (line,) = [line for line in told.stdout.splitlines() if " compiled " in line]
    assert line.startswith("WARN compiled    not built: page scanner, signatures")  # others, too, without a compiler
    assert "; a page costs up to 14 times the CPU time" in line
    assert told.returncode == 0, told.stdout  # it works
    words = ("crawl", "http://127.0.0.1:1/", "-o", "out", "--max-wait", "1")
    crawled = run_without_compiled_parts(tmp_path, *words, environment=environment)
    assert "warning: compiled parts are missing (page scanner, signatures" in crawled.stderr
    assert "): a page costs up to 14 times" in crawled.stderr
    unwanted = run_without_compiled_parts(tmp_path, *words, environment={**environment, "GOSSAMER_NO_KERNEL": "1"})
    assert "compiled parts are missing" not in unwanted.stderr
