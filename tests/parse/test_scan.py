"""The compiled scanner against the one in Python, and both against what must hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.parse.html import scan_python
from gossamer.parse.html.scan_python import Scan
from tests.amount import amount

try:
    from gossamer.parse.html import _scan
except ImportError:  # installed without a compiler
    COMPILED = None
else:
    COMPILED = _scan.scan

SCANNERS = [scan_python.scan, *([COMPILED] if COMPILED is not None else [])]
needs_compiled = pytest.mark.skipif(
    COMPILED is None, reason="need compiled parts: install a C compiler, then make clean test"
)

PIECES = st.sampled_from(
    """< > / ! -- - " ' = & &amp &lt; &notit; &copy &# &#x41; &#65 &#x80; &#0; &#xD800; &#x110000; ; a href rel
    nofollow x <a|href= <a|href=" </a> <title> </title> <script> </script> <script <!-- --> --!> <noscript> </noscript>
    <template> </template> <svg> </svg> <svg/> <textarea> </textarea> <xmp> </xmp> <style> </style> <plaintext>
    <iframe|src=q> </iframe> <td> <p> </p> <br/> <![CDATA[ ]]> <? ?> <!doctype| <meta|name=a|content=b>
    <link|rel=next|href=z> <base|href=/b/> <html|lang=de> mailto:z http: #f </ javascript: &nbsp; &nGt; &#10; </scrIPT|
    <select><option> <H1|class="a|longer|value"> </h1> <blockquote> <FigCaption> <h\x11> <lin\0k|rel=next|href=z>
    <title/> <style/> <script/> <svg><title/> <foreignObject> </foreignObject> </foreignobject/> <desc> </desc> <g> </g>
    <font|color=x> <font> <math> </math> <mi> </mi> <mglyph> <annotation-xml|encoding=Text/HTML> <annotation-xml>
    </annotation-xml> <a|xlink:href=/x> <feSpecularLighting> </feSpecularlightinG> <sv\0g> </sv\0g> <g@> </g`> </div>
    <div> <span> </span> <template|shadowrootmode=open> <metadata> </style/> </title/> <svg><g><desc> ]]>| <my-icon>
    </my-icon> <textarea/> <noscript/> <a|href="b|#c"> <g><a|href=q> </p> </br> <select> </select> <base> <base|href="">
    <div|style="display:|none"> <div|hidden> <span|style="Font-Size:0"> <b|style=font-size:9px> <p|style="left:-9999px">
    <a|href=h|style=visibility:hidden> <ul|style="text-indent:&#45;999em"> </ul> <div|style="margin-left:-50px"> </b>
    some|words|one|after|the|other|that|are|copied|many|at|a|time é \u2028 \ufeff | """.replace("\n", " ").split(" ")
).map(lambda piece: piece.replace("|", " "))
CONTROLS = st.sampled_from(["\0", "\r\n", "\r", "\t", "\f", "\v", "\n"])
MARKUP = st.lists(PIECES | CONTROLS | st.text(max_size=3), max_size=30).map("".join)
FOREIGN = st.lists(
    st.sampled_from(
        """<svg> </svg> <math> </math> <title> </title> <title/> <style> </style> <script/> <foreignObject>
        </foreignObject> <g> </g> <div> </div> <p> </p> <a|href=1> </a> <a|xlink:href=2> <template> </template>
        <mi> </mi> <annotation-xml> <annotation-xml|encoding=text/html> </annotation-xml> <noscript> </noscript>
        <base|href=3> <meta|name=x|content=y> <td> text <![CDATA[ ]]> <textarea> </textarea> <span> </span>""".split()
    ).map(lambda piece: piece.replace("|", " ")),
    max_size=40,
).map("".join)


@needs_compiled
@settings(max_examples=amount(375, 1500), deadline=None)
@given(MARKUP)
def test_both_scanners_read_the_same(markup: str) -> None:
    content = markup.encode("utf-8", "replace")
    assert COMPILED is not None
    assert COMPILED(content, True) == scan_python.scan(content, True)
    assert COMPILED(content, False) == scan_python.scan(content, False)


@needs_compiled
@settings(max_examples=amount(375, 1500), deadline=None)
@given(FOREIGN, st.sampled_from(["", "<svg>" * 126, "<template>" * 63, "<svg>" * 127 + "<foreignObject>"]))
def test_both_scanners_read_the_same_svg(markup: str, around: str) -> None:
    content = (around + markup).encode()
    assert COMPILED is not None
    assert COMPILED(content, True) == scan_python.scan(content, True)


@needs_compiled
@settings(max_examples=amount(125, 500), deadline=None)
@given(st.binary(max_size=60))
def test_both_scanners_refuse_the_same_bytes(content: bytes) -> None:
    assert COMPILED is not None
    assert COMPILED(content, True) == scan_python.scan(content, True)


@pytest.mark.parametrize("scan", SCANNERS)
@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>a  b\n c</p><p>d</p>", "a b c\nd"),
        ("<ul><li>one<li>two <b>bo</b>ld</ul>", "one\ntwo bold"),
        ("<table><tr><td>1<td>2<tr><th>3<td>4</table>", "1 2\n3 4"),
        ("a<br>b<hr>c", "a\nb\nc"),
        ("x<script>no</script><style>no</style><noscript>no</noscript><template>no</template>y", "xy"),
        ("<title>no</title><textarea> in </textarea>", "in"),
        ("<xmp>a<b></xmp>c", "a<b>\nc"),
        ("1 &lt; 2 &amp 3&nbsp;4 &#x20; &bogus;", "1 < 2 & 3\xa04 &bogus;"),
        ("a<!-- x --> b<!doctype x>c < d <3", "a bc < d <3"),
        ("<script><!--<script>no</script>no--></script>yes", "yes"),
    ],
)
def test_the_visible_text_is_read(scan: Callable[[bytes, bool], Scan | None], markup: str, text: str) -> None:
    found = scan(markup.encode(), True)
    assert found is not None
    assert (found[7].decode(), found[8]) == (text, len(text.replace("\n", " ").split(" ")))


@pytest.mark.parametrize("scan", SCANNERS)
def test_anchors_that_say_nofollow_are_counted(scan: Callable[[bytes, bool], Scan | None]) -> None:
    found = scan(b"<a href=/1><a href=/2 rel='x NoFollow'><area href=/3 rel=nofollow><a href=/1#again>", True)
    assert found is not None
    assert (found[5], found[6]) == (["/1"], 2)


@needs_compiled
@pytest.mark.parametrize(
    "unit",
    ["<", "<div>", "<!--", "<!---", "<script><!--<script>", "<title>", "<noscript>", "&", "&a", "<a href=x", "</styl"],
)
def test_time_grows_with_the_input_and_no_faster(unit: str) -> None:
    assert COMPILED is not None
    content = unit.encode() * (3_000_000 // len(unit))
    assert COMPILED(content, True) is not None  # quadratic, it would take hours


MULTIPLIER, WORD = 0x9E3779B97F4A7C15, (1 << 64) - 1


def multiplied(state: int, block: bytes) -> int:
    state = ((state ^ int.from_bytes(block, "little")) * MULTIPLIER) & WORD
    return state ^ state >> 32


def colliding_pairs(count: int) -> list[tuple[bytes, bytes]]:
    """Return pairs of 16 bytes, of which one or the other makes no difference to a hash by multiplication."""
    state, pairs = 16 * count, []
    for letters in product(b"ABCDEFGH", repeat=7):
        one, other = bytes([*letters, ord("a")]), bytes([*letters, ord("!")])
        after_one, after_other = multiplied(state, one), multiplied(state, other)
        second = (int.from_bytes(b"aaaaaaaa", "little") ^ after_one ^ after_other).to_bytes(8, "little")
        if second in (b"aaa!aaa!", b"aaaaaaa!"):
            pairs.append((one + b"aaaaaaaa", other + second))
            state = multiplied(after_one, b"aaaaaaaa")
            assert state == multiplied(after_other, second)
            if len(pairs) == count:
                break
    return pairs


@needs_compiled
def test_hrefs_that_collide_in_a_hash_without_a_key_take_no_longer_than_others() -> None:
    assert COMPILED is not None
    hrefs = [b"".join(blocks) for blocks in product(*colliding_pairs(14))]
    content = b"".join(b'<a href="%s">' % href for href in [*hrefs, *hrefs])
    begun = time.process_time()
    found = COMPILED(content, False)
    assert time.process_time() - begun < 1  # 20 ms; without a key 2 s
    assert found is not None
    assert found[5] == [href.decode() for href in hrefs]


HIDING = st.lists(
    st.sampled_from(
        """<div> </div> <div|style="display:none"> <div|hidden> <p|style=font-size:0> <p> </p> </b>
        <b|style="font-size:|9px"> <span|style=left:-999px> <span|style=left:-998px> <span> </span> </a>
        <a|href=1|style="text-indent:-12345px">
        <a|href=2> word é <template> </template> <noscript> </noscript> <svg> </svg> <g|hidden> <td|hidden> <br|hidden>
        <font|style="TOP:-1000px"> </font> <ul|style=visibility:hidden|STYLE=x> </ul> <i|style=font-size:01px> <hr>
        <u|style="font-size:1px;display:block"> </u> <title> </title>""".split()
    ).map(lambda piece: piece.replace("|", " ")),
    max_size=40,
).map(" ".join)


@needs_compiled
@settings(max_examples=amount(375, 1500), deadline=None)
@given(HIDING, st.sampled_from([1, 1, 30]))
def test_both_scanners_find_the_same_hidden_parts(markup: str, times: int) -> None:
    content = (markup * times).encode()
    assert COMPILED is not None
    assert COMPILED(content, True) == scan_python.scan(content, True)


@pytest.mark.parametrize("scan", SCANNERS)
@pytest.mark.parametrize(
    ("markup", "parts"),
    [
        ("a <div style='display:none'>b <div>c</div> <a href=/x>d</a></div> e <a href=/y>f</a>", [(1, 1, 7, 0, 1)]),
        ("<p style='font-size:0'>a<p>b", [(3, 0, 1, 0, 0)]),
        ("<span style='position:absolute; left: -9999px'>ä</span>", [(2, 0, 2, 0, 0)]),
        ("<div hidden>to the end", [(1, 0, 10, 0, 0)]),
        ("<div hidden></div><br hidden>a<li hidden>b<noscript><div hidden>c</div></noscript>", []),
        ("<template><div hidden>a</div></template><svg><g hidden>b</g></svg>", []),
        ("<ul style='font-size:0'><li style='font-size:16px'>a</ul>", []),
    ],
)
def test_hidden_parts_are_found(
    scan: Callable[[bytes, bool], Scan | None], markup: str, parts: list[tuple[int, int, int, int, int]]
) -> None:
    found = scan(markup.encode(), True)
    assert found is not None
    assert found[9] == parts
