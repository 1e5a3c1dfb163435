"""Is this answer a PDF, although its header does not say so?

Servers declare `application/octet-stream`, or a download, for files whose type they do not know. Then the URL's ending
or the first bytes decide (requirement H2). Pure functions; the fetcher asks at the first piece of a body, the parser
when it has the whole one.
"""

from __future__ import annotations

from gossamer.foundation.expressions import expression

PDF = "application/pdf"
PDF_NAMES = frozenset({PDF, "application/x-pdf", "application/acrobat", "text/pdf", "text/x-pdf"})
BINARY = "application/octet-stream"
UNSPECIFIC = frozenset(
    {
        BINARY,
        "binary/octet-stream",
        "application/x-octet-stream",
        "application/download",
        "application/force-download",
        "application/x-download",
        "application/x-force-download",
    }
)
# Readers accept a PDF within the first kilobyte; on the web, white space and a byte order mark occur before it.
_START = expression(rb"(?:\xef\xbb\xbf)?[\0\t\n\x0c\r ]{0,1024}%PDF-")


def is_pdf(media_type: str, content: bytes, url: str) -> bool:
    """Return whether an answer is a PDF, given the essence of its declared type and (the beginning of) its body."""
    if media_type in PDF_NAMES:
        return True
    return media_type in UNSPECIFIC and (_has_pdf_name(url) or _START.match(content) is not None)


def _has_pdf_name(url: str) -> bool:
    return url.partition("?")[0][-4:].lower() == ".pdf"
