"""Pages as they are on the web: parts that sites use, and a generator that combines them.

A part is the markup of one feature: an icon, a menu, a widget's template, an old table layout, a mistake that
browsers forgive. `#` in a part stands for a number, so that every link on a page is a different one. `pages` combines
parts at random, but the same in every run; every part also occurs alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from msgspec import Struct

SKELETONS = (
    "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>Shop</title>{head}</head>\n<body>{body}"
    "</body></html>",
    '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "x.dtd"><html xmlns="http://www.w3.org/1999/xhtml">'
    '<head>{head}<title>News &amp; more</title></head><body class="home">{body}</body></html>',
    "{head}{body}",
    "<title>No head\n at all</title>{head}<p>{body}",
    '<?xml version="1.0" encoding="utf-8"?>\n<html>{head}<body>{body}</html>\n<!-- 0.123 s -->',
    "<!doctype html><html><head>{head}</head><body><div id=root><main>{body}</main></div></body></html><script>x"
    "</script>",
    "<HTML><HEAD>{head}<TITLE>Old</TITLE></HEAD><BODY BGCOLOR=#ffffff><CENTER><TABLE><TR><TD>{body}</TD></TR></TABLE>",
    "<!doctype html><html><head>{head}</head><body><header><nav>{body}</nav></header><footer><a href=/imprint>i</a>",
)

HEAD = {
    "description": '<meta name="description" content="A &quot;good&quot; page"><meta property="og:title" content="x">',
    "robots index": '<meta name="robots" content="index, follow, max-image-preview:large">',
    "robots nofollow": '<META NAME="ROBOTS" CONTENT="noindex,NOFOLLOW">',
    "canonical": '<link rel="canonical" href="/c#"><link rel="alternate" hreflang="de" href="/de/#">',
    "next": '<link rel=prev href="?page=#"><link rel="next" href="?page=1#" />',
    "styles": "<style>\n<!-- a:before{content:'<a href=/no#>'} --></style><link rel=stylesheet href=/s.css?#>",
    "json-ld": '<script type="application/ld+json">{"@id":"<a href=/no#>","url":"\\u003c/script>"}</script>',
    "data in script": '<script>self.__next_f.push([1,"<a href=\\"/no#\\">x<\\/a><\\/script>"])</script>',
    "write in script": "<script>document.write('<scr'+'ipt src=/x#><\\/scr'+'ipt><a href=/no#>')</script>",
    "script in comment in script": "<script><!--\nif(1)document.write('<script>a</script><a href=/no#>');\n//-->"
    "</script>",
    "script opened in script": "<script>var a='<!--<script>';var b='<a href=/no#>';</script>//--></script>",
    "tag manager": "<noscript><iframe src=/gtm#.html height=0 width=0></iframe></noscript>",
    "noscript style": "<noscript><style>.js{}</style><link rel=stylesheet href=/n#.css></noscript>",
    "noscript pixel": '<noscript><img height=1 src="/t#.gif"/></noscript><link rel=next href=/np#>',
    "conditional comment": '<!--[if lt IE 9]><script src=/h#.js></script><base href="/ie/"><![endif]-->',
    "revealed comment": "<!--[if !IE]><!--><link rel=next href=/r#><!--<![endif]-->",
    "downlevel revealed": "<![if !IE]><link rel=next href=/d#><![endif]>",
    "base": "<base href=/b#/>",
    "base target": '<base target="_blank"><base href="/bt#/">',
    "empty base": '<base href=""><base href="/later#/">',
    "data base": '<base href="data:,x"><base href="/later#/">',
    "base in template": "<template><base href=/tb#/><meta name=robots content=nofollow></template>",
    "refresh": '<noscript><meta http-equiv="refresh" content="0; URL=/nojs#"></noscript>',
    "icon in head": '<link rel=icon href="data:image/svg+xml,<svg><title/>"><meta name=theme-color content=#fff>',
    "second title": "<title>One</title><title>Two</title>",
    "title with markup": "<title>a < b <b>c</b> &lt;/title&gt; &eacute;</title>",
    "empty comments": "<!--><!---><!----><!-- a -- b --!><link rel=next href=/e#>",
    "instruction": "<?php echo '<a href=/no#>' ?><link rel=next href=/php#>",
    "custom in head": "<amp-analytics type=x></amp-analytics><link rel=next href=/amp#>",
    "import map": '<script type="importmap">{"imports":{"a":"/<a href=/no#>"}}</script>',
    "unknown attributes": '<meta name=robots name=x content="noarchive" content="nofollow">',
}

ICON = '<svg class="i" viewBox="0 0 24 24" aria-hidden="true">'

BODY = {
    "menu": "<ul><li><a href=/m#>A</a><li><a class=x href='/m#/b'>B</a></ul>",
    "icon": f'<a href="/i#">{ICON}<path d="M0 0h24v24H0z"/></svg> Home</a>',
    "icon with empty title": f"<a href=/it#>{ICON}<title/><path d='M0 0'/></svg></a><a href=/after#>x</a>",
    "icon with empty style": f"{ICON}<style/><path/></svg><a href=/es#>x</a>",
    "icon with empty script": f"{ICON}<script/><g><path/></g></svg><a href=/esc#>x</a>",
    "icon with script source": f'{ICON}<script xlink:href="/s#.js"/><rect/></svg><a href=/ess#>x</a>',
    "icon with title": f"{ICON}<title>Cart <b>of</b></title><desc>It & more</desc><path/></svg><a href=/t#>x</a>",
    "drawing program's icon": '<svg xmlns:sketch="x"><title>icon/#</title><desc>Created with Sketch.</desc><defs/><g '
    'id="a"><polygon points="0 0"></polygon></g></svg><a href="/sk#">x</a>',
    "icon with style": f"{ICON}<defs><style>.a{{fill:#fff}}</style></defs><path class=a /></svg><a href=/st#>x</a>",
    "icon with style in cdata": f"{ICON}<style><![CDATA[ .a > .b {{ fill: url(#x) }} ]]></style></svg>"
    "<a href=/cd#>x</a>",
    "cdata with markup": f"{ICON}<style><![CDATA[ <a href=/no#> ]]></style><a href=/cdm#><path/></a></svg>",
    "sprite": "<svg style='display:none'><symbol id=a><title/><path/></symbol><symbol id=b><title>b</title></symbol>"
    "</svg><a href=/sp#><svg><use xlink:href='#a'/></svg></a>",
    "map in svg": '<svg><a xlink:href="/sm#"><path/></a><a href="/sm2#"><text>Bern</text></a></svg>',
    "both hrefs in svg": '<svg><a xlink:href="/no#" href="/yes#"><path/></a></svg>',
    "nofollow in svg": "<svg><a rel='nofollow' href='/no#'><path/></a></svg><a href=/nf#>x</a>",
    "foreign object": "<svg><foreignObject width=1><div xmlns='x'><p>a<p>b</p><a href=/fo#>x</a></div></foreignObject>"
    "<title/></svg><a href=/fo2#>x</a>",
    "chart with labels": "<svg><g><foreignObject><div><span class=l>A</span><br/></div></foreignObject></g><g><style/>"
    "</g></svg><a href=/ch#>x</a>",
    "base in svg": "<svg><base href=/no#/><link rel=next href=/no#></svg><a href=/bs#>x</a>",
    "iframe in svg": "<svg><iframe src=/no#></svg><a href=/ifs#>x</a>",
    "meta in svg": "<svg><path><meta name=x content=y><title>broken out</title><a href=/ms#>x</a>",
    "svg broken out of": "<svg><g><path><div>x</div><a href=/bo#>x</a><style>a<b</style><a href=/bo2#>y</a>",
    "unclosed svg in anchor": f"<a href=/ua#>{ICON}<path></a><script>'<a href=/no#>'</script><a href=/ua2#>x</a>",
    "unclosed svg in button": f"<button>{ICON}<path></button><textarea><a href=/no#></textarea><a href=/ub#>x</a>",
    "svg with font": "<svg><font><glyph/></font><title/><font color=red><a href=/f#>x</a></font></svg>",
    "self-closing svg": "<svg/><title>In the body</title><a href=/sc#>x</a>",
    "nested svg": "<svg><svg><title/></svg><style/></svg><a href=/ns#>x</a>",
    "svg in upper case": "<SVG><TITLE/><FOREIGNOBJECT><A HREF=/uc#>x</A></FOREIGNOBJECT><STYLE/></SVG>"
    "<A HREF=/uc2#>x</A>",
    "svg of an editor": '<svg xmlns:rdf="r"><metadata><rdf:RDF><cc:Work rdf:about=""><dc:title/></cc:Work></rdf:RDF>'
    "</metadata><sodipodi:namedview/></svg><a href=/ed#>x</a>",
    "svg in a list in a link": "<a href=/sl#><ul><li><svg><title/></svg></ul></a><a href=/sl2#>x</a>",
    "svg filter": "<svg><filter><feSpecularLighting><fePointLight/></feSpecularLighting></filter><style/></svg>"
    "<a href=/fi#>x</a>",
    "formula": '<math display="block"><semantics><mrow><mi>x</mi><mo>=</mo><mn>1</mn></mrow><annotation encoding='
    '"application/x-tex">x=1</annotation></semantics></math><a href=/ma#>x</a>',
    "formula with html": "<math><semantics><mi>x</mi><annotation-xml encoding='text/html'><p><a href=/mh#>x</a></p>"
    "</annotation-xml></semantics></math><a href=/mh2#>x</a>",
    "formula with text": "<math><mtext><a href=/mt#>x</a></mtext><ms><title>no</title></ms><style/></math>"
    "<a href=/mt2#>x</a>",
    "formula with svg": "<math><annotation-xml><svg><title/></svg></annotation-xml><style/></math><a href=/mv#>x</a>",
    "template of a list": "<template id=row><li><a href={{url}}>{{name}}</a></li></template><a href=/tl#>x</a>",
    "nested templates": "<template><template><a href=/no#></template><a href=/no#></template><a href=/nt#>x</a>",
    "template with svg": "<template><svg><title/><a href=/no#></template><a href=/ts#>x</a>",
    "svg in template in svg": "<svg><foreignObject><template><svg><g></template><a href=/tst#>x</a>"
    "</foreignObject><title/></svg>",
    "template in script": '<script type="text/template"><a href="/no#"><%= x %></a></script><a href=/tsc#>x</a>',
    "template in table": "<table><template><tr><td><a href=/no#></template><tr><td><a href=/tt#>x</table>",
    "shadow root": "<my-card><template shadowrootmode=open><slot></slot><a href=/sh#>x</a><base href=/no/>"
    "</template></my-card>",
    "custom elements": "<my-menu :items='[]'><menu-item href=/no#><a :href='x' v-bind:href=y href=/ce#>x</a></my-menu>",
    "angular": '<a ng-href="/no#" href="/ng#" ng-repeat="a in b">{{a}}</a><app-root></app-root>',
    "no quotes": "<a href=/nq#/>x</a><a href=/nq2# class=a>y</a><a href = /nq3# >z</a>",
    "no space between attributes": '<a href="/ns#"title="x"class=\'y\'>x</a>',
    "slash between attributes": "<a/href=/sb#/class=x>x</a>",
    "quote in the middle": '<a href=/qm#" class="x">x</a><a title=\'a"b\' href=/qm2#>x</a>',
    "unclosed quote": '<a href="/uq# class="x">one</a><a href="/uq2#">two</a>',
    "repeated attribute": "<a href=/ra# href=/no# HREF=/no#>x</a>",
    "line breaks in a tag": "<a\n  class='x'\r\n\thref='/lb#'\n>x</a>",
    "line break in a href": "<a href='/lh#\n  ?a=b'>x</a>",
    "blank in a href": "<a href=' /bh# '>x</a><a href='/b h#'>y</a><a href='b?d# #e'>z</a>",
    "entities in a href": "<a href='/e#?a=1&amp;b=2&copy=3&lt=4&notit;&#x2F;&sect'>x</a>",
    "no href": "<a name=x>x</a><a href>y</a><a href=''>z</a><a href=#top>t</a>",
    "other schemes": "<a href='javascript:void(0)'>x</a><a href=mailto:a@b.c>m</a><a href='tel:+1'>t</a>"
    "<a href=/os#>x</a>",
    "protected address": '<a href="/cdn-cgi/l/email-protection#1a2b" class="__cf_email__">[email]</a>',
    "nofollow": "<a rel='ugc nofollow' href=/no#>x</a><a rel=noopener href=/rel#>y</a>",
    "area": "<map name=m><area shape=rect coords=0,0,1,1 href=/ar#><area nohref></map>",
    "iframe": "<iframe src=/if#><a href=/no#>x</a></iframe><a href=/if2#>x</a>",
    "iframe with srcdoc": "<iframe srcdoc=\"<a href='/no#'>x</a></iframe>\"></iframe><a href=/sd#>x</a>",
    "unclosed anchors": "<a href=/u1#>one<a href=/u2#>two<p><a href=/u3#>three",
    "block in anchor": "<a href=/ba#><div><h2>x</h2><p>y</p></div></a>",
    "anchor across blocks": "<p><a href=/ab#>x<p>y</a>z",
    "unclosed formatting": "<b><i><font size=2>x<p>y</b><a href=/uf#>z</a>",
    "stray end tags": "</div></p></a></br></td></svg></template></noscript></title></head><a href=/se#>x</a>",
    "early end of body": "</body></html><a href=/eb#>x</a>",
    "table layout": "<table><tr><td><a href=/tb1#>x</a><td><table><tr><td><a href=/tb2#>y</table></table>",
    "anchor in table": "<table><a href=/at#>x</a><tr><a href=/at2#>y</a><td>z</table>",
    "form in table": "<table><form action=/no#><tr><td><input><a href=/ft#>x</a></form></table>",
    "nested forms": "<form><form><a href=/nf#>x</a></form></form>",
    "select": "<select><option value=/no#>a<option>b</select><a href=/sl#>x</a>",
    "select with svg": "<select><option><svg><title/></svg>a</option></select><a href=/ss#>x</a>",
    "textarea": "<textarea><a href=/no#></textarea><a href=/ta#>x</a>",
    "embed code": "<textarea readonly>&lt;iframe src=x&gt;</iframe><script></script></textarea><a href=/ec#>x</a>",
    "noscript image": "<img data-src=x><noscript><img src=/x#><a href=/nsi#>x</a></noscript><a href=/nsi2#>y</a>",
    "noscript with svg": "<noscript><svg><title/><a href=/nss#></svg></noscript><a href=/nss2#>x</a>",
    "comment with links": "<!-- <a href=/no#>x</a> --><a href=/cl#>x</a>",
    "comment with dashes": "<!-- a -- <a href=/no#> ---!> <a href=/no#> ---><a href=/cw#>x</a>",
    "bogus comments": "</ a><!x><?y><a href=/bc#>x</a>",
    "cdata in html": "<![CDATA[ <a href=/ch#>x</a> ]]>",
    "script in cdata": "<script>//<![CDATA[\nvar a='<a href=/no#>';\n//]]></script><a href=/sic#>x</a>",
    "less than in text": "a < b <3 <<a href=/lt#>x</a> 1<2",
    "xmp": "<xmp><a href=/no#></xmp><a href=/xm#>x</a>",
    "listing": "<listing><a href=/li#>x</a></listing>",
    "noembed": "<embed src=x><noembed><a href=/no#></noembed><object data=y><param name=a><a href=/ob#>x</a></object>",
    "video": "<video><source src=a><track src=b><a href=/vi#>x</a></video><picture><source><img></picture>",
    "details": "<details><summary><a href=/de#>x</a></summary><dialog open><a href=/di#>y</a></dialog></details>",
    "blogger": "<b:if cond='x'><a expr:href='data:y' href='/bl#'>x</a></b:if>",
    "office paste": "<p class=MsoNormal><o:p>&nbsp;</o:p><st1:place w:st='on'><a href=/op#>x</a></st1:place>",
    "old image tag": "<image src=x><isindex><a href=/im#>x</a>",
    "marquee": "<marquee><a href=/mq#>x</a></marquee><blink><center><font color=red><a href=/mq2#>y</a></font>"
    "</center>",
    "nul": "<a hr\0ef=/no# href='/n\0l#'>\0x</a>",
    "letters of other scripts": "<a href='/müller-#?q=日本'>Grüße</a><a href=\"/%e9#\">é</a>",
    "definition list": "<dl><dt><a href=/dt#>x</a><dd><a href=/dd#>y</a><dt>z</dl>",
    "ruby": "<ruby>漢<rp>(<rt><a href=/ru#>x</a><rp>)</ruby>",
    "headings": "<h1><a href=/h#>x</h2><h3><a href=/h3#>y</a>",
    "button in anchor": "<a href=/bia#><button>x<button>y</button></a>",
    "body again": "<body onload=x><html lang=fr><head><a href=/bag#>x</a>",
    "meta in body": "<meta name=description content=x><link rel=next href=/mb#><a href=/mb2#>x</a>",
    "nofollow in svg's body": "<svg><desc><meta name=x content=nofollow></desc></svg><a href=/nd#>x</a>",
}

LAST = {  # what swallows the rest of a page, in a browser too
    "plaintext": "<a href=/p1#>x</a><plaintext><a href=/no#>",
    "unclosed title": "<a href=/u1#>x</a><title>y<a href=/no#>",
    "unclosed comment": "<a href=/u2#>x</a><!-- y<a href=/no#>",
    "unclosed script": "<a href=/u3#>x</a><script>y<a href=/no#>",
    "unclosed template": "<a href=/u4#>x</a><template>y<a href=/no#>",
    "unclosed tag": "<a href=/u5#>x</a><a href='/no#'",
    "unclosed value": "<a href=/u6#>x</a><a href='/no#>",
    "unclosed svg": "<a href=/u7#>x</a><svg><title/><a href=/u8#>",
    "unclosed cdata": "<a href=/u9#>x</a><svg><![CDATA[<a href=/no#>",
    "unclosed noscript": "<a href=/u10#>x</a><noscript><a href=/u11#>",
    "unclosed svg title": "<a href=/u12#>x</a><svg><title><a href=/u13#>",
}

CHARSETS = (
    ("windows-1252", "Größe naïve"), ("windows-1251", "Привет мир"), ("koi8-r", "Привет"), ("gbk", "中文网页"),
    ("gb18030", "中文网页"), ("big5", "中文網頁"), ("shift_jis", "日本語のページ"), ("euc-jp", "日本語のページ"),
    ("iso-2022-jp", "日本語"), ("euc-kr", "한국어"), ("iso-8859-2", "Příliš"), ("windows-1256", "مرحبا"),
    ("utf-16", "Größe"), ("utf-8-sig", "Größe 日本"),
)  # fmt: skip


class Page(Struct):
    """A page, and the names of the parts that it has."""

    parts: list[str]
    content: bytes


def single_parts() -> Iterator[Page]:
    """Yield every part as the only one of its page."""
    for name, markup in HEAD.items():
        yield _page(SKELETONS[0], [(name, markup)], [("menu", BODY["menu"])])
    for name, markup in (BODY | LAST).items():
        yield _page(SKELETONS[5], [("canonical", HEAD["canonical"])], [("menu", BODY["menu"]), (name, markup)])
        yield _page(SKELETONS[2], [], [(name, markup)])


def mixed_parts(count: int) -> Iterator[Page]:
    """Yield pages of many parts."""
    rng = random.Random(1)
    for _ in range(count):
        head = rng.sample(sorted(HEAD.items()), rng.randrange(8))
        body = rng.choices(sorted(BODY.items()), k=rng.randrange(5, 30))
        last = rng.sample(sorted(LAST.items()), rng.random() < 0.2)
        yield _page(rng.choice(SKELETONS), head, [*body, *last])


def other_charsets() -> Iterator[Page]:
    """Yield pages that are not in UTF-8."""
    for charset, words in CHARSETS:
        markup = f"<title>{words}</title><p>{words * 20}</p><a href='/{words}'>x</a><svg><title/></svg><a href=/z>y</a>"
        declared = f"<meta charset={charset}>" if not charset.startswith("utf") else ""
        yield Page([charset], (declared + markup).encode(charset))


def _page(skeleton: str, head: list[tuple[str, str]], body: list[tuple[str, str]]) -> Page:
    numbers = iter(range(1, 1000))
    markup = [(name, part.replace("#", str(next(numbers)))) for name, part in (*head, *body)]
    head_markup = "\n".join(part for _, part in markup[: len(head)])
    body_markup = "\n".join(part for _, part in markup[len(head) :])
    content = skeleton.replace("{head}", head_markup).replace("{body}", body_markup)
    return Page([name for name, _ in markup], content.encode())
