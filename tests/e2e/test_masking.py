"""With `--mask-queries` the value of a query parameter appears in nothing that is shown, wherever a URL came from."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.program import run

SECRET = "hush4711"
TOKEN = f"?token={SECRET}"
BARE = f"?{SECRET}"
VERBS = (
    ("status",),
    ("status", "--json"),
    ("report",),
    ("hosts",),
    ("missing",),
    ("missing", "--json"),
    ("missing", "--csv", "-o", "OUT.missing.csv"),
    ("missing", "--referrers"),
    ("retry", "--list"),
    ("retry", "--list", "--json"),
    ("pages",),
    ("pages", "--json", "-o", "OUT.pages.jsonl"),
    ("links",),
    ("links", "--broken"),
    ("links", "--json"),
    ("traps",),
    ("why", "/missing"),
    ("search", "page"),
    ("export", "--format", "csv", "-o", "OUT.csv"),
    ("export", "--format", "jsonl", "-o", "OUT.jsonl"),
    ("export", "--format", "links", "-o", "OUT.links.jsonl"),
    ("export", "-o", "-"),
)
HOME = f"""<title>home</title><link rel="canonical" href="/canonical{TOKEN}">
<link rel="next" href="/next{TOKEN}"><a href="/moved{TOKEN}">a</a> <a href="/missing{TOKEN}">b</a>
<a href="/moved-to-nowhere{TOKEN}">c</a> <a href="/loop{TOKEN}">d</a> <a href="/broken{TOKEN}">e</a>
<a href="/private{TOKEN}">f</a> <a href="/copy1{TOKEN}">g</a> <a href="/copy2{TOKEN}">h</a> <a href="/bare{BARE}">i</a>
<a href="http://elsewhere.test/{TOKEN}">j</a> <a href="/picture.jpg{TOKEN}">k</a> <a href="/hang-up{TOKEN}">l</a>"""


class Site(http.server.BaseHTTPRequestHandler):
    """Has a secret in every place in which a URL can be."""

    def do_GET(self) -> None:
        origin = f"http://{self.headers['Host']}"
        path = self.path.partition("?")[0]
        bodies = {
            "/robots.txt": f"User-agent: *\nDisallow: /private\nSitemap: {origin}/sitemap.xml{TOKEN}\n",
            "/sitemap.xml": f"<urlset><url><loc>{origin}/from-sitemap{TOKEN}</loc></url></urlset>",
            "/": HOME,
            "/copy1": "<p>" + "the very same text of some length " * 20,
            "/copy2": "<p>" + "the very same text of some length " * 20,
        }
        redirects = {
            "/moved": f"/target{TOKEN}",
            "/moved-to-nowhere": f"ftp://elsewhere.test/{TOKEN}",
            "/loop": f"/loop{TOKEN}",
        }
        statuses = {"/missing": 404, "/broken": 500}
        if path == "/hang-up":
            return
        self.send_response(302 if path in redirects else statuses.get(path, 200))
        if path in redirects:
            self.send_header("Location", redirects[path])
        self.send_header("Link", f'<{origin}/linked{TOKEN}>; rel="next"')
        body = bodies.get(path, f"<p>page {path}").encode()
        self.send_header("Content-Type", "text/plain" if path == "/robots.txt" else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    thread.join()
    server.server_close()


def shown(site: str, out: Path, *options: str, failpoint: str = "") -> dict[str, str]:
    """Crawl the site; return everything that is shown about it, by where."""
    limits = ("--politeness-ms", "0", "--retry-wait", "0.1", "--max-wait", "5")
    environment = {"GOSSAMER_FAILPOINT": failpoint}
    done = run("crawl", f"{site}{TOKEN}", site, "-o", str(out), *limits, *options, environment=environment)
    assert done.returncode == 0, done.stderr
    texts = {"stdout": done.stdout, "stderr": done.stderr}
    for verb, *more in VERBS:
        done = run(verb, str(out), *(text.replace("OUT", str(out)) for text in more))
        texts[" ".join((verb, *more))] = done.stdout + done.stderr
    written = [path for path in out.parent.iterdir() if path.is_file() and path.suffix != ".toml"]
    for path in [*(out / "events").iterdir(), out / "report.html", out / "report.json", *written]:
        texts[path.name] = path.read_text("utf-8")
    return texts


@pytest.mark.parametrize("options", [("-d",), ("-vv",), ("--json",)])
def test_no_value_of_a_query_parameter_is_shown(tmp_path: Path, site: str, options: tuple[str, ...]) -> None:
    texts = shown(site, tmp_path / "out", "--mask-queries", *options, failpoint="in_parse:raise:3")
    assert "crash.txt" in texts
    assert {where for where, text in texts.items() if SECRET in text} == set()
    events = next(text for where, text in texts.items() if where.endswith(".jsonl") and where.startswith("20"))
    for place in ("moved", "target", "missing", "sitemap.xml", "from-sitemap", "private", "loop", "broken", "hang-up"):
        assert f"/{place}?token=*" in events, place
    assert "ftp://elsewhere.test/?token=*" in events


def test_without_the_option_values_are_shown(tmp_path: Path, site: str) -> None:
    texts = shown(site, tmp_path / "out", "-vv")
    where = {where.rpartition(".")[2] for where, text in texts.items() if SECRET in text}
    assert {"stderr", "jsonl", "html", "json"} <= where
