"""What hostile servers do on the wire: framing, time, codings (N, Z), and redirects (R)."""

from __future__ import annotations

import gzip

from tests.hostile import bodies
from tests.hostile.serving import Call, Catalogue, with_robots

NETWORK = Catalogue()
serves = NETWORK.serves
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
PLAIN = {  # hosts that send these bytes and close
    "n07": OK + b"Content-Length: 1000\r\n\r\n0123456789",
    "n09a": OK + b"Content-Length: -1\r\n\r\n<p>hello",
    "n09b": OK + b"Content-Length: 99999999999999999999\r\n\r\n<p>hello",
    "n12": OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nZZ\r\n",
    "n13": OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    "n14": b"<html>body only</html>",
    "n15": b"SSH-2.0-OpenSSH_9.6\r\n",
    "n17": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nbytes",
    "n19": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "n21a": b"HTTP/1.1 999 Odd\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi",
    "n21b": b"HTTP/1.1 99 Odd\r\nContent-Length: 2\r\n\r\nhi",
    "n21c": b"HTTP/1.1 2000 Odd\r\nContent-Length: 2\r\n\r\nhi",
    "n21d": b"HTTP/1.1 599 Odd\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi",
}


@serves(*PLAIN)
async def plain(call: Call) -> None:
    await call.raw(PLAIN[call.host.removesuffix(".test")])


@serves("n01")
async def endless_headers(call: Call) -> None:
    await call.flood(OK, b"X-N: " + b"v" * 1000 + b"\r\n")


@serves("n02")
async def one_endless_header(call: Call) -> None:
    await call.flood(OK + b"X: ", b"v" * 10_000)


@serves("n03")
async def endless_chunks(call: Call) -> None:
    await call.flood(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"<p>flood " * 7281 + b"1234567\r\n")


@serves("n04")
async def dripping_body(call: Call) -> None:
    await call.drip(OK + b"\r\n", b"x")


@serves("n05")
async def dripping_head(call: Call) -> None:
    await call.drip(OK, b"X")


@serves("n06")
async def silence(call: Call) -> None:
    await call.hang()


@serves("n08")
async def short_length(call: Call) -> None:
    other = b'<a href="/2">' if call.path == "/" else b"<p>two"
    await call.send(OK + b"Content-Length: %d\r\n\r\n" % len(other) + other + b"x" * 500)


@serves("n10")
async def same_length_twice(call: Call) -> None:
    await call.send(OK + b"Content-Length: 8\r\nContent-Length: 8\r\n\r\n<p>hello")


@serves("n11")
async def both_lengths(call: Call) -> None:
    body = b'<a href="/2">' if call.path == "/" else b"<p>second pa"
    await call.send(OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body))
    await call.send(body + b"\r\n0\r\n\r\n")


@serves("n16")
async def endless_interim(call: Call) -> None:
    await call.flood(b"", b"HTTP/1.1 102 Processing\r\n\r\n")


@serves("n18")
async def body_where_none_may_be(call: Call) -> None:
    if call.path == "/":
        await call.answer(b'<a href="/204">a</a><a href="/after">b</a>')
    elif call.path == "/204":
        await call.send(b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\nsmuggled")
    else:
        await call.answer(b"<p>after")


@serves("n20")
async def controls_in_headers(call: Call) -> None:
    value = {"/": b"fine", "/nul": b"a\0b", "/cr": b"a\rb", "/lf": b"a\nb"}[call.path]
    body = b'<a href="/nul">0</a><a href="/cr">1</a><a href="/lf">2</a><p>' + call.path.encode()
    await call.send(OK + b"X-Odd: " + value + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


@serves("n22")
async def reset_in_the_middle(call: Call) -> None:
    await call.send(OK + b"Content-Length: 100000\r\n\r\n" + b"x" * 1024)
    call.reset()


CODED = {
    "z01": ("gzip", bodies.gzip_bomb()),
    "z01b": ("gzip", bodies.one_stream_bomb()),
    "z02": (", ".join(["gzip"] * 10), bodies.nested_gzip(10)),
    "z03": ("br", bodies.brotli_bomb()),
    "z04": ("zstd", bodies.ZSTD_HUGE_WINDOW),
    "z05": ("gzip", b'<title>plain</title><a href="/found">x</a>'),
    "z06": ("gzip", gzip.compress(b"<title>half</title>" + b"".join(b"%d " % n for n in range(9000)), mtime=0)[:9000]),
    "z07": ("foo", b'<title>coded</title><a href="/hidden">x</a>'),
}


@serves(*CODED)
async def coded(call: Call) -> None:
    coding, body = CODED[call.host.removesuffix(".test")]
    if call.path == "/":
        await call.answer(body, f"Content-Encoding: {coding}")
    else:
        await call.answer(b"<p>found")


LOCATIONS = {
    "r01": "/",
    "r03": "file:///etc/passwd",
    "r04": "http://169.254.169.254/latest/meta-data/",
    "r05a": "http://2130706434/",
    "r05b": "http://0x7f.2/",
    "r05c": "http://[::ffff:127.0.0.2]/",
    "r05d": "http://0/",
    "r05e": "http://0177.0.0.2./",
    "r05f": "http://[::1]/",
    "r05g": "http://[64:ff9b::7f00:2]/",
    "r05h": "http://[2002:7f00:2::]/",
    "r05i": "http://[fe80::1]/",
    "r05j": "http://[fd00::1]/",
    "r05k": "http://100.64.0.1/",
    "r05l": "http://10.0.0.1/",
    "r07a": "javascript:alert(1)",
    "r07b": "data:text/html,<a href=/x>",
    "r08b": "",
    "r10a": "/" + "x" * 1_000_000,
    "r10b": "/" + "x" * 10_000,
}


@serves(*LOCATIONS)
async def redirect(call: Call) -> None:
    await call.redirect(LOCATIONS[call.host.removesuffix(".test")])


@serves("r02")
async def endless_chain(call: Call) -> None:
    await call.redirect(f"/{int(call.path.strip('/') or 0) + 1}")


@serves("r06")
async def split_location(call: Call) -> None:
    if call.path == "/":
        await call.redirect("/a%0d%0aSet-Cookie:%20x=1", status="302 Found\r\nLocation-X: /nowhere\r\nSet-Cookie: y=1")
    else:
        await call.answer(b'<a href="/last">x</a>')


@serves("r08a")
async def no_location(call: Call) -> None:
    await call.answer(b"<p>nothing", status="302 Found")


@serves("r08c")
async def relative_location(call: Call) -> None:
    if call.path == "/":
        await call.redirect("deeper/./page")
    else:
        await call.answer(b"<p>there")


@serves("r09")
async def to_a_host_with_robots(call: Call) -> None:
    await call.redirect(f"http://r09other.test:{call.port}/secret/page")


@serves("r09other")
@with_robots
async def host_with_robots(call: Call) -> None:
    if call.path == "/robots.txt":
        await call.answer(b"User-agent: *\nDisallow: /secret/\n", kind="text/plain")
    else:
        await call.answer(b"<p>secret")


@serves("r11")
async def bytes_in_location(call: Call) -> None:
    if call.path == "/":
        await call.send(b"HTTP/1.1 302 Found\r\nLocation: /caf\xe9\r\nContent-Length: 0\r\n\r\n")
    else:
        await call.answer(b"<p>coffee")


@serves("r12")
async def refresh_loop(call: Call) -> None:
    await call.answer(b'<meta http-equiv=refresh content="0;url=/"><p>again')
