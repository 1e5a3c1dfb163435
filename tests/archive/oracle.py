"""What is wrong with a WARC file or an index, for tests of what writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gossamer.archive.cdxj import final_name, index_file
from gossamer.archive.reader import ArchiveReader
from gossamer.archive.verify import index_fingerprints, line_hash, record_problems


def verify_file(path: Path) -> list[str]:
    """Return all that is wrong with a WARC file."""
    problems: list[str] = []
    reader = ArchiveReader(path)
    seen: set[str] = set()
    for record in reader:
        problems += record_problems(record)
        if record.offset == 0 and record.type != "warcinfo":
            problems.append("the first record is not a warcinfo")
        if record.id in seen:
            problems.append(f"record id {record.id} is used twice")
        seen.add(record.id)
    return [*problems, reader.problem] if reader.problem else problems


def verify_index(warc_paths: Sequence[Path], cdxj_path: Path) -> list[str]:
    """Return how an index differs from what the WARC files give."""
    found, is_sorted = index_fingerprints(cdxj_path)
    problems = [] if is_sorted else ["not sorted"]
    for path in warc_paths:
        lines = index_file(path)
        if found.pop(final_name(path), (0, 0)) != (len(lines), sum(map(line_hash, lines))):
            problems.append(f"not the captures of {path.name}")
    return problems + [f"captures of {name}, which is not there" for name in found]
