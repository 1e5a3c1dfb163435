"""What requests to some hosts need, from the settings and the environment of this process.

Secrets are read here, once, when a crawl or a single request begins; what is missing is one line. Proxies that the
environment names (`http_proxy`, `https_proxy`, `all_proxy`, `no_proxy`, in either case) are used if the settings name
none: decisions/044.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gossamer.core.url.forms import host_of
from gossamer.core.url.host_patterns import names_host, narrowest_first, normal_pattern
from gossamer.fetch.access import AccessRule, AccessRules, EnvironmentProxies
from gossamer.fetch.route import Proxy, Route
from gossamer.fetch.trust import TrustSource, certificates_in
from gossamer.model.errors import UsageError
from gossamer.settings.model import Settings
from gossamer.settings.requests import (
    NO_PROXY,
    PROXY_PASSWORD_VARIABLE,
    PROXY_SCHEMES,
    Auth,
    RequestSetting,
    SecretSource,
    header_value_fault,
    user_of,
)

# Reads secrets: from an environment variable, or from the first line of a file.
#
# No message has a part of a secret in it. A variable that is set but empty counts as missing.

MAX_SECRET_BYTES = 16_384


def read_secret(source: SecretSource, where: str, environment: Mapping[str, str]) -> str:
    """Return a secret; `where` says what it is for. Empty if no place is named."""
    if source.env:
        secret = environment.get(source.env, "")
        place = f"the environment variable {source.env}"
        if not secret:
            raise UsageError(f"{where}: {place} is not set; every machine that crawls needs it")
    elif source.file:
        secret = _first_line(source.file, where)
        place = source.file
        if not secret:
            raise UsageError(f"{where}: {place}: empty; expected the secret in its first line")
    else:
        return ""
    if len(secret) > MAX_SECRET_BYTES or any(ord(each) < 32 or ord(each) == 127 for each in secret):
        raise UsageError(f"{where}: {place}: not a line of text of at most {MAX_SECRET_BYTES} characters")
    return secret


def _first_line(path: str, where: str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_SECRET_BYTES + 2)
    except OSError as error:
        raise UsageError(f"{where}: {path}: cannot read the secret: {error.strerror or error}") from error
    try:
        return data.decode().split("\n", 1)[0].rstrip("\r")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: {path}: not text in UTF-8; expected the secret in its first line") from error


def access_rules_of(settings: Settings, environment: Mapping[str, str]) -> AccessRules:
    """Return what hosts need; raise with one line if a secret or a file is missing."""
    proxy = None if settings.proxy == NO_PROXY else _global_proxy(settings.proxy, environment)
    return AccessRules(
        rules=tuple(_rule_of(rule, environment) for rule in settings.request),
        insecure=tuple(filter(None, map(normal_pattern, settings.insecure))),
        proxy=proxy,
        environment=EnvironmentProxies() if settings.proxy else environment_proxies(environment),
    )


def warnings_about(rules: AccessRules) -> dict[str, str]:
    """Return what the operator must know when a crawl begins, by the name of a warning."""
    found = {}
    if rules.insecure:
        found["insecure"] = f"certificates of {', '.join(rules.insecure)} are not checked (--insecure)"
    proxies = [each for each in (rules.environment.https, rules.environment.http) if each is not None]
    if proxies:
        named = " and ".join(dict.fromkeys(each.shown for each in proxies))
        found["environment_proxy"] = (
            f"requests go through {named}, as variables of the environment say (http_proxy, https_proxy, all_proxy); "
            "--proxy none makes them directly"
        )
    return found


def check_plain_seeds(settings: Settings, urls: Sequence[str]) -> None:
    """Raise if a seed is at a host whose secrets would not be sent to it, since it has no TLS."""
    by_pattern = {normal_pattern(rule.host) or "": rule for rule in settings.request}
    for url in urls:
        authority = url.partition("://")[2].partition("/")[0]
        found = (each for each in narrowest_first(by_pattern) if names_host(each, host_of(url), authority))
        rule = by_pattern.get(next(found, ""))
        if url.startswith("http:") and rule is not None and rule.has_secrets and not rule.plain_http:
            raise UsageError(
                f"seed {url[:200]}: [[request]] host = {rule.host!r} has secrets, which anybody could read over plain "
                "HTTP; expected a seed with https, or plain-http = true in the rule"
            )


def check_access(settings: Settings, urls: Sequence[str], environment: Mapping[str, str]) -> None:
    """Raise with one line if requests cannot be made as the settings say, before anything is started."""
    check_plain_seeds(settings, urls)
    access_rules_of(settings, environment)


def _rule_of(rule: RequestSetting, environment: Mapping[str, str]) -> AccessRule:
    where = f"[[request]] host = {rule.host!r}"
    plain = tuple((name, value) for name, value in rule.headers.items() if isinstance(value, str))
    return AccessRule(
        pattern=normal_pattern(rule.host) or "",
        headers=plain,
        secrets=_secret_headers(rule, where, environment),
        sends_secrets_plainly=rule.plain_http,
        has_cookies=rule.cookies,
        route=_route_of(rule, where, environment),
        is_direct=rule.proxy == NO_PROXY,
    )


def _secret_headers(rule: RequestSetting, where: str, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    made: list[tuple[str, str]] = []
    for name, source in rule.headers.items():
        if isinstance(source, SecretSource):
            made.append((name, read_secret(source, f"{where}: headers: {name}", environment)))
    if rule.auth is Auth.BASIC:
        password = read_secret(rule.secret("password"), where, environment)
        pair = base64.b64encode(f"{rule.user}:{password}".encode()).decode()
        made.append(("Authorization", f"Basic {pair}"))
    elif rule.auth is Auth.BEARER:
        made.append(("Authorization", f"Bearer {read_secret(rule.secret('token'), where, environment)}"))
    for name, value in made:
        if fault := header_value_fault(value):
            raise UsageError(f"{where}: {name}: {fault}")
    return tuple(made)


def _route_of(rule: RequestSetting, where: str, environment: Mapping[str, str]) -> Route:
    if rule.ca_file:
        certificates_in(TrustSource(f"{where}: ca-file", rule.ca_file))  # raises if there is none
    key_password = read_secret(rule.secret("key_password"), f"{where}: key-password", environment)
    if rule.cert_file:
        _check_client_certificate(rule, where, key_password)
    proxy = None
    if rule.proxy and rule.proxy != NO_PROXY:
        password = read_secret(rule.secret("proxy_password"), f"{where}: proxy-password", environment)
        proxy = _proxy_from(rule.proxy, user_of(rule.proxy), password)
    return Route(
        proxy=proxy,
        pins=";".join(rule.pin),
        ca_file=rule.ca_file,
        cert_file=rule.cert_file,
        key_file=rule.key_file,
        key_password=key_password,
    )


def _check_client_certificate(rule: RequestSetting, where: str, key_password: str) -> None:
    """Raise if the certificate or its key cannot be used: libcurl would say so at every request."""
    for key, path in (("cert-file", rule.cert_file), ("key-file", rule.key_file)):
        try:
            if path:
                Path(path).read_bytes()
        except OSError as error:
            raise UsageError(f"{where}: {key} {path}: cannot read it: {error.strerror or error}") from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        # A function, so that OpenSSL never asks on the terminal.
        context.load_cert_chain(rule.cert_file, rule.key_file or None, password=lambda: key_password)
    except (ssl.SSLError, ValueError) as error:
        expected = "expected PEM, and key-password-env or key-password-file if the key is encrypted"
        raise UsageError(f"{where}: cert-file and key-file do not make a client certificate; {expected}") from error


def _global_proxy(proxy: str, environment: Mapping[str, str]) -> Proxy | None:
    if not proxy:
        return None
    user = user_of(proxy)
    password = environment.get(PROXY_PASSWORD_VARIABLE, "") if user else ""
    if user and not password:
        raise UsageError(f"proxy = {proxy!r}: it has a user; expected its password in {PROXY_PASSWORD_VARIABLE}")
    return _proxy_from(proxy, user, password)


def _proxy_from(url: str, user: str, password: str) -> Proxy:
    parts = urlsplit(url)
    return Proxy(parts.scheme, parts.netloc.rpartition("@")[2], unquote(user), password)


def environment_proxies(environment: Mapping[str, str]) -> EnvironmentProxies:
    """Return the proxies that the environment names; raise with one line if one cannot be used."""

    def variable(name: str) -> tuple[str, str]:
        found = next((each for each in (name, name.upper()) if environment.get(each, "").strip()), "")
        return found, environment.get(found, "").strip()

    def proxy(name: str) -> Proxy | None:
        own = variable(name)
        return _environment_proxy(*(own if own[1] else variable("all_proxy")))

    return EnvironmentProxies(proxy("http_proxy"), proxy("https_proxy"), _exempt_hosts(variable("no_proxy")[1]))


def _environment_proxy(name: str, value: str) -> Proxy | None:
    if not value:
        return None
    url = value if "://" in value else f"http://{value}"
    hint = "expected http://host:port, socks5://host:port or socks5h://host:port; --proxy none ignores it"
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError as error:
        raise UsageError(f"the environment variable {name}: not a URL of a proxy; {hint}") from error
    scheme = "socks5h" if parts.scheme == "socks" else parts.scheme
    if scheme not in PROXY_SCHEMES or not host:
        raise UsageError(f"the environment variable {name}: a proxy that cannot be used; {hint}")
    place = parts.netloc.rpartition("@")[2]
    usual = 3128 if scheme == "http" else 1080
    place = place if port is not None else f"{place}:{usual}"
    return Proxy(scheme, place, unquote(parts.username or ""), unquote(parts.password or ""))


def _exempt_hosts(value: str) -> tuple[str, ...]:
    """Return what no_proxy says, as patterns: a name there stands for the hosts below it, too."""
    found: list[str] = []
    for word in value.replace(",", " ").split():
        if word == "*":
            return ("*",)
        name = word.removeprefix("*").removeprefix(".")
        for pattern in (name, f"*.{name}"):
            normal = normal_pattern(pattern)
            if normal is not None:
                found.append(normal)
    return tuple(found)
