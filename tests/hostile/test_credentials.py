"""Credentials of the operator's, and pages of others that would like to use them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.program import run, summary_of
from tests.hostile.crawling import Aftermath
from tests.hostile.serving import Call, Catalogue, HostileServer, Seen

TOKEN = "swordfish-31337"
BEARER = f"authorization: bearer {TOKEN}".encode()
RULE = """
[[request]]
host = "*.intranet.test"
auth = "bearer"
token-env = "TOKEN"
plain-http = true
cookies = true
"""
DELETE, ADMIN, LOGOUT = "/delete?id=7", "/admin/delete?id=7", "/leave"
IMAGE, SHEET = "/logo.png", "/user.css"


def has_token(seen: Seen | Call) -> bool:
    return BEARER in seen.head.lower()


def sites(first_named_by_others: bool = False) -> Catalogue:
    """Return an intranet that wants a token for everything, and a page that names what it would not do itself."""
    catalogue = Catalogue()

    @catalogue.serves("intranet")
    async def intranet(call: Call) -> None:
        if call.path == SHEET:  # that any user may upload
            await call.answer(f"a {{ background: url({DELETE}) }}".encode(), kind="text/css")
        elif call.path.startswith("/away"):
            await call.redirect(call.url(DELETE))
        elif call.path == LOGOUT:
            await call.answer(b"bye", "Set-Cookie: session=gone; Path=/", kind="image/png")
        elif not has_token(call):
            await call.answer(b"no", status="401 Unauthorized")
        elif call.path == "/":
            await call.html(
                f"<title>own</title><img src={IMAGE}><a href=/second>2</a>", "Set-Cookie: session=1; Path=/"
            )
        elif call.path == "/second":
            await call.html("<title>second</title><p>The second page.")
        else:
            await call.answer(b"png", kind="image/png")

    @catalogue.serves("evil")
    async def evil(call: Call) -> None:
        if call.path == "/away":
            await call.redirect(call.url(DELETE, "www.intranet.test"))
        else:
            named = (DELETE, ADMIN, LOGOUT, "/away2", *((IMAGE,) if first_named_by_others else ()))
            images = "".join(f'<img src="{call.url(path, "www.intranet.test")}">' for path in named)
            sheet = f'<link rel=stylesheet href="{call.url(SHEET, "www.intranet.test")}">'
            await call.html(f"<title>evil</title>{sheet}{images}<img src=/away>")

    return catalogue


def crawl(server: HostileServer, folder: Path, *seeds: str, out: str = "out") -> Aftermath:
    config = folder / "given.toml"
    config.write_text(RULE)
    done = run(
        *("crawl", *(f"http://{seed}:{server.port}/" for seed in seeds), "--requisites", "--config", str(config)),
        *("--dns", server.dns_address, "--allow-network", "127.0.0.1/32", "--out", str(folder / out)),
        *("--politeness-ms", "0", "--connections", "1", "--json"),
        environment={"TOKEN": TOKEN},
    )
    assert done.returncode == 0, done.stderr
    return Aftermath(server, folder / out, summary_of(done.stdout), done.stdout)


@pytest.mark.parametrize(
    "seeds", [("evil.test",), ("evil.test", "www.intranet.test"), ("www.intranet.test", "evil.test")]
)
def test_nothing_that_a_page_of_another_domain_needs_is_requested_with_credentials(
    tmp_path: Path, seeds: tuple[str, ...]
) -> None:
    with HostileServer(sites()) as server:
        crawl(server, tmp_path, *seeds).close()
        asked = server.requests("www.intranet")
    by_path = {seen.path: seen for seen in asked}
    assert {DELETE, LOGOUT, SHEET} <= by_path.keys()
    assert not [seen.path for seen in asked if seen.path in (DELETE, LOGOUT, SHEET, "/away2") and has_token(seen)]
    assert ADMIN not in by_path, "default excludes apply"
    assert not [seen for seen in asked if b"session=gone" in seen.head]


def test_a_page_of_the_same_domain_gets_what_it_needs_whoever_named_it_before(tmp_path: Path) -> None:
    with HostileServer(sites(first_named_by_others=True)) as server:
        for number, seeds in enumerate([("evil.test", "www.intranet.test"), ("www.intranet.test", "evil.test")]):
            after = crawl(server, tmp_path, *seeds, out=f"out{number}")
            stored = [each for each in after.archived("www.intranet", IMAGE) if b" 200 OK" in each.block[:20]]
            after.close()
            assert len(stored) == 1
            assert run("verify", str(after.out)).returncode == 0
            assert after.summary["pages"] == 3
            cookies = [seen for seen in server.requests("www.intranet", "/second") if b"session=1" in seen.head]
            assert len(cookies) == number + 1
