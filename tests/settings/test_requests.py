"""`[[request]]` in a file: what is accepted, what is refused in one line, what is stored."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from gossamer.assembly.access import access_rules_of, check_plain_seeds, environment_proxies, warnings_about
from gossamer.core.url.host_patterns import names_host, narrowest_first, normal_pattern
from gossamer.model.errors import UsageError
from gossamer.settings.load import from_file, merged, settings_for_known, to_toml
from gossamer.settings.model import Settings

SECRET = "swordfish-31337"
PIN = "sha256//" + "A" * 43 + "="
FULL = """
insecure = ["intranet.example.org", "*.lab.example.org"]
proxy = "socks5h://127.0.0.1:9050"

[[request]]
host = "*.example.org"
headers = {"Accept-Language" = "de", "X-Api-Key" = {env = "KEY"}, "X-Second" = {file = "second.txt"}}
cookies = true
auth = "basic"
user = "me"
password-env = "PASSWORD"
plain-http = true
proxy = "http://me@127.0.0.1:3128"
proxy-password-env = "PROXY"
pin = ["PIN"]

[[request]]
host = "api.example.org"
auth = "bearer"
token-file = "token.txt"
proxy = "none"
""".replace("PIN", PIN)


def read(text: str, folder: Path) -> Settings:
    path = folder / "given.toml"
    path.write_text(text)
    return merged((str(path), from_file(path)))


def refusal(text: str, folder: Path, **more: Any) -> str:
    with pytest.raises(UsageError) as found:
        access_rules_of(read(text, folder), more)
    assert "\n" not in str(found.value)
    return str(found.value)


def test_all_keys_survive_in_the_folder_and_no_secret_gets_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token.txt").write_text(f"token-{SECRET}\nmore\n")
    (tmp_path / "second.txt").write_text(f"second-{SECRET}")
    settings = read(FULL, tmp_path)
    rules = access_rules_of(settings, {"KEY": f"key-{SECRET}", "PASSWORD": SECRET, "PROXY": f"proxy-{SECRET}"})
    assert dict(rules.rules[0].secrets)["X-Api-Key"] == f"key-{SECRET}"
    assert dict(rules.rules[0].secrets)["X-Second"] == f"second-{SECRET}"
    assert dict(rules.rules[0].secrets)["Authorization"] == "Basic bWU6c3dvcmRmaXNoLTMxMzM3"
    assert rules.rules[0].headers == (("Accept-Language", "de"),)
    proxy = rules.rules[0].route.proxy
    assert proxy is not None
    assert (proxy.host, proxy.user, proxy.password) == ("127.0.0.1:3128", "me", f"proxy-{SECRET}")
    assert dict(rules.rules[1].secrets)["Authorization"] == f"Bearer token-{SECRET}"
    assert rules.rules[1].is_direct
    stored = to_toml(settings)
    assert SECRET not in stored + repr(rules)
    (tmp_path / "crawl.toml").write_text(stored)
    again = settings_for_known(tmp_path / "crawl.toml", [])
    assert (again.request, again.insecure, again.proxy) == (settings.request, settings.insecure, settings.proxy)
    assert tomllib.loads(stored)["request"][1]["token-file"] == str(tmp_path / "token.txt")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("", "required field `host`"),
        ('host = "a b"', "not a pattern of hosts"),
        ('host = "https://a.org/"', "not a pattern of hosts"),
        ('host = "a.org"\nhedders = {}', "did you mean 'headers'?"),
        (f'host = "a.org"\npassword = "{SECRET}"', "expected password-env or password-file"),
        ('host = "a.org"\nauth = "digest"', "auth: Invalid enum value 'digest'"),
        ('host = "a.org"\nauth = "basic"\npassword-env = "P"', 'needs user = "NAME"'),
        ('host = "a.org"\nauth = "basic"\nuser = "me"', "expected password-env or password-file"),
        ('host = "a.org"\nuser = "me"', 'user is for auth = "basic"'),
        ('host = "a.org"\nauth = "bearer"\ntoken-env = "T"\ntoken-file = "F"', "two places for one secret"),
        ('host = "a.org"\nauth = "bearer"\ntoken-env = "MISSING"', "the environment variable MISSING is not set"),
        ('host = "a.org"\nauth = "bearer"\ntoken-file = "/no/such"', "/no/such: cannot read the secret"),
        ('host = "a.org"\nheaders = {"User-Agent" = "x"}', "expected --user-agent"),
        ('host = "a.org"\nheaders = {"from" = "x"}', "expected --contact"),
        ('host = "a.org"\nheaders = {"Host" = "x"}', "it cannot be set"),
        ('host = "a.org"\nheaders = {"transfer-encoding" = "x"}', "it cannot be set"),
        ('host = "a.org"\nheaders = {"Accept-Encoding" = "x"}', "is set by the crawler itself"),
        ('host = "a.org"\nheaders = {"X-A" = "a\\nb"}', "line break"),
        ('host = "a.org"\nheaders = {"X A" = "a"}', "not the name of a header"),
        ('host = "a.org"\nheaders = {"X-A" = "a", "x-a" = "b"}', "is given twice"),
        (f'host = "a.org"\nheaders = {{"X-Api-Key" = "{SECRET}"}}', "looks like a secret"),
        ('host = "a.org"\nheaders = {"Cookie" = {env = "HOME"}}\ncookies = true', "contradicts cookies"),
        ('host = "a.org"\nheaders = {"X-A" = {env = "A", file = "B"}}', "expected {env = 'NAME'} or {file = 'PATH'}"),
        ('host = "a.org"\npin = ["sha256//short"]', "the base64 form of the SHA-256"),
        ('host = "a.org"\nkey-file = "k"', "expected cert-file as well"),
        ('host = "a.org"\ncert-file = "/no/such"', "cert-file /no/such: cannot read it"),
        ('host = "a.org"\nca-file = "/no/such"', "cannot read it"),
        ('host = "a.org"\nproxy = "ftp://a:1"', "expected http://host:port"),
        (f'host = "a.org"\nproxy = "http://me:{SECRET}@a:1"', "would be stored"),
        ('host = "a.org"\nproxy = "http://me@a:1"', "expected proxy-password-env or proxy-password-file"),
        ('host = "a.org"\n[[request]]\nhost = "A.org"', "2 rules for a.org"),
    ],
)
def test_what_is_wrong_is_one_line_without_secrets(tmp_path: Path, rule: str, words: str) -> None:
    message = refusal(f"[[request]]\n{rule}\n", tmp_path, A="a", HOME="h")
    assert words in message
    assert SECRET not in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('insecure = ["*"]', "not one's own hosts"),
        ('insecure = ["*.org"]', "not one's own hosts"),
        ('insecure = ["a/b"]', "not a host"),
        ('proxy = "127.0.0.1"', "expected http://host:port"),
        ('proxy = "http://127.0.0.1"', "not a host with a port"),
        (f'proxy = "http://u:{SECRET}@127.0.0.1:1"', "GOSSAMER_PROXY_PASSWORD"),
        ('proxy = "http://u@127.0.0.1:1"', "GOSSAMER_PROXY_PASSWORD"),
    ],
)
def test_wrong_hosts_and_proxies_are_one_line(tmp_path: Path, text: str, words: str) -> None:
    message = refusal(text, tmp_path)
    assert words in message
    assert SECRET not in message


def test_secrets_over_plain_http_must_be_allowed(tmp_path: Path) -> None:
    rule = '[[request]]\nhost = "*.a.org"\nauth = "bearer"\ntoken-env = "T"\n'
    settings = read(rule, tmp_path)
    check_plain_seeds(settings, ["https://www.a.org/", "http://a.org/", "http://b.org/"])
    with pytest.raises(UsageError, match="plain-http = true"):
        check_plain_seeds(settings, ["http://www.a.org:8080/"])
    check_plain_seeds(read(rule + "plain-http = true\n", tmp_path), ["http://www.a.org/"])


def test_the_environment_names_proxies() -> None:
    found = environment_proxies(
        {
            "HTTP_PROXY": "me:p%40ss@10.0.0.1:8080",
            "all_proxy": "socks5://10.0.0.2",
            "no_proxy": ".a.org, b.org:8080,10.0.0.9",
        }
    )
    assert found.http is not None
    assert (found.http.shown, found.http.user, found.http.password) == ("http://10.0.0.1:8080", "me", "p@ss")
    assert found.https is not None
    assert found.https.shown == "socks5://10.0.0.2:1080"
    assert {"a.org", "*.a.org", "b.org:8080", "10.0.0.9"} <= set(found.exempt)


def test_what_the_environment_says_is_said_or_refused_never_ignored() -> None:
    rules = access_rules_of(Settings(), {"https_proxy": f"http://me:{SECRET}@10.0.0.1:8080"})
    (text,) = warnings_about(rules).values()
    assert "http://10.0.0.1:8080" in text
    assert SECRET not in text + repr(rules)
    with pytest.raises(UsageError, match="ALL_PROXY: a proxy that cannot be used"):
        access_rules_of(Settings(), {"ALL_PROXY": "https://10.0.0.1:8080"})
    assert not access_rules_of(Settings(proxy="none"), {"https_proxy": "http://10.0.0.1:8080"})
    own = access_rules_of(Settings(proxy="http://10.0.0.3:1"), {"https_proxy": "http://10.0.0.1:8080"})
    assert own.environment.https is None


@pytest.mark.parametrize(
    ("pattern", "host", "authority", "is_named"),
    [
        ("example.org", "example.org", "example.org:8443", True),
        ("example.org", "www.example.org", "www.example.org", False),
        ("*.example.org", "www.example.org", "www.example.org", True),
        ("*.example.org", "example.org", "example.org", False),
        ("*.example.org", "badexample.org", "badexample.org", False),
        ("example.org:8443", "example.org", "example.org:8443", True),
        ("example.org:8443", "example.org", "example.org", False),
        ("*.example.org:8443", "www.example.org", "www.example.org:8443", True),
        ("BÜCHER.example", "xn--bcher-kva.example", "xn--bcher-kva.example", True),
        ("[::1]:8443", "[::1]", "[::1]:8443", True),
        ("*", "anything.org", "anything.org", True),
    ],
)
def test_what_a_pattern_names(pattern: str, host: str, authority: str, is_named: bool) -> None:
    normal = normal_pattern(pattern)
    assert normal is not None
    assert names_host(normal, host, authority) is is_named


def test_the_narrowest_pattern_comes_first() -> None:
    patterns = ["*", "*.org", "a.org", "*.a.org", "a.org:8443"]
    assert narrowest_first(patterns) == ["a.org:8443", "a.org", "*.a.org", "*.org", "*"]
