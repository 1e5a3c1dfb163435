"""robots.txt (B), sitemaps (S), cookies, waits and validators (C), names (D) that lie."""

from __future__ import annotations

import gzip
import time
from email.utils import formatdate

from tests.hostile import bodies
from tests.hostile.catalogue_pages import links, noise
from tests.hostile.serving import Addresses, Call, Catalogue, with_robots

RULES = Catalogue()
serves = RULES.serves
RULE = b"User-agent: *\nDisallow: /secret\n"
TEXT = "text/plain"


async def site(call: Call) -> None:
    """A page that leads to what robots.txt may forbid."""
    await call.html(f"<p>{noise(call.host + call.path)}" + (links("/secret", "/open") if call.path == "/" else ""))


@serves("b01")
@with_robots
async def endless_robots(call: Call) -> None:
    if call.path == "/robots.txt":
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + RULE
        await call.flood(head, b"# a comment that says nothing\n" * 500 + b"Disallow: /open\n" * 0)
    else:
        await site(call)


@serves("b02")
@with_robots
async def robots_loop(call: Call) -> None:
    await (call.redirect("/robots.txt") if call.path == "/robots.txt" else site(call))


STATUSES = {
    "b03": "503 Service Unavailable",
    "b04a": "403 Forbidden",
    "b04b": "401 Unauthorized",
    "b04c": "404 Not Found",
    "b04d": "410 Gone",
    "b05": "429 Too Many Requests",
}


@serves(*STATUSES)
@with_robots
async def robots_status(call: Call) -> None:
    if call.path != "/robots.txt":
        await site(call)
        return
    more = ["Retry-After: 100"] if call.host == "b05.test" else []
    await call.answer(RULE, *more, status=STATUSES[call.host.removesuffix(".test")], kind=TEXT)


@serves("b06")
@with_robots
async def robots_html(call: Call) -> None:
    if call.path == "/robots.txt":
        await call.html("<!doctype html>\n<html><body>Our lovely site: welcome\n<p>Disallow nothing</body></html>")
    else:
        await site(call)


@serves("b07")
@with_robots
async def robots_bomb(call: Call) -> None:
    if call.path == "/robots.txt":
        rule = b"Disallow: /" + b"*a" * 500 + b"b\n"
        await call.answer(b"User-agent: *\n" + rule * 100 + b"Disallow: /secret\n", kind=TEXT)
    elif call.path == "/":
        await call.html(links("/" + "a" * 2000, "/secret", "/open"))
    else:
        await call.html(f"<p>{call.path}")


@serves("b08")
@with_robots
async def robots_silence(call: Call) -> None:
    await (call.hang() if call.path == "/robots.txt" else site(call))


@serves("b09", "b09other")
@with_robots
async def robots_elsewhere(call: Call) -> None:
    if call.path == "/robots.txt" and call.host == "b09.test":
        await call.redirect(f"http://b09other.test:{call.port}/robots.txt", status="301 Moved")
    elif call.path == "/robots.txt":
        await call.redirect("/rules.txt")
    elif call.path == "/rules.txt":
        await call.answer(RULE, kind=TEXT)
    else:
        await site(call)


@serves("b09victim", "b09forger")
@with_robots
async def robots_at_a_forbidden_path(call: Call) -> None:
    """A robots.txt that redirects to what another host forbids: the request would be made before any page."""
    if call.path == "/robots.txt" and call.host == "b09forger.test":
        await call.redirect(f"http://b09victim.test:{call.port}/secret", status="301 Moved")
    elif call.path == "/robots.txt":
        await call.answer(RULE, kind=TEXT)
    else:
        await site(call)


@serves("b09private")
@with_robots
async def robots_in_a_private_network(call: Call) -> None:
    await (call.redirect("http://169.254.169.254/robots.txt") if call.path == "/robots.txt" else site(call))


DELAYS = {"b10a": "-1", "b10b": "NaN", "b10c": "1e309", "b10d": "86400"}


@serves(*DELAYS)
@with_robots
async def absurd_delay(call: Call) -> None:
    if call.path == "/robots.txt":
        delay = DELAYS[call.host.removesuffix(".test")]
        await call.answer(f"User-agent: *\nCrawl-delay: {delay}\nDisallow: /secret\n".encode(), kind=TEXT)
    else:
        await site(call)


def sitemap(*locs: str) -> bytes:
    return ("<urlset>" + "".join(f"<url><loc>{loc}</loc></url>" for loc in locs) + "</urlset>").encode()


def _sitemap_of(call: Call) -> bytes:
    own = call.url("/from-sitemap")
    match call.host:
        case "s01.test":
            number = int("".join(filter(str.isdigit, call.path)) or 0)
            locs = [
                call.url("/sitemap.xml"),
                call.url(f"/sitemap{number + 1}.xml"),
                call.url(f"/sitemap{number + 2}.xml"),
            ]
            return (
                "<sitemapindex>" + "".join(f"<sitemap><loc>{x}</loc></sitemap>" for x in locs) + "</sitemapindex>"
            ).encode()
        case "s02.test":
            return bodies.BILLION_LAUGHS
        case "s03.test":
            external = f'<!ENTITY % p SYSTEM "{call.url("/evil.dtd")}">%p;'
            dtd = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">{external}]>'
            return (f"<?xml version='1.0'?>{dtd}" + sitemap(call.url("/&e;")).decode()).encode()
        case "s04.test":
            return gzip.compress(sitemap(own).removesuffix(b"</urlset>"), mtime=0) + bodies.gzip_bomb()
        case "s05.test":
            other = f"http://s05other.test:{call.port}/foreign"
            return sitemap(other, "file:///etc/passwd", "javascript:alert(1)", "ftp://s05.test/x", own)
        case _:
            return sitemap(own)[:-9] + b"<a>" * 100_000


@serves("s01", "s02", "s03", "s04", "s05", "s06")
@with_robots
async def sitemaps(call: Call) -> None:
    if call.path == "/robots.txt":
        suffix = ".gz" if call.host == "s04.test" else ""
        await call.answer(f"Sitemap: {call.url('/sitemap.xml')}{suffix}\n".encode(), kind=TEXT)
    elif call.path.startswith("/sitemap"):
        await call.answer(_sitemap_of(call), kind="application/xml")
    else:
        await site(call)


@serves("s05other")
async def foreign(call: Call) -> None:
    await site(call)


@serves("c01a", "c01b")
async def cookie_bomb(call: Call) -> None:
    count = 50 if call.host == "c01a.test" else 500
    cookies = [f"Set-Cookie: c{n}={'v' * 4000}; Path=/; Domain=test" for n in range(count)]
    await call.html("<p>" + noise(call.path) + links("/2", "/3"), *cookies)


WAITS = {
    "c02a": "100",
    "c02b": "",  # a date, made when it is sent
    "c02c": "in a while; maybe",
    "c02d": "315360000",
}


@serves(*WAITS)
async def rate_limited(call: Call) -> None:
    if call.path == "/":
        await call.html(links("/limited", "/other"))
    else:
        wait = WAITS[call.host.removesuffix(".test")] or formatdate(time.time() + 200, usegmt=True)
        await call.answer(b"<p>slow down", f"Retry-After: {wait}", status="429 Too Many")


@serves("d01", "d02", "d03", "d01inside", "d02alias")
async def named(call: Call) -> None:
    await call.html(f"<p>{noise(call.host + call.path)}" + (links("/2", "/3", "/4") if call.path == "/" else ""))


NAMES: dict[str, list[Addresses]] = {
    "d01.test": [("127.0.0.1",), ("127.0.0.66",)],  # the second answer leads inside
    "d01inside.test": [("127.0.0.66", "10.0.0.1", "::1")],
    "d02.test": [("127.0.0.1", *(f"127.0.0.{n}" for n in range(2, 200)))],
    "d03.test": [("100::1", "127.0.0.1")],
}
