"""A crawl folder of the ledger's format before, in which somebody has made names with the ids of others.

The pairs are second preimages by the hash that ids had then (`benchmarks/forge.py`). In the first run only the forged
names are found, and fetched: by an earlier version, what came later with their ids was never requested.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gossamer.core.ledger import rows
from gossamer.core.url.identity import Identity
from gossamer.model.state import IdentityRecord
from tests.backends.test_upgraded_ledger import tables_of
from tests.e2e.program import kill_at_each, run
from tests.engine.test_forged_ids import FORGED_HOST, FORGED_PAGE, PAGE, VICTIM
from tests.migration.crawls import changed
from tests.servers.proxies import loopback_proxy

FORGED = [f"http://{FORGED_HOST}/", FORGED_PAGE]
VICTIMS = [f"http://{VICTIM}/", PAGE]
LATER = "http://attacker.test/later"
LINKS = {"http://attacker.test/": FORGED, LATER: VICTIMS}
SLOW_S = 20.0
DEATHS = ["before_commit:kill:1", "in_commit:kill:1", "after_commit:kill:1"]


class Site:
    """Any host: each page has its own URL as title. `/slow` is answered when it is `released`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.links: dict[str, list[str]] = dict(LINKS)
        self.released = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = f"http://{self.headers['Host']}{self.path}"
                status = 404 if self.path == "/robots.txt" else 200
                if status == 200:
                    site.asked.append(url)
                if self.path == "/slow":
                    site.released.wait(SLOW_S)
                links = "".join(f'<a href="{link}">{link}</a>' for link in site.links.get(url, ()))
                body = f"<title>{url}</title><p>This is {url}</p>{links}".encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with suppress(OSError):  # whoever asked was killed
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@contextmanager
def any_host() -> Iterator[tuple[Site, str]]:
    """Serve every name at port 80, behind a proxy; return what is served and the proxy."""
    site = Site()
    thread = threading.Thread(target=site.server.serve_forever, args=(0.05,))
    thread.start()
    try:
        with loopback_proxy("socks5h") as proxy:
            proxy.ports[80] = site.server.server_port
            yield site, proxy.url
    finally:
        site.released.set()
        site.server.shutdown()
        thread.join()
        site.server.server_close()


@pytest.fixture
def old(tmp_path: Path) -> Iterator[tuple[Site, Path]]:
    """A folder of format 2 that knows the forged names only."""
    out = tmp_path / "c"
    with any_host() as (site, proxy):
        options = ("--proxy", proxy, "--scope", "any", "--politeness-ms", "0", "--connections", "1", "--no-progress")
        done = run("crawl", "http://attacker.test/", "--out", str(out), *options)
        assert done.returncode == 0, done.stderr
        assert sorted(site.asked) == sorted(["http://attacker.test/", *FORGED])
        with changed(out) as ledger:  # ids of a crawl with one connection have no key, as those of format 2
            ledger._store.put("meta", rows.FORMAT_KEY, rows.FORMAT_BEFORE)
            ledger._store.put("meta", rows.IDENTITY_KEY, None)
            ledger._store.write_now()
        site.asked.clear()
        yield site, out


def check(site: Site, out: Path) -> None:
    """Check that the victims were fetched once, and that each name of a pair has its own history."""
    assert sorted(site.asked) == sorted([LATER, *VICTIMS])
    for url in [*FORGED, *VICTIMS]:
        why = run("why", str(out), url)
        assert why.returncode == 0, why.stderr
        rows_of = dict(line.split(None, 1) for line in why.stdout.splitlines() if line and line[0] != " ")
        assert (rows_of["url"], rows_of["title"]) == (url, url)
        assert rows_of["state"].startswith("done, ok 200")
    for verb in ("verify", "audit"):
        done = run(verb, str(out))
        assert done.returncode == 0, done.stdout + done.stderr
    listed = run("pages", str(out)).stdout
    assert all(url in listed for url in [*FORGED, *VICTIMS])


def test_the_folder_is_one_in_which_ids_are_forged(old: tuple[Site, Path]) -> None:
    _, out = old
    before = Identity(IdentityRecord(is_unkeyed=True))
    tables = tables_of(out / "state")
    assert tables["meta"][rows.FORMAT_KEY] == b"2"
    assert rows.IDENTITY_KEY not in tables["meta"]
    assert before.host_id(VICTIM) == before.host_id(FORGED_HOST)
    assert before.host_id(VICTIM) in tables["hosts"]
    assert before.url_candidate(before.host_id("shared.test"), PAGE, 0) in tables["urls"]


def test_both_names_of_a_forged_pair_are_fetched_after_the_upgrade(old: tuple[Site, Path]) -> None:
    site, out = old
    assert run("verify", str(out)).returncode == 0, "as it is"
    added = run("add", str(out), LATER)
    assert added.returncode == 0, added.stderr
    assert rows.IDENTITY_KEY in tables_of(out / "state")["meta"]
    done = run("resume", str(out), "--no-progress")
    assert done.returncode == 0, done.stderr
    check(site, out)


def test_an_upgrade_that_is_killed_loses_no_name_of_a_forged_pair(old: tuple[Site, Path]) -> None:
    site, out = old
    kill_at_each(["add", str(out), LATER], DEATHS[:2])
    assert rows.IDENTITY_KEY not in tables_of(out / "state")["meta"]
    added = run("add", str(out), LATER)
    assert added.returncode == 0, added.stderr
    kill_at_each(["resume", str(out), "--no-progress"], DEATHS)
    done = run("resume", str(out), "--no-progress")
    assert done.returncode == 0, done.stderr
    site.asked[:] = sorted(set(site.asked))  # what was on the wire is asked for again
    check(site, out)
