"""Which tags of a page are HTML, and which belong to svg or math?

Within svg and math (HTML Standard 13.2.6.5) `<title>`, `<style>` and `<script>` are elements as any other: they can
close themselves, and contain markup. HTML returns at integration points, such as `<foreignObject>`, and after tags
that "break out". Of the tree only what decides that is stored: the open elements of svg and math, how many elements
of HTML are open within each integration point, how many templates are open, and a count per tag of the elements of
HTML, so that `</a>` ends an `<svg>` left open within `<a>`. An end tag of an integration point, of svg or of math
always ends it, also if an element of HTML is open within: that is an approximation.

`_scan.c` contains the same rules; names and limits here must equal those there.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field

MAX_FOREIGN = 128  # open elements of svg and math; deeper ones are only counted
MAX_TEMPLATES = 64  # nested ones that can contain svg of their own

_NAME_BYTES = 16  # compared of a name
_NO_POINT, _HTML_POINT, _TEXT_POINT, _ANNOTATION = range(4)
_SVG_POINTS = frozenset({"foreignobject", "desc", "title"})
_SVG_HIDDEN = frozenset({"desc", "title", "style", "script", "metadata"})
_MATH_TEXT = frozenset({"mi", "mo", "mn", "ms", "mtext"})
_MATH_GLYPHS = frozenset({"mglyph", "malignmark"})
_HTML_ENCODINGS = frozenset({"text/html", "application/xhtml+xml"})
_ROOTS = frozenset({"svg", "math"})
_BREAK_OUT = frozenset(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta "
    "nobr ol p pre ruby s small span strike strong sub sup table tt u ul var".split()
)
_NEVER_OPEN = frozenset(
    "area base basefont bgsound body br col embed frame frameset head hr html img input keygen link meta param source "
    "track wbr".split()
)
_UNCOUNTED = frozenset("template svg math iframe title textarea script style noembed noframes xmp noscript".split())
_COUNTED = frozenset(
    "a address article aside b big blockquote button caption center cite code dd details dialog dir div dl dt em "
    "fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 header hgroup i label legend li listing main menu "
    "nav nobr ol optgroup option pre ruby s search section select small span strike strong sub summary sup table tbody "
    "td tfoot th thead tr tt u ul var".split()
)


class _Element(Struct):
    """An open element of svg or math."""

    name: bytes
    is_math: bool
    point: int
    is_hidden: bool
    html: int = 0  # open HTML elements directly within


class OpenElements(Struct):
    templates: int = 0  # whose contents are not shown
    shadows: int = 0  # whose contents are shown: declarative shadow roots
    _foreign: list[_Element] = field(default_factory=list)
    _floor: int = 0  # how many of them are outside of the innermost template
    _excess: int = 0
    _floors: list[int] = field(default_factory=list)
    _outer_templates: int = 0  # outside of the <noscript> that is read
    _open: Counter[str] = field(default_factory=Counter)

    def inside_noscript(self) -> OpenElements:
        """Return what is open at the start of a <noscript>, in which nothing can end what was begun outside of it."""
        inner = OpenElements(self.templates, self.shadows, list(self._foreign), len(self._foreign), 0)
        inner._floors = list(self._floors)
        inner._outer_templates = self.templates + self.shadows
        inner._open = self._open
        return inner

    @property
    def is_hidden(self) -> bool:
        """Whether text is not shown here."""
        innermost = self._innermost
        return bool(self.templates) or (innermost is not None and innermost.is_hidden)

    @property
    def is_within_foreign(self) -> bool:
        """Whether the current element is one of svg or math."""
        innermost = self._innermost
        return innermost is not None and (self._excess > 0 or not innermost.html)

    def start_foreign(self, tag: str, attributes: dict[str, str], *, is_self_closing: bool) -> bool:
        """Begin an element if it is one of svg or math; return whether it is. If not, `start_html` is due."""
        if not self._is_foreign(tag):
            return False
        if tag in _BREAK_OUT or (tag == "font" and not attributes.keys().isdisjoint(("color", "face", "size"))):
            self._break_out()
            return False
        innermost = self._innermost
        assert innermost is not None
        if not is_self_closing:
            self._push(tag, attributes.get("encoding", ""), is_math=innermost.is_math)
        return True

    def start_html(self, tag: str, attributes: dict[str, str], *, is_self_closing: bool) -> None:
        """Begin an element of HTML, or the outermost one of svg or math."""
        if tag in _COUNTED:
            self._open[tag] += 1
        innermost = self._innermost
        if tag == "template":
            self._start_template(attributes.get("shadowrootmode", ""))
        elif tag in _ROOTS:
            if not is_self_closing:
                self._push(tag, "", is_math=tag == "math")
        elif innermost is not None and tag not in _NEVER_OPEN and tag not in _UNCOUNTED:
            innermost.html += 1

    def end(self, tag: str) -> bool:
        """Process an end tag; return whether it is one of HTML."""
        if self._innermost is not None and not self._end_foreign(tag):
            return False
        if tag in _COUNTED and self._open[tag]:
            self._open[tag] -= 1
        if tag == "template":
            self._end_template()
        return True

    @property
    def _innermost(self) -> _Element | None:
        return self._foreign[-1] if len(self._foreign) > self._floor else None

    def _is_foreign(self, tag: str) -> bool:
        innermost = self._innermost
        if innermost is None or self._excess:
            return innermost is not None
        if innermost.point == _HTML_POINT:
            return False
        if innermost.point == _TEXT_POINT:
            return tag in _MATH_GLYPHS and not innermost.html
        return innermost.point == _NO_POINT or tag != "svg"

    def _push(self, tag: str, encoding: str, *, is_math: bool) -> None:
        if len(self._foreign) == MAX_FOREIGN:
            self._excess += 1
            return
        innermost = self._innermost
        point = _NO_POINT
        is_hidden = innermost is not None and innermost.is_hidden
        if is_math:
            if tag in _MATH_TEXT:
                point = _TEXT_POINT
            elif tag == "annotation-xml":
                point = _HTML_POINT if encoding.lower() in _HTML_ENCODINGS else _ANNOTATION
        else:
            point = _HTML_POINT if tag in _SVG_POINTS else _NO_POINT
            is_hidden = is_hidden or tag in _SVG_HIDDEN
        self._foreign.append(_Element(_compared(tag), is_math, point, is_hidden))

    def _break_out(self) -> None:
        """End elements of svg and math up to an integration point."""
        self._excess = 0
        while len(self._foreign) > self._floor and self._foreign[-1].point not in (_HTML_POINT, _TEXT_POINT):
            self._foreign.pop()

    def _end_foreign(self, tag: str) -> bool:
        """Process an end tag within svg or math; return whether it is one of HTML, which is still to be processed."""
        breaks_out = tag in ("p", "br")
        if self._excess and not breaks_out:
            self._excess -= 1
            return False
        if breaks_out:
            self._break_out()
        depth = len(self._foreign)
        name = _compared(tag)
        has_point = False
        for number in range(depth, self._floor, -1):
            element = self._foreign[number - 1]
            is_same = element.name == name
            if element.html and not (number == depth and (is_same or tag in _ROOTS)):
                if tag == "template" or (number < depth and (has_point or tag not in _COUNTED)):
                    return tag == "template"
                element.html -= 1
                del self._foreign[number:]
                return True
            if is_same:
                del self._foreign[number - 1 :]
                return False
            has_point = has_point or element.point != _NO_POINT
        if self._floor == 0 and not has_point and tag in _COUNTED and self._open[tag]:
            self._foreign.clear()
            return True
        return tag == "template" or breaks_out

    def _start_template(self, mode: str) -> None:
        if self.templates + self.shadows < MAX_TEMPLATES:
            self._floors.append(self._floor)
            self._floor = len(self._foreign)
        if mode.lower() in ("open", "closed") and not self.templates:
            self.shadows += 1
        else:
            self.templates += 1

    def _end_template(self) -> None:
        if self.templates + self.shadows <= self._outer_templates:
            return
        if self.templates:
            self.templates -= 1
        else:
            self.shadows -= 1
        if self.templates + self.shadows < MAX_TEMPLATES:
            del self._foreign[self._floor :]
            self._floor = self._floors.pop()
            self._excess = 0


def _compared(tag: str) -> bytes:
    return tag.encode()[:_NAME_BYTES]
