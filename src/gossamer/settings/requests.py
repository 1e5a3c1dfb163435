"""What requests to some hosts need: a `[[request]]` table of the file, by host pattern.

Secrets are never values here: an environment variable (`…-env`) or a file (`…-file`) is named, and only that name is
stored with the crawl. Each process, and each node of many, reads them for itself (`assembly/access`).
The narrowest pattern that matches a host counts, as a whole: rules are not combined.
"""

# Without the annotations of __future__, as in `records`.
import base64
import binascii
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from gossamer.core.url.host_patterns import EXPECTED, normal_pattern
from gossamer.model.errors import UsageError

NO_PROXY: Final = "none"
PROXY_PASSWORD_VARIABLE: Final = "GOSSAMER_PROXY_PASSWORD"  # noqa: S105 - its name
PROXY_SCHEMES: Final = ("http", "socks5", "socks5h")
PROXY_EXPECTED: Final = "expected http://host:port, socks5://host:port, socks5h://host:port or none"
# Framing, routing, and what only concerns one connection: RFC 9110 7.6.1, and what clients add to it.
_CONNECTION_HEADERS: Final = frozenset(
    "host content-length content-type transfer-encoding connection keep-alive te trailer upgrade expect "
    "proxy-connection proxy-authorization http2-settings".split()
)
_OWN_HEADERS: Final = frozenset("accept accept-encoding if-none-match if-modified-since range".split())
_IDENTITY_HEADERS: Final = {"user-agent": "--user-agent", "from": "--contact"}
_SECRET_HEADER: Final = r"auth|cookie|token|secret|passw|session|credential|api-?key|-key$"  # noqa: S105 - of names
_NAME: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_PIN: Final = r"sha256//([A-Za-z0-9+/]{43}=)"
_FILES: Final = ("ca-file", "cert-file", "key-file", "password-file", "token-file")
_MORE_FILES: Final = ("key-password-file", "proxy-password-file")


class Auth(StrEnum):
    """How a request proves who sends it."""

    BASIC = "basic"
    BEARER = "bearer"


class SecretSource(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a secret is: in an environment variable, or in a file."""

    env: str = ""
    file: str = ""

    @property
    def is_named(self) -> bool:
        """Whether there is such a place."""
        return bool(self.env or self.file)


class RequestSetting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="kebab"):
    """What requests to the hosts of a pattern need."""

    host: str
    headers: dict[str, str | SecretSource] = {}
    cookies: bool = False
    auth: Auth | None = None
    user: str = ""
    password_env: str = ""
    password_file: str = ""
    token_env: str = ""
    token_file: str = ""
    plain_http: bool = False  # whether secrets are sent over HTTP without TLS, too
    proxy: str = ""
    proxy_password_env: str = ""
    proxy_password_file: str = ""
    ca_file: str = ""
    pin: tuple[str, ...] = ()
    cert_file: str = ""
    key_file: str = ""
    key_password_env: str = ""
    key_password_file: str = ""

    def secret(self, name: str) -> SecretSource:
        """Return where the password, token or key password of this rule is."""
        return SecretSource(getattr(self, f"{name}_env"), getattr(self, f"{name}_file"))

    @property
    def has_secrets(self) -> bool:
        """Whether a secret is part of its requests."""
        return self.auth is not None or any(isinstance(value, SecretSource) for value in self.headers.values())

    @property
    def identifies(self) -> bool:
        """Whether requests say who sends them."""
        return self.has_secrets or self.cookies or bool(self.cert_file)


def with_absolute_paths(tables: Any) -> Any:  # noqa: ANN401 - not checked yet
    """Return the tables of a file with the paths in them absolute: a crawl may be continued from elsewhere."""
    if not isinstance(tables, list | tuple):
        return tables
    return [_with_absolute(table) if isinstance(table, Mapping) else table for table in tables]


def _with_absolute(table: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: _absolute(value) if key in _FILES + _MORE_FILES else value for key, value in table.items()}
    headers = made.get("headers")
    if isinstance(headers, Mapping):
        made["headers"] = {name: _absolute_source(value) for name, value in headers.items()}
    return made


def _absolute_source(value: Any) -> Any:  # noqa: ANN401 - not checked yet
    is_file = isinstance(value, Mapping) and "file" in value
    return {**value, "file": _absolute(value["file"])} if is_file else value


def _absolute(path: Any) -> Any:  # noqa: ANN401 - not checked yet
    return str(Path(path).absolute()) if isinstance(path, str) and path else path


def explained_request(message: str) -> str:
    """Return what is wrong in a table `[[request]]`, in one line, from msgspec's message; without values."""
    stray = re.match(r"Object contains unknown field `(.*?)`", message)
    if stray is None:
        field = re.search(r"\$\.request\[(?:\d+|\.\.\.)\]\.?([\w-]*)", message)
        where = f" {field.group(1)}:" if field is not None and field.group(1) else ""
        hint = f"; expected {' or '.join(Auth)}" if where == " auth:" else ""
        return f"[[request]]:{where} {re.sub(r' - at `.*', '', message)}{hint}"
    from difflib import get_close_matches

    known = [field.encode_name for field in msgspec.structs.fields(RequestSetting)]
    key = stray.group(1)
    if key in ("password", "token", "key-password", "proxy-password"):
        return f"[[request]]: {key}: a secret has no place in a file of settings; expected {key}-env or {key}-file"
    close = get_close_matches(key, known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"expected one of {', '.join(known)}"
    return f"[[request]]: unknown key '{key}'; {hint}"


def check_requests(rules: Sequence[RequestSetting], insecure: Sequence[str], proxy: str) -> None:
    """Refuse rules that cannot be followed, or that do not name hosts or a proxy."""
    _check_insecure(insecure)
    if fault := proxy_fault(proxy):
        raise UsageError(fault)
    for rule in rules:
        if normal_pattern(rule.host) is None:
            raise UsageError(f"[[request]] host = {rule.host!r}: not a pattern of hosts; {EXPECTED}")
        for fault in (_auth_fault(rule), _certificate_fault(rule), _proxy_fault(rule), _headers_fault(rule)):
            if fault:
                raise UsageError(f"[[request]] host = {rule.host!r}: {fault}")
    for pattern, times in Counter(normal_pattern(rule.host) for rule in rules).items():
        if times > 1:
            raise UsageError(f"[[request]]: there are {times} rules for {pattern}; expected one for each pattern")


def _check_insecure(patterns: Sequence[str]) -> None:
    """Refuse values that do not name hosts: certificates are never left unchecked for all of them."""
    for pattern in patterns:
        normal = normal_pattern(pattern)
        if normal is None:
            raise UsageError(f"insecure = {pattern!r}: not a host; {EXPECTED}")
        if normal.startswith("*") and "." not in normal.removeprefix("*."):
            raise UsageError(f"insecure = {pattern!r}: these are not one's own hosts; expected *.example.org")


def _source_fault(rule: RequestSetting, name: str, *, is_needed: bool = True) -> str:
    source = rule.secret(name)
    key = name.replace("_", "-")
    if source.env and source.file:
        return f"{key}-env and {key}-file are two places for one secret; expected one of them"
    return f"expected {key}-env or {key}-file as well" if is_needed and not source.is_named else ""


def _auth_fault(rule: RequestSetting) -> str:
    given = [key for key in ("user", "password_env", "password_file") if getattr(rule, key)]
    tokens = [key for key in ("token_env", "token_file") if getattr(rule, key)]
    if rule.auth is Auth.BASIC:
        if tokens:
            return f'{tokens[0].replace("_", "-")} is for auth = "bearer"; expected password-env or password-file'
        if not rule.user or ":" in rule.user:
            return 'auth = "basic" needs user = "NAME", without a colon'
        return _source_fault(rule, "password")
    if given:
        return f'{given[0].replace("_", "-")} is for auth = "basic"; expected that as well'
    if rule.auth is Auth.BEARER:
        return _source_fault(rule, "token")
    return f'{tokens[0].replace("_", "-")} is for auth = "bearer"; expected that as well' if tokens else ""


def _certificate_fault(rule: RequestSetting) -> str:
    for pin in rule.pin:
        match = re.fullmatch(_PIN, pin)
        if match is None or not _is_base64(match.group(1)):
            return (
                f"pin = {pin!r}: expected sha256// and the base64 form of the SHA-256 of a public key (44 characters)"
            )
    if not rule.cert_file and (rule.key_file or rule.secret("key_password").is_named):
        return "key-file and key-password-… belong to a client certificate; expected cert-file as well"
    return _source_fault(rule, "key_password", is_needed=False)


def _is_base64(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == 32
    except binascii.Error:
        return False


def _proxy_fault(rule: RequestSetting) -> str:
    if fault := proxy_fault(rule.proxy):
        return fault
    if not rule.proxy and rule.secret("proxy_password").is_named:
        return "proxy-password-… belongs to a proxy; expected proxy as well"
    needs_password = bool(user_of(rule.proxy))
    if not needs_password and rule.secret("proxy_password").is_named:
        return "a proxy with a password has a user; expected proxy = 'http://USER@host:port'"
    return _source_fault(rule, "proxy_password", is_needed=needs_password)


def proxy_fault(proxy: str) -> str:
    """Return what is wrong with a proxy of the settings; empty if nothing is. No message has a password."""
    if not proxy or proxy == NO_PROXY:
        return ""
    try:
        parts = urlsplit(proxy)
        port = parts.port
        password = parts.password
    except ValueError:
        return f"proxy: not a URL with a port; {PROXY_EXPECTED}"
    if password is not None:
        return (
            "proxy: a password in its URL would be stored; expected proxy = 'http://USER@host:port', and the password "
            f"in {PROXY_PASSWORD_VARIABLE} (for [[request]]: proxy-password-env or proxy-password-file)"
        )
    if parts.scheme not in PROXY_SCHEMES:
        return f"proxy: the scheme '{parts.scheme[:20]}' is unknown; {PROXY_EXPECTED}"
    if not parts.hostname or port is None or parts.path not in ("", "/") or parts.query or parts.fragment:
        return f"proxy: not a host with a port; {PROXY_EXPECTED}"
    return ""


def user_of(proxy: str) -> str:
    """Return the user in the URL of a proxy."""
    return urlsplit(proxy).username or ""


def _headers_fault(rule: RequestSetting) -> str:
    names = Counter(name.lower() for name in rule.headers)
    for name, value in rule.headers.items():
        fault = _header_fault(name, value)
        if fault or names[name.lower()] > 1:
            return f"headers: {name!r}: {fault or 'is given twice'}"
    if rule.auth is not None and "authorization" in names:
        return "headers: 'Authorization' contradicts auth; expected one of them"
    if rule.cookies and "cookie" in names:
        return "headers: 'Cookie' contradicts cookies = true; expected one of them"
    return ""


def _header_fault(name: str, value: str | SecretSource) -> str:
    lower = name.lower()
    if not re.fullmatch(_NAME, name):
        return "not the name of a header; expected letters, digits and hyphens"
    if lower in _IDENTITY_HEADERS:
        return f"says who is crawling, to every host alike; expected {_IDENTITY_HEADERS[lower]}"
    if lower in _CONNECTION_HEADERS:
        return "belongs to the connection, or frames the request; it cannot be set"
    if lower in _OWN_HEADERS:
        return "is set by the crawler itself; it cannot be set"
    if isinstance(value, SecretSource):
        return "" if bool(value.env) != bool(value.file) else "expected {env = 'NAME'} or {file = 'PATH'}"
    if re.search(_SECRET_HEADER, lower):
        return "looks like a secret, and its value would be stored; expected {env = 'NAME'} or {file = 'PATH'}"
    return header_value_fault(value)


def header_value_fault(value: str) -> str:
    """Return what is wrong with the value of a header; empty if nothing is."""
    if any(ord(each) < 32 or ord(each) == 127 or ord(each) > 255 for each in value):
        return "its value has a line break, a control character, or one that is not in Latin-1"
    return ""
