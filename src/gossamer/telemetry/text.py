"""Formats numbers and texts from the web for people: short, and safe on a terminal.

Everything that a verb prints goes through a `SafeStream`: what would move the cursor, change the direction of text or
is invisible is shown as a `\\u` escape, which is also correct within JSON.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, cast

from gossamer.core.traps.quarantine import Quarantine
from gossamer.model.state import Waiting

# C1, marks of direction, line separators, invisible characters and tags; surrogates cannot be printed.
_INVISIBLE = (
    r"\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e0fff"
)
_CONTROL = rf"[\x00-\x1f{_INVISIBLE}]"
_UNSAFE = rf"[\x00-\x08\x0b-\x1f{_INVISIBLE}]"  # tabs and line ends are ours


REPORT_HINT = "; 'gossamer report' says which"  # at the end of a warning; the report itself leaves it out


def count(number: float) -> str:
    """Return a number with thousands separators."""
    return f"{number:,.0f}"


def plural(number: float, noun: str) -> str:
    """Return a number of things, in the singular if it is one."""
    return f"{count(number)} {noun}" + ("" if number == 1 else "es" if noun.endswith(("s", "ch")) else "s")


def escape(text: str) -> str:
    """Return a text as HTML, as `html.escape` does, which imports the names of all characters: 1 ms."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#x27;")


def agreeing(number: float, noun: str, one: str = "is", many: str = "are") -> str:
    """Return a number of things with the verb that fits: "1 URL is", "2 URLs are"."""
    return f"{plural(number, noun)} {one if number == 1 else many}"


def waiting_for(label: str, waiting: Waiting) -> str:
    shards = plural(waiting.shards, "shard")
    verb = "waits" if waiting.urls == 1 else "wait"
    return f"{plural(waiting.urls, 'URL')} in {shards} {verb} for a node with label {label}"


def released(quarantines: Sequence[Quarantine]) -> str:
    """Return what the end of quarantines brings."""
    if not quarantines:
        return "no pattern is in quarantine"
    urls = sum(each.held for each in quarantines)
    return f"{plural(urls, 'URL')} of {plural(len(quarantines), 'pattern')} released"


UNKNOWN = "–"  # in the place of a number that nothing speaks for yet


def percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def decimal(number: float | None, digits: int = 1) -> str:
    """Return a rate or a mean with its decimals; a dash if there is no evidence for one."""
    return UNKNOWN if number is None else f"{number:.{digits}f}"


def rounded(number: float | None, digits: int) -> float | None:
    """Return a number for JSON; None stays None."""
    return None if number is None else round(number, digits)


def size(number: float) -> str:
    """Return bytes in the unit that fits."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def duration(seconds: float) -> str:
    """Return a time span in the units that fit."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} days {hours % 24} h"


def roughly(seconds: float) -> str:
    """Return a time span that is not known exactly, in one unit."""
    for least, unit, name in ((4 * 86400, 86400, "days"), (1.9 * 3600, 3600, "h"), (1.9 * 60, 60, "min")):
        if seconds >= least:
            return f"{count(seconds / unit)} {name}"
    return f"{seconds:.0f} s"


def wrapped(text: str, columns: int, indent: int) -> str:
    """Return lines that fit a terminal: broken at blanks, what follows indented. Words, as paths, stay whole."""
    hanging = " " * indent
    return "\n".join(
        textwrap.fill(
            line,
            max(indent + 20, columns - 1),
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
            drop_whitespace=True,
            replace_whitespace=False,
        )
        for line in text.split("\n")
    )


def printable(text: str, max_chars: int = 200) -> str:
    """Return a text from the web that is safe on a terminal: control characters are shown, not sent."""
    if not _is_plain(text):
        text = re.sub(_CONTROL, _escape, text)
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def safe(text: str) -> str:
    """Return a text of several lines that is safe on a terminal; JSON stays the same JSON."""
    return text if _is_plain(text.replace("\n", "")) else re.sub(_UNSAFE, _escape, text)


def _is_plain(text: str) -> bool:
    """Return whether nothing is to be escaped, as in most texts: the expressions take 0.3 ms each to compile."""
    # Of what they match, only tags are printable for Python.
    return text.isprintable() and (text.isascii() or max(text) < "\U000e0000")


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


class SafeStream:
    """A text stream that prints nothing unsafe. `raw` is the stream itself, for control sequences of our own."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw
        self.mask: Callable[[str], str] = str

    def write(self, text: str) -> int:
        return self.raw.write(safe(self.mask(text)))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else is the stream's
        return getattr(self.raw, name)


@contextmanager
def safe_output() -> Iterator[None]:
    """Make what is printed safe, on stdout and stderr."""
    out = sys.stdout
    err = sys.stderr
    sys.stdout = cast("TextIO", SafeStream(out))
    sys.stderr = cast("TextIO", SafeStream(err))
    try:
        yield
    finally:
        sys.stdout = out
        sys.stderr = err


def mask_output(mask: Callable[[str], str]) -> None:
    """Mask what this process prints from now on, line by line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, SafeStream):
            stream.mask = mask


def as_printed(text: str) -> str:
    """Return a safe text as standard output would print it: masked, if output is."""
    return sys.stdout.mask(text) if isinstance(sys.stdout, SafeStream) else text


def masked_output(line: bytes) -> bytes:
    """Return a line for a file, masked as what is printed."""
    if not isinstance(sys.stdout, SafeStream) or sys.stdout.mask is str:
        return line
    return sys.stdout.mask(line.decode()).encode()


def raw_stream(stream: TextIO) -> TextIO:
    """Return the stream that control sequences of our own are written to."""
    return stream.raw if isinstance(stream, SafeStream) else stream
