"""What a URL is: the form that is requested, the key that is compared, the identity that is stored.

The requested form is the WHATWG href without fragment and credentials: what a browser
would send. The key is derived from it and only compared: it omits what does not
identify another page (escapes of plain characters, tracking parameters, session ids).
All parsing and joining is done by ada: through can_ada (0.8 µs) if the text is plain, else
through ada_url (2.3 µs), if the two could differ; a test compares them.
"""

from __future__ import annotations

import re

import can_ada

from gossamer.core.url.identity import current, host_id, url_id_from
from gossamer.foundation.expressions import expression
from gossamer.foundation.kernel import kernel
from gossamer.model.records import Link, UrlId

MAX_URL_CHARS = 4096
_AT_ONCE = 2_000  # hrefs that are joined in one call, for which other threads wait: 0.2 ms

_DOT_SEGMENT = expression(r"[^?#]*/(?:\.|%2[eE]){1,2}(?:[/?#]|$)")
_ESCAPE = expression(r"%([0-9A-Fa-f]{2})?")
# A URL parser leaves these in a query as they are, escaped or not; servers take both for the same.
_TO_ESCAPE_IN_KEY = expression(r"[\[\]^|`{}\\]")
_ESCAPED_IN_KEY = str.maketrans({char: f"%{ord(char):02X}" for char in "[]^|`{}\\"})
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_TRACKING_PREFIXES = ("utm_", "mtm_", "pk_", "hsa_", "matomo_")
_TRACKING = frozenset(
    "gclid gclsrc dclid gbraid wbraid fbclid msclkid yclid twclid ttclid igshid li_fat_id mc_cid mc_eid mkt_tok "
    "_ga _gl _hsenc _hsmi __hstc __hssc __hsfp hsctatracking vero_id vero_conv oly_enc_id oly_anon_id wickedid "
    "rb_clickid s_kwcid ef_id epik _openstat yadclid srsltid".split()
)
# Names used for nothing else: any long value is a session. The others must have the shape as well.
_SESSION_NAMES = frozenset(["phpsessid", "jsessionid", "aspsessionid", "cfid", "cftoken", "oscsid", "zenid"])
_POSSIBLE_SESSION_NAMES = frozenset(["sid", "s", "session", "sessionid", "session_id", "sess", "sessid"])
_LONG_VALUE = expression(r"[A-Za-z0-9,._!-]{8,}")
_HEX_VALUE = expression(r"[0-9A-Fa-f]{16,}")
_PATH_SESSION = expression(r";(?:jsessionid|phpsessid|sid)=[A-Za-z0-9,._!-]*", re.IGNORECASE)


def canonical(text: str, base: str = "") -> str | None:
    """Return the requested form of a URL, or None if it is not an http(s) URL that can be fetched."""
    if len(text) > 2 * MAX_URL_CHARS:
        return None
    joined = _join(base, text)
    if joined is None or not joined.startswith(("http://", "https://")):
        return None
    cut = joined.find("#")
    if cut >= 0:
        joined = joined[:cut]
    if len(joined) > MAX_URL_CHARS:
        return None
    if "@" in joined:
        joined = _without_credentials(joined)
    return joined


def _join(base: str, text: str) -> str | None:
    if text.isascii() and "^" not in text and "n--" not in text and "N--" not in text and base.isascii():
        try:
            joined = str(can_ada.parse(base) + text) if base else str(can_ada.parse(text))
        except ValueError:
            return None
        if not _has_dot_segment(joined):
            return joined
    import ada_url  # 2 ms, which most crawls of one site do without

    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    try:
        return str(ada_url.join_url(base, text)) if base else str(ada_url.URL(text).href)
    except ValueError:
        return None


def _has_dot_segment(url: str) -> bool:
    """Return whether dot segments are left in a path: can_ada leaves them after a name that begins with a dot."""
    return ("/." in url or "/%2" in url) and _DOT_SEGMENT.match(url) is not None


def _without_credentials(href: str) -> str:
    start = href.index("://") + 3
    end = href.find("/", start)
    at = href.rfind("@", start, end)
    return href if at < 0 else href[:start] + href[at + 1 :]


def redirect_target(location: str, base: str) -> str | None:
    """Return where a Location header (as latin-1) leads, in canonical form; None if nowhere."""
    # Bytes beyond ASCII must be sent back as they are: as UTF-8 if valid, otherwise percent-encoded one by one.
    if not location.isascii():
        try:
            location = location.encode("latin-1").decode("utf-8")
        except UnicodeError:
            location = "".join(char if char.isascii() else f"%{ord(char):02X}" for char in location)
    return canonical(location, base)


def host_of(url: str) -> str:
    """Return the host name of a canonical URL, without port and final dot (an IPv6 address has its brackets)."""
    authority = url[8 if url[4] == "s" else 7 : url.index("/", 8)]  # after "https://" or "http://" and a letter
    if ":" in authority:
        authority = authority[: authority.index("]") + 1] if authority[0] == "[" else authority.partition(":")[0]
    # `example.org.` is `example.org`: one unit of politeness, one row in the ledger.
    return (authority.rstrip(".") or authority) if authority[-1:] == "." else authority


def origin_of(url: str) -> str:
    """Return scheme, host and port of a canonical URL: what robots.txt applies to."""
    return url[: url.index("/", 8)]


def path_of(url: str) -> str:
    """Return path and query of a canonical URL."""
    return url[url.index("/", 8) :]


def port_of(url: str) -> int:
    authority = origin_of(url)
    tail = authority[authority.rfind("]") + 1 :] if "]" in authority else authority[authority.index("://") + 3 :]
    colon = tail.rfind(":")
    if colon >= 0:
        return int(tail[colon + 1 :])
    return 443 if url.startswith("https:") else 80


def key_of(url: str) -> str:
    """Return the key of a canonical URL, by which URLs are compared."""
    if "%" in url:
        url = _ESCAPE.sub(_normal_escape, url)
    if ";" in url:
        url = _PATH_SESSION.sub("", url)
    query = url.find("?")
    if query >= 0:
        text = url[query + 1 :]
        if _TO_ESCAPE_IN_KEY.search(text):  # 0.1 µs; translate takes 1 if there is nothing to escape
            text = text.translate(_ESCAPED_IN_KEY)
        kept = [part for part in text.split("&") if not part or not _is_noise(part)]  # "&&&…" costs no calls
        url = url[:query] + ("?" + "&".join(kept) if kept and kept != [""] else "")
    start = url.index("://") + 3
    end = url.index("/", start)
    if url[end - 1] == "." or ".:" in url[start:end]:
        url = url[:start] + url[start:end].replace(".:", ":").removesuffix(".") + url[end:]
    return url


def _normal_escape(match: re.Match[str]) -> str:
    digits = match.group(1)
    if digits is None:
        return "%25"
    char = chr(int(digits, 16))
    return char if char in _UNRESERVED else "%" + digits.upper()


def _is_noise(parameter: str) -> bool:
    """Return whether a query parameter identifies no other page: tracking, or a session id by name and shape."""
    name, _, value = parameter.partition("=")
    name = name.lower()
    if name in _TRACKING or name.startswith(_TRACKING_PREFIXES):
        return True
    if name in _SESSION_NAMES or name.startswith("aspsessionid"):
        return _LONG_VALUE.fullmatch(value) is not None
    return name in _POSSIBLE_SESSION_NAMES and _HEX_VALUE.fullmatch(value) is not None


def url_id(url: str) -> UrlId:
    """Return the identity of a canonical URL: its host's id, then the hash of its key."""
    return url_id_from(host_id(host_of(url)), key_of(url))


def link_to(url: str) -> Link:
    host = host_of(url)
    return Link(url, url_id_from(host_id(host), key_of(url)), host)


def links_from(base: str, hrefs: list[str]) -> list[Link]:
    """Resolve a page's hrefs, in order, each URL once; the base is canonical. About 1 µs per link: the hot path.

    The loop is `link_to(canonical(href, base))`. Most hrefs take no URL parser (a third of the time), and the host's
    digest is reused from one link to the next.
    """
    seen: set[str] = set()
    links: list[Link] = []
    last_prefix = "\0"
    last_host = ""
    last_digest = b""
    identity = current()
    digest = identity.first_digest
    for start in range(0, len(hrefs), _AT_ONCE):
        part = hrefs[start : start + _AT_ONCE]
        for href, plain in zip(part, _join_plain(base, part), strict=True):
            url = plain or canonical(href, "" if href.startswith(("http://", "https://")) else base)
            if url is None or url in seen:
                continue
            seen.add(url)
            if not url.startswith(last_prefix):
                last_prefix = url[: url.index("/", 8) + 1]
                last_host = host_of(url)
                last_digest = identity.host_id(last_host)
            key = key_of(url) if "%" in url or "?" in url or ";" in url or "./" in last_prefix or ".:" in url else url
            links.append(Link(url, last_digest + digest(key.encode()), last_host))
    return links


def _parse_all(_base: str, hrefs: list[str]) -> list[str | None]:
    return [None] * len(hrefs)


_join_plain = kernel.join_plain if kernel is not None else _parse_all
