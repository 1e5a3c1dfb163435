"""Sites that need a login, a cookie, a certificate or a proxy: whole crawls, and no secret is left behind."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.amount import some
from tests.e2e.program import run, summary_of
from tests.servers.guarded_site import PAGES, ROBOTS, GuardedSite, Keys, Seen, guarded_site, make_keys
from tests.servers.proxies import loopback_proxy
from tests.servers.redis import RedisServer

SECRET = "swordfish-31337"
BASIC = base64.b64encode(f"me:{SECRET}".encode()).decode()
NO_DNS = ("--dns", "127.0.0.1:1")  # nobody answers there: names are unknown
QUICK = ("--politeness-ms", "0", "--no-traps", "--json")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def site(keys: Keys) -> Iterator[GuardedSite]:
    """Return a site with TLS that wants user and password for everything."""

    def check(seen: Seen) -> int:
        return 200 if seen.headers.get("authorization") == f"Basic {BASIC}" else 401

    with guarded_site(check, keys.context()) as site:
        yield site


def config(folder: Path, text: str) -> tuple[str, str]:
    path = folder / "given.toml"
    path.write_text(text)
    return "--config", str(path)


def login(keys: Keys, host: str = "localhost") -> str:
    more = f'auth = "basic"\nuser = "me"\npassword-env = "SITE_PASSWORD"\nca-file = "{keys.ca}"\n'
    return f'[[request]]\nhost = "{host}"\n{more}'


def traces(folder: Path, *secrets: str) -> list[str]:
    """Return the files of a crawl in which a secret occurs, compressed or not."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            data += gzip.decompress(data) if path.suffix == ".gz" else b""
            found += [f"{path.name}: {secret}" for secret in secrets if secret.encode() in data]
    return found


def requests_in(folder: Path) -> bytes:
    return b"".join(gzip.decompress(path.read_bytes()) for path in (folder / "archive").glob("*.warc.gz"))


@pytest.mark.parametrize("workers", some(["2", "1"], 1))
def test_a_login_opens_a_site_and_its_robots_txt(tmp_path: Path, keys: Keys, site: GuardedSite, workers: str) -> None:
    out = tmp_path / "out"
    options = ("-o", str(out), *QUICK, "--workers", workers, *config(tmp_path, login(keys)))
    done = run("crawl", site.url("localhost"), *options, environment={"SITE_PASSWORD": SECRET})
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["pages"] == PAGES + 2
    assert site.header("/robots.txt", "authorization") == [f"Basic {BASIC}"]
    assert traces(out, SECRET, BASIC) == []
    assert SECRET not in done.stdout + done.stderr
    assert b"\r\nAuthorization: ***\r\n" in requests_in(out)
    assert 'password-env = "SITE_PASSWORD"' in (out / "crawl.toml").read_text()


def modes(folder: Path) -> set[str]:
    return {oct(path.stat().st_mode & 0o777) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_is_behind_a_login_is_for_its_operator_only(
    tmp_path: Path, keys: Keys, site: GuardedSite, workers: str
) -> None:
    out = tmp_path / "c"
    first = run("crawl", site.url("localhost"), "--out", str(out), *QUICK, "--insecure", "localhost")
    assert first.returncode == 1, "a page needs the login"
    assert out.stat().st_mode & 0o077, "others may read a crawl without a login"
    given = config(tmp_path, login(keys))
    again = run("resume", str(out), *given, "--json", "--workers", workers, environment={"SITE_PASSWORD": SECRET})
    assert again.returncode == 1, "its URLs have failed for good, and 'retry' queues them"
    assert modes(out) == {"0o600"}
    assert {oct(path.stat().st_mode & 0o777) for path in (out, *out.rglob("*")) if path.is_dir()} == {"0o700"}


def test_each_run_reads_the_secret_for_itself(tmp_path: Path, keys: Keys, site: GuardedSite) -> None:
    out = tmp_path / "out"
    (tmp_path / "word").write_text(SECRET + "\n")
    text = login(keys).replace('password-env = "SITE_PASSWORD"', 'password-file = "word"')
    arguments = ("crawl", site.url("localhost"), "-o", str(out), *QUICK, "-n", "1", *config(tmp_path, text))
    assert run(*arguments, cwd=tmp_path).returncode == 0
    assert run("resume", str(out), "-n", "99", "--json").returncode == 0  # from elsewhere: the path is stored
    (tmp_path / "word").unlink()
    done = run("resume", str(out), "-n", "100")
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "[[request]] host = 'localhost'" in line
    assert "cannot read the secret" in line


def test_without_the_login_nothing_is_fetched_and_the_cause_is_said(
    tmp_path: Path, keys: Keys, site: GuardedSite
) -> None:
    done = run("crawl", site.url("localhost"), "-o", str(tmp_path / "out"), *QUICK, "--ca-file", keys.ca)
    assert done.returncode == 1
    assert "401" in done.stderr


def test_a_redirect_to_another_host_carries_nothing(tmp_path: Path, keys: Keys, site: GuardedSite) -> None:
    with guarded_site(tls=keys.context()) as other:
        site.redirect = other.url("127.0.0.1", "/caught")
        options = (*QUICK, "--scope", "any", "--allow-network", "127.0.0.0/8", "--ca-file", keys.ca)
        more = config(tmp_path, login(keys).replace("auth =", "cookies = true\nauth ="))
        out = ("-o", str(tmp_path / "out"))
        seed = site.url("localhost", "/away")
        assert run("crawl", seed, *out, *options, *more, environment={"SITE_PASSWORD": SECRET}).returncode == 0
    assert other.header("/caught", "authorization") == [None]
    assert not [seen for seen in other.seen if SECRET in str(seen.headers) or BASIC in str(seen.headers)]


def test_a_session_by_cookie(tmp_path: Path) -> None:
    def check(seen: Seen) -> int:
        is_inside = seen.path in ("/enter", "/robots.txt") or SECRET in seen.headers.get("cookie", "")
        return 200 if is_inside else 403

    with guarded_site(check) as site:
        site.cookies = [f"session={SECRET}; Path=/; HttpOnly"]
        out = tmp_path / "out"
        text = '[[request]]\nhost = "127.0.0.1"\ncookies = true\n'
        done = run("crawl", site.url(path="/enter"), "-o", str(out), *QUICK, *config(tmp_path, text))
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["pages"] == PAGES + 1
    assert traces(out, SECRET) == []
    assert b"\r\nCookie: ***\r\n" in requests_in(out)


def test_an_insecure_host_is_named_in_warning_event_and_summary(tmp_path: Path, keys: Keys) -> None:
    with guarded_site(tls=keys.context("own")) as site:
        out = tmp_path / "out"
        options = ("-o", str(out), "--politeness-ms", "0", "--insecure", "localhost")
        done = run("crawl", site.url("localhost"), *options, "-n", "2")
        assert done.returncode == 0, done.stderr
        assert "the certificates of 1 host were not checked (--insecure)" in done.stdout
        assert "warning: certificates of localhost are not checked (--insecure)" in done.stderr
        events = [json.loads(line) for path in (out / "events").glob("*.jsonl") for line in path.open()]
        assert [event["rule"] for event in events if event["event"] == "warning"] == ["insecure"]
        again = run("resume", str(out), "-n", "4", "--json")
        assert summary_of(again.stdout)["unchecked_hosts"] == 1
        (said,) = [line for line in run("doctor").stdout.splitlines() if "authorities" in line]
        assert "the system's" in said or "certifi's" in said
        other = run("crawl", site.url("127.0.0.1"), "-o", str(tmp_path / "b"), "--insecure", "localhost", *QUICK)
    assert other.returncode == 1
    assert "--insecure HOST" in other.stderr


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_a_crawl_through_a_proxy_of_names_that_only_the_proxy_knows(tmp_path: Path, scheme: str) -> None:
    with guarded_site() as site, loopback_proxy(scheme, f"me:{SECRET}") as proxy:
        out = tmp_path / "out"
        options = ("-o", str(out), *QUICK, *NO_DNS, "--proxy", f"{scheme}://me@{proxy.address}")
        done = run("crawl", site.url("site.test"), *options, environment={"GOSSAMER_PROXY_PASSWORD": SECRET})
        assert done.returncode == 0, done.stderr
        assert summary_of(done.stdout)["pages"] == PAGES + 2
        assert traces(out, SECRET, BASIC) == []
        assert b"WARC-IP-Address" not in requests_in(out)
        assert set(proxy.targets) == {f"site.test:{site.port}"}
        assert run("audit", str(out)).returncode == 0


def test_private_names_stay_private_behind_a_proxy() -> None:
    with loopback_proxy() as proxy:
        for url in ("http://wiki.internal/", "http://intranet./"):
            done = run("fetch", url, *NO_DNS, "--proxy", proxy.url, "--contact", "me@example.org")
            assert (done.returncode, "blocked_address" in done.stdout) == (1, True), done.stdout
    assert proxy.targets == []


def test_the_proxy_of_the_environment_is_used_and_named(tmp_path: Path) -> None:
    with guarded_site() as site, loopback_proxy() as proxy:
        environment = {"http_proxy": proxy.url, "no_proxy": "other.test"}
        arguments = ("-o", str(tmp_path / "out"), *QUICK, *NO_DNS, "-n", "1")
        done = run("crawl", site.url("site.test"), *arguments, environment=environment)
        assert done.returncode == 0, done.stderr
        assert f"requests go through {proxy.url}" in done.stderr
        before = len(proxy.targets)
        assert before >= 2
        assert run("fetch", site.url(), environment=environment).returncode == 0, "loopback is contacted directly"
        assert run("fetch", site.url("other.test"), *NO_DNS, environment=environment).returncode == 1
        assert run("fetch", site.url("site.test"), *NO_DNS, "--proxy", "none", environment=environment).returncode == 1
        assert len(proxy.targets) == before
        assert f"http through {proxy.url}" in run("doctor", environment=environment).stdout
    done = run("fetch", "http://127.0.0.1:1/", environment={"https_proxy": f"quic://me:{SECRET}@10.0.0.1:1"})
    assert done.returncode == 2
    assert "https_proxy" in done.stderr
    assert SECRET not in done.stderr


def test_nodes_read_secrets_for_themselves(tmp_path: Path, keys: Keys, site: GuardedSite, server: RedisServer) -> None:
    ledger, given = f"{server.url}/inside", config(tmp_path, login(keys))
    arguments = ("crawl", site.url("localhost"), "--ledger", ledger, "-o", str(tmp_path / "a"), *QUICK, *given)
    without = run(*arguments)
    assert (without.returncode, "SITE_PASSWORD is not set" in without.stderr) == (2, True)
    assert server.client().keys("*") == [], "nothing was started"
    done = run(*arguments, environment={"SITE_PASSWORD": SECRET})
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["pages"] == PAGES + 2
    stored = b"".join(server.client().dump(key) or b"" for key in server.client().keys("*"))
    assert SECRET.encode() not in stored
    assert traces(tmp_path / "a", SECRET, BASIC) == []
    other = run("join", ledger, "-o", str(tmp_path / "b"), "--wait", "1")
    assert (other.returncode, "SITE_PASSWORD is not set" in other.stderr) == (2, True)


def test_credentials_in_a_url_are_refused_with_a_way_out(keys: Keys, site: GuardedSite) -> None:
    url = site.url("localhost").replace("//", f"//me:{SECRET}@")
    for verb in ("fetch", "robots"):
        done = run(verb, url, "--ca-file", keys.ca)
        assert done.returncode == (1 if verb == "fetch" else 0)
        assert 'auth = "basic"' in done.stderr
        assert SECRET not in done.stdout + done.stderr


def test_fetch_robots_and_url_read_settings_as_a_crawl_does(tmp_path: Path, keys: Keys, site: GuardedSite) -> None:
    text = f'user-agent = "Inhouse/2.0"\nexclude-pattern = ["/p1"]\nscope = "host"\n{login(keys)}'
    given, environment = config(tmp_path, text), {"SITE_PASSWORD": SECRET}
    done = run("fetch", site.url("localhost"), *given, environment=environment)
    assert done.returncode == 0, done.stderr
    assert "> Authorization: ***" in done.stdout
    assert SECRET not in done.stdout
    assert site.seen[-1].headers["user-agent"] == "Inhouse/2.0"
    by_variable = run("fetch", site.url("localhost"), environment={"GOSSAMER_CONFIG": given[1], **environment})
    assert by_variable.stdout.splitlines()[0] == done.stdout.splitlines()[0]
    over = run("fetch", site.url("localhost"), *given, environment={"GOSSAMER_USER_AGENT": "Env/1.0", **environment})
    assert over.returncode == 0
    assert site.seen[-1].headers["user-agent"] == "Env/1.0"
    robots = run("robots", site.url("localhost", "/secret-area/x"), *given, environment=environment)
    assert robots.returncode == 1
    assert ROBOTS.splitlines()[1] in robots.stdout
    url = run("url", "https://localhost/p1", *given)
    assert "out: exclude" in url.stdout
    assert "scope      in" in run("url", "https://localhost/p1").stdout
    unknown = run("fetch", site.url("localhost"), environment={"GOSSAMER_TIMEOUTS": "3"})
    assert (unknown.returncode, "did you mean 'timeout'" in unknown.stderr) == (2, True)
