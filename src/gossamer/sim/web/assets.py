"""What the pages of a styled web need to be shown: a stylesheet that imports another, a script, pictures.

Every page of a site needs the same but one picture, and each needs one picture of the web's first host, which may be
out of a crawl's scope. Pure; `requisites_of` is the truth that a crawl is compared with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from gossamer.sim.web.web import WebPlan

_PICTURES = 16  # of pages; each page has one
_CSS: Final = "text/css; charset=utf-8"
# By path: the type and the text. A picture has none.
_FIXED = {
    "/assets/site.css": (_CSS, '@import "type.css";\nbody { background: #fff url(/assets/back.png) }\n'),
    "/assets/type.css": (_CSS, "@charset 'utf-8';\nh1 { background-image: url( 'head.png' ) } /* url(no.png) */\n"),
    "/assets/site.js": ("text/javascript", "document.title += ' (shown)';\n"),
    "/assets/back.png": ("image/png", ""),
    "/assets/head.png": ("image/png", ""),
    "/assets/shared.png": ("image/png", ""),
}
_NUMBERS = {path: number for number, path in enumerate(_FIXED)}
_PICTURE = re.compile(r"/assets/(\d{1,2})\.png", re.ASCII)


def asset_number(target: str) -> int | None:
    """The number of what a path leads to; None if it is nothing that a page needs."""
    picture = _PICTURE.fullmatch(target)
    if picture is not None:
        return len(_FIXED) + int(picture[1]) if int(picture[1]) < _PICTURES else None
    return _NUMBERS.get(target)


def asset(number: int) -> tuple[str, str]:
    """The type and text of what a page needs; without a text it is a picture."""
    return list(_FIXED.values())[number] if number < len(_FIXED) else ("image/png", "")


def head_of_pages() -> str:
    return '<link rel="stylesheet" href="/assets/site.css">\n<script src="/assets/site.js" defer></script>\n'


def pictures_of(plan: WebPlan, number: int, port: int) -> str:
    """The pictures in the body of a page: its own, and for sharper screens one of the web's first host."""
    shared = f"http://{plan.host_name_at(0)}:{port}/assets/shared.png"
    return f'<img src="/assets/{number % _PICTURES}.png" srcset="{shared} 2x" alt="">\n'


def requisites_of(plan: WebPlan, pages: Iterable[tuple[str, int]], port: int) -> frozenset[str]:
    """All that pages need, as URLs: pages are given by host and the number of the page whose content they have."""
    found = {f"http://{plan.host_name_at(0)}:{port}/assets/shared.png"}
    for host, number in pages:
        own = (*(path for path in _FIXED if path != "/assets/shared.png"), f"/assets/{number % _PICTURES}.png")
        found |= {f"http://{host}:{port}{path}" for path in (*own, "/img/0.png")}
    return frozenset(found)
