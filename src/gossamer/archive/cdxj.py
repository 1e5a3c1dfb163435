"""Where in the archive is each capture? CDXJ, the index that replay tools read.

A line is `surt(url) YYYYMMDDhhmmss {json}`: the line that cdxj-indexer makes of the same record, and after its
fields those of Common Crawl's index (`mime-detected`, `charset`, `languages`, `truncated`, `redirect`), each only if
there is something to say. All of it is in the WARC record, so the index can be rebuilt. Indexed: responses (of
every status) and revisits. Files are sorted bytewise, written to a temporary name and renamed;
merging needs one line per file in memory. 12 µs per line from what the writer has.
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

from gossamer.archive.reader import ArchivedRecord, ArchiveReader
from gossamer.archive.surt import surt
from gossamer.archive.warc import Identified, is_word
from gossamer.core.url import redirect_target
from gossamer.expressions import expression
from gossamer.records import ArchiveSpan

INDEX_NAME = "index.cdxj"
PARTS_FOLDER = "parts"  # a separate folder, so that index/*.cdxj contains every capture once
INDEXED_TYPES = frozenset({"response", "revisit"})
_CONTENT_TYPE = re.compile(rb"\r\ncontent-type[ \t]*:([^\r\n]*)", re.IGNORECASE)
_LOCATION = expression(rb"\r\nlocation[ \t]*:([^\r\n]*)", re.IGNORECASE)
_END_OF_TYPE = re.compile(r"[;\s]")
_NOT_DIGIT = re.compile(r"\D")
_MERGE_WIDTH = 128  # files open at a time


def cdxj_line(
    *,
    url: str,
    warc_date: str,
    stored_head: bytes,
    digest: str,
    span: ArchiveSpan,
    is_revisit: bool = False,
    details: str = "",
) -> str:
    """Return the line of one capture, without its newline.

    `stored_head` is the HTTP head as archived, `digest` the WARC-Payload-Digest of the record, `details` what
    `capture_details` returned.
    """
    mime = "warc/revisit" if is_revisit else _mime(stored_head)
    mime_field = "" if mime is None else f'"mime": {_quoted(mime)}, '
    status = stored_head[:64].partition(b"\r\n")[0].split(b" ", 2)[1].decode("latin-1")
    if status[0] == "3":
        details += _redirect(stored_head, url)
    # Formatted by hand: json.dumps of a dict takes 5 µs. The values after the URL need no escaping.
    return (
        f'{surt(url)} {_timestamp(warc_date)} {{"url": {_quoted(url)}, {mime_field}'
        f'"status": "{status}", "digest": "{digest}", "length": "{span.length}", "offset": "{span.offset}", '
        f'"filename": "{span.file}"{details}}}'
    )


@lru_cache(maxsize=1024)
def capture_details(identified: Identified, truncated: str) -> str:
    """Return the fields of a line that follow those of cdxj-indexer, each with a comma before it."""
    named = {
        "mime-detected": identified.media_type,
        "charset": identified.charset,
        "languages": identified.language,
        "truncated": truncated,
    }
    return "".join(f', "{name}": {_quoted(value)}' for name, value in named.items() if is_word(value))


def _quoted(text: str) -> str:
    """Return a text as JSON in ASCII."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    from json.encoder import encode_basestring_ascii  # 1 ms, and URLs in canonical form do not need it

    return encode_basestring_ascii(text)


def _redirect(stored_head: bytes, url: str) -> str:
    location = _LOCATION.search(stored_head)
    target = redirect_target(location[1].decode("latin-1").strip(), url) if location is not None else None
    return "" if target is None else f', "redirect": {_quoted(target)}'


def record_line(record: ArchivedRecord, filename: str) -> str:
    """Return the line of an archived record, without its newline."""
    return cdxj_line(
        url=record.target,
        warc_date=record.fields.get("warc-date", ""),
        stored_head=record.http_parts()[0],
        digest=record.fields.get("warc-payload-digest", ""),
        span=ArchiveSpan(filename, record.offset, record.length),
        is_revisit=record.type == "revisit",
        details=_details_of(record) if record.type != "revisit" else "",
    )


def _details_of(record: ArchivedRecord) -> str:
    fields = record.fields
    identified = Identified(
        fields.get("warc-identified-payload-type", ""),
        fields.get("warc-identified-content-charset", ""),
        fields.get("warc-identified-content-language", ""),
    )
    return capture_details(identified, fields.get("warc-truncated", ""))


def index_file(warc_path: Path, filename: str = "") -> list[str]:
    """Return the sorted lines of a WARC file, as far as it is intact. `filename` is the name in the lines."""
    return index_lines_of(ArchiveReader(warc_path), filename or final_name(warc_path))


def index_lines_of(records: Iterable[ArchivedRecord], filename: str) -> list[str]:
    """Return the sorted lines of the records of a WARC file."""
    return sorted_lines(record_line(record, filename) for record in records if record.type in INDEXED_TYPES)


def sorted_lines(lines: Iterable[str]) -> list[str]:
    """Return lines sorted as `LC_ALL=C sort` does."""
    return sorted(lines, key=str.encode)


def final_name(warc_path: Path) -> str:
    """Return the name that a WARC file has, or will have once it is closed."""
    return warc_path.name.removesuffix(".open")


def part_path(index_folder: Path, warc_name: str) -> Path:
    """Return the path of the index of one WARC file until it is merged into the whole."""
    return index_folder / PARTS_FOLDER / f"{warc_name}.cdxj"


def write_index(path: Path, lines: Iterable[str]) -> None:
    """Write lines, already sorted, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".tmp")
    with unfinished.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(line + "\n" for line in lines)
        out.flush()
        os.fsync(out.fileno())
    unfinished.replace(path)


def fold_index(index_folder: Path) -> Path:
    """Merge the indexes of single files into `index.cdxj` and remove them. May be repeated, also after a crash."""
    parts = sorted((index_folder / PARTS_FOLDER).glob("*.cdxj"))
    whole = index_folder / INDEX_NAME
    if parts or not whole.exists():
        merge_index([*([whole] if whole.exists() else []), *parts], whole)
    for part in parts:
        part.unlink()
    return whole


def merge_index(paths: Sequence[Path], out: Path) -> None:
    """Merge sorted index files into one, equal lines once. Memory: one line per file; with many files, in rounds."""
    rounds: list[Path] = []
    try:
        while len(paths) > _MERGE_WIDTH:
            merged: list[Path] = []
            for start in range(0, len(paths), _MERGE_WIDTH):
                merged.append(out.with_name(f"{out.name}.{len(rounds)}.part"))
                rounds.append(merged[-1])
                _merge(paths[start : start + _MERGE_WIDTH], merged[-1])
            paths = merged
        _merge(paths, out)
    finally:
        for part in rounds:
            part.unlink(missing_ok=True)


def _merge(paths: Sequence[Path], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = out.with_name(out.name + ".tmp")
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in paths]
        target = stack.enter_context(unfinished.open("wb"))
        previous = b""
        for line in heapq.merge(*files):
            if line != previous:
                target.write(line)
            previous = line
        target.flush()
        os.fsync(target.fileno())
    unfinished.replace(out)


def _mime(stored_head: bytes) -> str | None:
    """Return the media type of a stored head as cdxj-indexer reads it, or None if there is no such header."""
    match = _CONTENT_TYPE.search(stored_head)
    return None if match is None else _essence(match[1])


def _timestamp(warc_date: str) -> str:
    """Return the first 14 digits of a date: normally, up to its second."""
    digits = _digits(warc_date[:19])
    return digits if len(digits) == 14 else _digits(warc_date)


@lru_cache(maxsize=64)
def _digits(text: str) -> str:
    return _NOT_DIGIT.sub("", text)[:14]


@lru_cache(maxsize=1024)
def _essence(content_type: bytes) -> str:
    """Return the media type of a header's value."""
    try:
        value = content_type.decode("utf-8")
    except UnicodeDecodeError:
        value = content_type.decode("latin-1")
    return _END_OF_TYPE.split(value.strip(), maxsplit=1)[0].strip()
