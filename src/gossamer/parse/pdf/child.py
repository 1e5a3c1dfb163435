"""The process that reads one PDF: its bytes on stdin, one `DeepPdf` as JSON on stdout.

Started by `parse/pdf/deep`. What it may use is limited before the library is loaded. Every page is read on its own: a
broken one costs its text, not the file's.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from io import BytesIO
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from gossamer.parse.pdf.deep import DeepLimits, DeepPdf
from gossamer.parse.pdf.pdf import MAX_LINKS, bare_urls, http_hrefs

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

MAX_PAGES = 5_000
MAX_TEXT_CHARS = 2_000_000


def main() -> None:
    """Read stdin, write stdout. The argument is `DeepLimits` as JSON."""
    limits = msgspec.json.decode(sys.argv[1], type=DeepLimits)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s))
    sys.stdout.buffer.write(msgspec.json.encode(_read(sys.stdin.buffer.read(), limits.read_s)))


def _read(content: bytes, read_s: float) -> DeepPdf:
    """Return what can be read within the limits."""
    import pypdf

    found = DeepPdf()
    texts: list[str] = []
    hrefs: list[str] = []
    try:
        reader = pypdf.PdfReader(BytesIO(content), strict=False)
        found.title = _title(reader)
        found.problem = _read_pages(reader, texts, hrefs, read_s)
    except Exception as error:  # pypdf raises whatever a broken file provokes, MemoryError and RecursionError too
        found.problem = f"pdf: {type(error).__name__} while reading it"
    found.text = "\n".join(texts)[:MAX_TEXT_CHARS]
    hrefs += (url.decode("ascii") for _, url in bare_urls(found.text.encode()))
    found.hrefs = http_hrefs(hrefs)[:MAX_LINKS]
    return found


def _title(reader: PdfReader) -> str:
    try:
        return str(reader.metadata.title or "") if reader.metadata else ""
    except Exception:
        return ""


def _read_pages(reader: PdfReader, texts: list[str], hrefs: list[str], read_s: float) -> str:
    """Add the text and the links of every page; return what is missing."""
    until = monotonic() + read_s
    pages = len(reader.pages)
    chars = 0
    broken = 0
    for number in range(pages):
        if number == MAX_PAGES or chars > MAX_TEXT_CHARS or monotonic() > until:
            return f"pdf: pages that were read: {number} of {pages}"
        try:
            page = reader.pages[number]
            hrefs += _annotations(page)
            text = page.extract_text().encode("utf-8", "replace").decode()
        except Exception:
            broken += 1
            continue
        texts.append(text)
        chars += len(text)
    return f"pdf: pages that could not be read: {broken} of {pages}" if broken else ""


def _annotations(page: PageObject) -> Iterator[str]:
    """Yield the targets of a page's links."""
    for reference in page.get("/Annots") or ():
        action = reference.get_object().get("/A")
        uri = action.get_object().get("/URI") if action is not None else None
        if uri is not None:
            yield uri.decode("latin-1") if isinstance(uri, bytes) else str(uri)


if __name__ == "__main__":
    main()
