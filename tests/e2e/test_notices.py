"""Change notices by a real HTTP client: to the endpoint of a crawl that runs, of one that does not, and by a file."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.program import run, start
from tests.servers.plain_site import Answer, PlainSite, plain_site
from tests.servers.redis import RedisServer

KEY = "0123456789abcdef-key"
OTHER_KEY = "fedcba9876543210"


def wait_for(is_so: Callable[[], object], longest_s: float = 60.0) -> None:
    until = time.monotonic() + longest_s
    while not is_so():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


class Endpoint:
    """`gossamer notices` in a process of its own."""

    def __init__(self, crawl: str) -> None:
        self.process = start("notices", crawl, "--listen", "127.0.0.1:0")
        self.lines: list[str] = []
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        assert first.startswith("change notices  http://127.0.0.1:"), first + self.process.communicate()[1]
        self.address = first.split("http://")[1].partition("/")[0]
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def has_line(self, *parts: str) -> bool:
        return any(all(part in line for part in parts) for line in self.lines)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str, dict[str, str]]:
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()

    def post(self, **fields: object) -> tuple[int, str]:
        body = json.dumps(fields).encode()
        return self.ask("POST", "/indexnow", body, **{"Content-Type": "application/json; charset=utf-8"})[:2]

    def end(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        self._reader.join(60)
        assert self.process.wait(60) == 0
        assert self.process.stderr is not None
        assert self.process.stderr.read() == ""
        return self.lines[-1]


@contextmanager
def endpoint(crawl: str) -> Iterator[Endpoint]:
    found = Endpoint(crawl)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.wait()


@pytest.fixture
def site() -> Iterator[PlainSite]:
    with plain_site() as site:
        site.answers |= {
            "/": Answer("<p>The home of all pages here.<a href=/a>a</a> <a href=/closed/b>b</a>"),
            "/a": Answer("<p>A page that is said to change now and then."),
            "/robots.txt": Answer("User-agent: *\nDisallow: /closed/\n"),
            f"/{KEY}.txt": Answer(f"{KEY}\n", content_type="text/plain"),
            f"/folder/{KEY}.txt": Answer(KEY, content_type="text/plain"),
            "/folder/page": Answer("<p>Nobody links to this page, it is only reported."),
        }
        yield site


@pytest.fixture
def running(site: PlainSite, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    out = str(tmp_path / "c")
    process = start("crawl", site.url, "--out", out, "--politeness-ms", "0", "--revisit", "--revisit-min", "1")
    try:
        wait_for(lambda: "/a" in site.requests)
        wait_for((tmp_path / "c" / "state" / "control").exists)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def host_of(site: PlainSite) -> str:
    return site.url.removeprefix("http://").rstrip("/")


@pytest.mark.usefixtures("running")
def test_pages_that_are_reported_are_fetched_again_and_new_ones_too(site: PlainSite, tmp_path: Path) -> None:
    host, urls = host_of(site), [site.url + path for path in ("a", "folder/page", "closed/x")]
    with endpoint(str(tmp_path / "c")) as notices:
        status, text = notices.post(host=host, key=KEY, urlList=urls)
        assert (status, text) == (202, "accepted; the key file is still to be fetched\n")
        wait_for(lambda: f"/{KEY}.txt" in site.requests)
        wait_for(lambda: "/folder/page" in site.requests)
        wait_for(lambda: site.requests.count("/a") == 2)
        assert site.requests.count(f"/{KEY}.txt") == 1
        assert "/closed/x" not in site.requests, "robots.txt forbids it"
        wait_for(lambda: "3 URLs reported as changed: 1 due, 2 new" in notices.lines)
        # The key is known now.
        site.answers["/late"] = Answer("<p>Late.")
        query = f"/indexnow?url={site.url}late&key={KEY}"
        assert notices.ask("GET", query)[:2] == (200, "the URLs were reported to the crawl\n")
        wait_for(lambda: "/late" in site.requests)
        status, _ = notices.post(host=host, key=KEY, urlList=["http://127.0.0.1:1/elsewhere"])
        assert status == 422
        assert notices.end() == "ended: 5 URLs reported to the crawl"
    done = run("audit", str(tmp_path / "c"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a notice" in run("why", str(tmp_path / "c"), site.url + "folder/page").stdout


@pytest.mark.usefixtures("running")
def test_a_key_file_elsewhere_is_for_its_folder(site: PlainSite, tmp_path: Path) -> None:
    location = f"{site.url}folder/{KEY}.txt"
    with endpoint(str(tmp_path / "c")) as notices:
        fields = {"host": host_of(site), "key": KEY, "keyLocation": location}
        assert notices.post(**fields, urlList=[site.url + "a"])[0] == 422
        assert notices.post(**fields, urlList=[site.url + "folder/page"])[0] == 202
        wait_for(lambda: "/folder/page" in site.requests)
        assert notices.post(**fields, urlList=[site.url + "folder/page"])[0] == 200


@pytest.mark.usefixtures("running")
def test_a_key_that_the_host_does_not_have_is_refused(site: PlainSite, tmp_path: Path) -> None:
    site.answers["/wrong.txt"] = Answer("somebody else's key", content_type="text/plain")
    fields = {"host": host_of(site), "urlList": [site.url + "a"]}
    locations = {OTHER_KEY: "", KEY: site.url + "wrong.txt", "forbidden-key": site.url + "closed/../closed/k.txt"}
    with endpoint(str(tmp_path / "c")) as notices:
        del fields["urlList"]
        for key, location in locations.items():
            url = site.url + ("closed/b" if "forbidden" in key else "a")
            assert notices.post(**fields, key=key, keyLocation=location, urlList=[url])[0] == 202
        reasons = ("status 404", "it does not contain this key alone", "robots.txt forbids it")
        for reason in reasons:
            wait_for(partial(notices.has_line, "1 URL dropped", reason))
        status, text = notices.post(**fields, key=OTHER_KEY, urlList=[site.url + "a"])
        assert status == 403
        assert f"/{OTHER_KEY}.txt: client_error, status 404" in json.loads(text)["error"]
        assert notices.end() == "ended: 3 URLs reported to the crawl", "the three key files"


@pytest.mark.usefixtures("running")
def test_hosts_outside_of_the_crawl_are_refused(site: PlainSite, tmp_path: Path) -> None:
    other = "http://other.test/"
    with endpoint(str(tmp_path / "c")) as notices:
        assert notices.post(host="other.test", key=KEY, urlList=[other])[0] == 202
        wait_for(partial(notices.has_line, "other.test: 1 URL dropped", "the crawl's rules do not allow it"))
        status, text = notices.post(host="other.test", key=KEY, urlList=[other])
        assert status == 403
        assert f"{other}{KEY}.txt: the crawl's rules do not allow it" in text
        notices.end()


def test_private_addresses_are_refused_as_for_pages(site: PlainSite, tmp_path: Path) -> None:
    out = str(tmp_path / "c")
    crawl = start("crawl", site.url, "--out", out, "--politeness-ms", "0", "--revisit", "--scope", "any")
    try:
        wait_for(lambda: "/a" in site.requests)
        wait_for((tmp_path / "c" / "state" / "control").exists)
        with endpoint(out) as notices:
            host = host_of(site).replace("127.0.0.1", "127.0.0.9")  # only the seed's own address is allowed
            assert notices.post(host=host, key=KEY, urlList=[f"http://{host}/a"])[0] == 202
            wait_for(partial(notices.has_line, f"{host}: 1 URL dropped", "blocked_address"))
            notices.end()
    finally:
        crawl.send_signal(signal.SIGTERM)
        crawl.communicate(timeout=60)
    assert f"/{KEY}.txt" not in site.requests


@pytest.mark.usefixtures("running")
def test_notices_that_are_not_well_formed_get_the_answers_of_the_protocol(site: PlainSite, tmp_path: Path) -> None:
    host, json_type = host_of(site), {"Content-Type": "application/json"}
    with endpoint(str(tmp_path / "c")) as notices:
        good = {"host": host, "key": KEY, "urlList": [site.url + "a"]}
        bad: list[tuple[dict[str, object], int, str]] = [
            ({**good, "urlList": []}, 400, "urlList has 0 URLs; expected 1 to 10000"),
            ({**good, "urlList": [site.url] * 10_001}, 400, "urlList has 10001 URLs; expected 1 to 10000"),
            ({**good, "urlList": ["nonsense"]}, 400, "nonsense is not a URL"),
            ({**good, "urlList": site.url}, 400, "Expected `array`, got `str` - at `$.urlList`"),
            ({**good, "host": "a/b"}, 400, "host is not the name of a host"),
            ({**good, "key": "short"}, 422, "expected 8 to 128 letters, digits and dashes"),
            ({**good, "key": "with blanks in it"}, 422, "expected 8 to 128 letters, digits and dashes"),
            ({**good, "host": "other.test"}, 422, "is not of the host other.test"),
            ({**good, "keyLocation": "http://other.test/k.txt"}, 422, "keyLocation is not of the host"),
            ({"host": host, "key": KEY}, 400, "missing required field `urlList`"),
        ]
        for fields, expected, reason in bad:
            status, text = notices.post(**fields)
            assert (status, reason in json.loads(text)["error"]) == (expected, True), text
        asked = [
            ("GET", "/indexnow", None, {}, 400),
            ("GET", f"/indexnow?url={site.url}a", None, {}, 400),
            ("GET", f"/indexnow?url={site.url}a&url={site.url}b&key={KEY}", None, {}, 400),
            ("GET", f"/indexnow?url=ftp://a.test/&key={KEY}", None, {}, 400),
            ("GET", "/", None, {}, 404),
            ("PUT", "/indexnow", b"{}", {}, 405),
            ("POST", "/indexnow", b"{", json_type, 400),
            ("POST", "/indexnow", b"\xff", json_type, 400),
            ("POST", "/indexnow", b"[" * 100_000, json_type, 400),
            ("POST", "/indexnow", b"url=x", {"Content-Type": "text/plain"}, 400),
            ("POST", "/indexnow", b" " * ((4 << 20) + 1), json_type, 413),
        ]
        for method, path, body, headers, expected in asked:
            assert notices.ask(method, path, body, **headers)[0] == expected, (method, path)
        notices.end()
        assert "refused: 14 with 400, 4 with 422" in notices.lines
    assert f"/{KEY}.txt" not in site.requests


@pytest.mark.usefixtures("running")
def test_ten_thousand_urls_are_one_post_and_more_than_that_in_an_hour_too_many(site: PlainSite, tmp_path: Path) -> None:
    host = host_of(site)
    with endpoint(str(tmp_path / "c")) as notices:
        urls = [f"{site.url}number/{number}" for number in range(10_000)]
        assert notices.post(host=host, key=KEY, urlList=urls[:1])[0] == 202
        wait_for(lambda: "/number/0" in site.requests)
        assert notices.post(host=host, key=KEY, urlList=urls)[0] == 200
        wait_for(lambda: any(line.startswith("10,000 URLs reported as changed: ") for line in notices.lines))
        assert notices.post(host=host, key=KEY, urlList=urls[:9_999])[0] == 200
        body = json.dumps({"host": host, "key": KEY, "urlList": urls[:1]}).encode()
        status, text, headers = notices.ask("POST", "/indexnow", body, **{"Content-Type": "application/json"})
        assert status == 429
        assert "more than 20000 URLs" in text
        assert 3000 < int(headers["retry-after"]) <= 3600


def test_what_is_reported_while_the_crawl_does_not_run_is_for_its_next_run(site: PlainSite, tmp_path: Path) -> None:
    out = str(tmp_path / "c")
    site.answers["/"] = Answer(f"<p>Home.<a href=/a>a</a><a href=/{KEY}.txt>key</a>")
    assert run("crawl", site.url, "--out", out, "--politeness-ms", "0").returncode == 0
    with endpoint(out) as notices:
        status, _ = notices.post(host=host_of(site), key=KEY, urlList=[site.url + "folder/page"])
        assert status == 200, "the crawl had fetched the key file before"
        notices.end()
        assert "1 URL is reported as changed; the crawl does not run: this is for its next run" in notices.lines
    changed = tmp_path / "changed.txt"
    changed.write_text(f"# from a list\n{site.url}late\n\n{site.url}a\n")
    site.answers["/late"] = Answer("<p>Late.")
    done = run("add", out, "--changed", str(changed))
    assert done.stdout == "2 URLs are reported as changed; the crawl does not run: this is for its next run\n"
    assert run("resume", out).returncode == 0
    assert site.requests.count("/folder/page") == site.requests.count("/late") == 1
    assert site.requests.count("/a") == 1, "without --revisit nothing is fetched again"


def test_notices_reach_a_crawl_on_a_ledger(site: PlainSite, server: RedisServer, tmp_path: Path) -> None:
    url, host = f"{server.url}/noticed", host_of(site)
    pace = ("--politeness-ms", "0", "--revisit", "--revisit-min", "1", "--contact", "t@example.org")
    node = start("crawl", site.url, "--ledger", url, "--node", "a", "-o", str(tmp_path / "a"), "--no-progress", *pace)
    try:
        wait_for(lambda: "/a" in site.requests)
        with endpoint(url) as notices:
            urls = [site.url + "a", site.url + "folder/page"]
            assert notices.post(host=host, key=KEY, urlList=urls)[0] == 202
            wait_for(lambda: "/folder/page" in site.requests)
            assert site.requests.count(f"/{KEY}.txt") == 1  # later it may be visited again, as any page
            wait_for(lambda: site.requests.count("/a") == 2)
            assert notices.post(host=host, key=KEY, urlList=urls)[0] == 200
            wait_for(partial(notices.has_line, "2 URLs are reported as changed, on the way to the nodes"))
            assert notices.end() == "ended: 5 URLs reported to the crawl"
    finally:
        node.send_signal(signal.SIGTERM)
        node.communicate(timeout=60)


def test_what_waits_for_a_key_is_not_dropped_in_silence(site: PlainSite, tmp_path: Path) -> None:
    out = str(tmp_path / "c")
    assert run("crawl", site.url, "--out", out, "--politeness-ms", "0").returncode == 0
    with endpoint(out) as notices:
        fields = {"host": host_of(site), "key": KEY}
        assert notices.post(**fields, urlList=[site.url + "a"])[0] == 202
        assert notices.post(**fields, urlList=[site.url + "a", site.url + "b"])[0] == 202
        wait_for(partial(notices.has_line, "1 URL is reported as changed; the crawl does not run"))
        assert notices.end() == "ended: 1 URL reported to the crawl; 2 URLs dropped that waited for a key"
    assert run("resume", out).returncode == 0
    assert f"/{KEY}.txt" in site.requests, "the next notice with this key need not wait"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"https://a.test/\nnonsense\n", "line 2: nonsense: not a URL; expected https://example.org/page"),
        (b"# nothing\n", "there is no URL in it; expected one per line"),
        (b"\xff\xfe", "cannot be read: not UTF-8; expected a text file with a URL per line"),
        (None, "cannot be read: No such file or directory; expected a text file with a URL per line"),
    ],
)
def test_a_file_that_is_no_list_of_urls_is_refused(tmp_path: Path, text: bytes | None, message: str) -> None:
    path = tmp_path / "changed.txt"
    if text is not None:
        path.write_bytes(text)
    done = run("add", str(tmp_path), "--changed", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_seeds_and_changes_are_not_mixed(tmp_path: Path) -> None:
    for words in ((), ("https://a.test/", "--changed", "x")):
        done = run("add", str(tmp_path), *words)
        assert done.stderr == "gossamer add: expected seeds, or --changed FILE, and not both\n"
        assert done.returncode == 2


def test_an_address_where_nothing_can_listen_is_refused(site: PlainSite, tmp_path: Path) -> None:
    out = str(tmp_path / "c")
    assert run("crawl", site.url, "--out", out, "--politeness-ms", "0").returncode == 0
    for address, message in (
        ("nonsense", "not an address; expected HOST:PORT"),
        (host_of(site), "cannot listen there"),
    ):
        done = run("notices", out, "--listen", address)
        assert done.returncode == 2
        assert message in done.stderr
    done = run("notices", str(tmp_path / "none"))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("running")
def test_wrong_keys_do_not_use_up_what_a_host_may_report(site: PlainSite, tmp_path: Path) -> None:
    host = host_of(site)
    report = {"host": host, "key": KEY, "urlList": [f"http://{host}/a"]}
    with endpoint(str(tmp_path / "c")) as notices:
        assert notices.post(**report)[0] == 202
        wait_for(lambda: "1 URL reported as changed: 1 due" in notices.lines)
    with endpoint(str(tmp_path / "c")) as notices:
        statuses = {notices.post(**report | {"key": f"wrong-key-{number}"})[0] for number in range(70)}
        assert statuses == {202, 429}, "the sender has used up its allowance"
        assert notices.post(**report)[0] == 200
