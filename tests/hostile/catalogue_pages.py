"""What hostile pages hold (H, W), and pages without end (T)."""

from __future__ import annotations

import hashlib
from calendar import month_name as calendar_names

from tests.hostile import bodies
from tests.hostile.serving import Call, Catalogue

PAGES = Catalogue()
serves = PAGES.serves
INJECTIONS = (
    "/';DROP TABLE urls;--", "/$(reboot)", "/`id`", "/a%00b", "/%0d%0aWARC-Type:%20response", "/?q=' OR '1'='1",
    "/..%2f..%2fetc/passwd", "/${jndi:ldap://x}", "/{{7*7}}",
)  # fmt: skip
TITLES = (
    "<img src=x onerror=alert(1)>",
    "=cmd|' /C calc'!A0",
    "</script><script>alert(1)</script>",
    "@SUM(1)",
    "\u202egpj",
)
TRAVERSALS = (
    "/W01/../../etc/cron.d/x", "/W01/%2e%2e%2f%2e%2e%2fx", "/W01/..\\..\\x", "/CON", "/" + "n" * 300, "/W01/.%00./x",
)  # fmt: skip


def noise(text: str, count: int = 60) -> str:
    """Words that no other text has."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return " ".join(hashlib.sha256(f"{digest}{n}".encode()).hexdigest()[:8].translate(_LETTERS) for n in range(count))


_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def links(*hrefs: str) -> str:
    return "".join(f'<a href="{href}">x</a> ' for href in hrefs)


@serves("h01")
async def a_million_links(call: Call) -> None:
    if call.path != "/":
        await call.html(f"<p>{noise(call.path)}")
        return
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    await call.send(head)
    for first in range(0, 1_000_000, 1000):
        await call.send(
            "".join(f'<a href="/link-number-{n}-of-many">{n}</a>\n' for n in range(first, first + 1000)).encode()
        )
    call.is_last = True


@serves("h02")
async def deep_nesting(call: Call) -> None:
    await call.answer(b'<a href="/found">x</a>' + b"<div>" * 999_000 if call.path == "/" else b"<p>found")


BYTES = {
    "h03": b"<title>\xc0\xaf \xed\xa0\x80 \xff end</title><a href='/\xed\xa0\x80'>x</a><a href='/ok'>y</a>",
    "h04": b"<title>n\0u\0l</title><a hr\0ef='/no'>x</a><a href='/a\0b'>y</a><a href='/ok'>z</a>",
    "h05": "<title>wide</title><a href='/found'>x</a>".encode("utf-16-le"),
}


@serves(*BYTES)
async def odd_bytes(call: Call) -> None:
    await call.answer(
        BYTES[call.host.removesuffix(".test")] if call.path == "/" else b"<p>ok", kind="text/html; charset=utf-8"
    )


@serves("h06")
async def evil_charset(call: Call) -> None:
    labels = ["../../etc", "utf-7", "x-user-defined", "idna", "rot13", "zip", "hex", "unicode_escape", "utf-8\0x"]
    number = int(call.path.strip("/+AGE-") or 0)
    body = f"<title>label {number}</title>" + links(*(f"/{n}" for n in range(len(labels))), "/+AGE-")
    if number < len(labels):
        await call.answer(body.encode(), kind=f'text/html; charset="{labels[number]}"')


@serves("h07")
async def other_schemes(call: Call) -> None:
    await call.html(
        links("javascript:alert(1)", "data:text/html,x", "mailto:a@b", "tel:1", "blob:x", "about:blank", "ftp://h07.test/x",
              "ws://h07.test/", "JaVaScRiPt:1", " java\nscript:1", "file:///etc/passwd", "gopher://h07.test/", "/ok")
    )  # fmt: skip


@serves("h08", "h08b", "h08c")
async def base_tricks(call: Call) -> None:
    if call.host == "h08.test":
        await call.html('<base target=x><base href="//evil.example/"><base href="/two/">' + links("page"))
    elif call.host == "h08c.test" and call.path == "/":
        await call.html('<base href="javascript:x"><base href="//evil.example/">' + links("page"))
    elif call.path == "/":
        await call.html('<base href="/one/"><base href="/two/"><p>' + links("page") + '<base href="/three/">')
    else:
        await call.html("<p>ok")


@serves("h09")
async def userinfo(call: Call) -> None:
    port = call.port
    if call.path == "/":
        await call.html(links(f"http://good.example@h09.test:{port}/a", f"http://user:hunter2@h09.test:{port}/b"))
    else:
        await call.html(f"<p>{call.path}")


@serves("xn--h10-dma")
async def homographs(call: Call) -> None:
    port = call.port
    forms = ["h10é.test", "H10É.test", "XN--H10-DMA.test", "h10é．test", "h10é。test", "h10e\u0301.test", "h10é.test."]
    await call.html(links(*(f"http://{form}:{port}/x" for form in forms)) if call.path == "/" else "<p>once")


@serves("h11")
async def long_urls(call: Call) -> None:
    query = "&".join(f"p{n}={n}" for n in range(100_000))
    await call.html(links("/" + "y" * 1_000_000, "/?" + query, "/ok") if call.path == "/" else "<p>ok")


@serves("h12")
async def escapes_in_title(call: Call) -> None:
    await call.html("<title>\x1b[2J\x1b]0;pwn\x07 <script>alert(1)</script></title><p>x")


@serves("h13")
async def binary_as_html(call: Call) -> None:
    await call.flood(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", bytes(range(256)) * 256)


@serves("h14")
async def malformed_pdf(call: Call) -> None:
    if call.path == "/":
        await call.html(links("/evil.pdf", "/after"))
    elif call.path == "/evil.pdf":
        await call.answer(bodies.PDF_LOOP, kind="application/pdf")
    else:
        await call.html("<p>after")


@serves("h15")
async def soft_404(call: Call) -> None:
    """A site with two real pages that says "not found" with 200 and a page full of dead links."""
    if call.path == "/":
        await call.html(
            "<p>Welcome " + noise("home") + links("/real", *(f"/gone-{noise(str(n), 1)}" for n in range(30)))
        )
    elif call.path == "/real":
        await call.html("<p>Real " + noise("real"))
    else:
        more = [f"{call.path}-{noise(call.path + str(n), 1)}" for n in range(5)]
        await call.html(f"<p>Sorry, {call.path} was not found on this server. Try the search." + links(*more))


@serves("h16")
async def camera(call: Call) -> None:
    frame = b"--f\r\nContent-Type: image/jpeg\r\n\r\n" + bytes(2000) + b"\r\n"
    await call.flood(b"HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=f\r\n\r\n", frame)


@serves("t01")
async def calendar(call: Call) -> None:
    if call.path.endswith("-no-such-page"):
        await call.html("<p>no", status="404 Not Found")
        return
    parts = [part for part in call.path.split("/") if part] or ["2020", "1"]
    month = int(parts[0]) * 12 + int(parts[1])
    near = [month - 1 - 1, month - 1 + 1, month - 1 + 12]
    name, days = calendar_names[(month - 1) % 12 + 1], " ".join(str(day) for day in range(1, 29))
    text = f"<h1>{name} {(month - 1) // 12}</h1><p>{noise('menu')} Mo Tu We Th Fr Sa Su {days} no events</p>"
    await call.html(text + links(*(f"/{n // 12}/{n % 12 + 1}" for n in near)))


@serves("t02")
async def session_ids(call: Call) -> None:
    sid = hashlib.md5(call.head + str(call.connection).encode()).hexdigest()
    await call.html(f"<p>{noise(call.path.partition('?')[0])}" + links(*(f"/{n}?sid={sid}" for n in range(5))))


@serves("t03")
async def path_loop(call: Call) -> None:
    await call.html(f"<p>{noise(call.path)}" + links("a/", "a/b/"))


@serves("t04")
async def farm(call: Call) -> None:
    names = [noise(f"{call.host}{call.path}{n}", 1) for n in range(10)]
    await call.html(f"<p>{noise(call.host + call.path)}" + links(*(f"http://{n}.t04.test:{call.port}/" for n in names)))


@serves("t05")
async def facets(call: Call) -> None:
    if call.path.startswith("/article"):
        number = int(call.path.rpartition("/")[2])
        await call.html(f"<p>{noise(call.path)}" + (links(f"/article/{number + 1}") if number < 30 else ""))
        return
    if call.path != "/" and not call.path.startswith("/shop"):
        await call.html("<p>no", status="404 Not Found")
        return
    tag = hashlib.md5(call.path.encode()).hexdigest()
    facets = [f"/shop?{a}={tag[n : n + 2]}&{b}={tag[n + 2 : n + 4]}" for n, (a, b) in enumerate(
        [("color", "size"), ("size", "color"), ("sort", "color"), ("size", "sort"), ("brand", "page")])]  # fmt: skip
    await call.html("<p>The same six products as always." + links("/article/1", *facets))


@serves("t06", "t06beside")
async def endless_text(call: Call) -> None:
    await call.html(
        f"<p>{noise(call.host + call.path)}" + links(*(f"/{noise(call.path + str(n), 1)}" for n in range(4)))
    )


@serves("t07")
async def fragments_and_case(call: Call) -> None:
    await call.html(f"<p>{noise(call.path)}" + links(*(f"/#{n}" for n in range(50)), "/A", "/a", "/A#x"))


@serves("w01")
async def traversal(call: Call) -> None:
    names = ["Content-Disposition: attachment; filename=../../x"]
    await call.html(f"<p>{noise(call.path)}" + (links(*TRAVERSALS) if call.path == "/" else ""), *names)


@serves("w02")
async def warc_injection(call: Call) -> None:
    forged = "X-A: 1\r\nWARC/1.1: x\r\nWARC-Type: response\r\nContent-Length : 0"
    body = "<p>\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n" + links(
        "/%0d%0aWARC-Type:%20response", "/\r\nx"
    )
    await call.html(body + noise(call.path), forged)


@serves("w03")
async def copies(call: Call) -> None:
    await call.html("<p>The one body of all." + links(*(f"/copy{n}" for n in range(60))))


@serves("w07")
async def formulas(call: Call) -> None:
    number = int(call.path.strip("/") or 0)
    title = TITLES[number % len(TITLES)].replace("<", "&lt;")
    await call.html(f"<title>{title}</title><p>{number}" + links(*(f"/{n}" for n in range(len(TITLES)))))


@serves("w08")
async def injections(call: Call) -> None:
    await call.html(f"<title>'; DROP TABLE urls; --</title><p>{noise(call.path)}" + links(*INJECTIONS))
