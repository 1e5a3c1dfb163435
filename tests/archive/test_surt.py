from __future__ import annotations

import pytest
import surt as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.archive.surt import surt
from gossamer.core.url.forms import canonical
from tests.amount import amount

from .samples import ODD_URLS


@pytest.mark.parametrize("url", ODD_URLS)
def test_odd_urls_give_the_key_of_the_reference(url: str) -> None:
    href = canonical(url)
    assert href is not None
    assert surt(href) == reference.surt(href)


HOSTS = st.from_regex(
    r"(www[0-9]?\.|WWW\.)?[a-z0-9-]{1,8}(\.[a-z0-9-]{1,5}){0,3}\.?|10\.1\.2\.[0-9]|\[::[0-9a-f]\]", fullmatch=True
)
PATHS = st.text("abAB.%/~ 25eé&=?#+;:@!'\"<>()[]{}|\\^`\x00\t,$*-_", max_size=25)


@settings(max_examples=amount(375, 1500), deadline=None)
@given(
    st.sampled_from(["http", "https"]),
    HOSTS,
    st.sampled_from(["", ":80", ":443", ":8080", ":0"]),
    PATHS,
    st.sampled_from(["", "u@", "u:p@"]),
)
def test_every_canonical_url_gives_the_key_of_the_reference(
    scheme: str, host: str, port: str, path: str, user: str
) -> None:
    href = canonical(f"{scheme}://{user}{host}{port}/{path}")
    if href is not None:
        assert surt(href) == reference.surt(href)


SESSIONS = st.sampled_from(
    [
        "jsessionid=" + "0a" * 16, "PHPSESSID=" + "0B" * 16, "sid=" + "9" * 32, "sid=" + "9" * 31, "xsid=" + "a" * 32,
        "ASPSESSIONIDABCDEFGH=" + "Z" * 24, "cfid=1&cftoken=2", "CFID=&cftoken=2", "a=1", "id=5", "",
    ]
)  # fmt: skip


@settings(max_examples=amount(75, 300), deadline=None)
@given(
    st.lists(SESSIONS, max_size=5),
    st.sampled_from(["/x", "/(S(" + "a" * 24 + "))/p.aspx", "/(" + "b" * 24 + ")/p.ASPX"]),
)
def test_session_ids_go_as_they_go_in_the_reference(parameters: list[str], path: str) -> None:
    href = f"http://example.com{path}?{'&'.join(parameters)}"
    assert surt(href) == reference.surt(href)
