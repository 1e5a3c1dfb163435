"""What a change notice says; the rest of the protocol is in tests/e2e/test_notices.py."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.web.http import BadRequestError, HttpRequest
from gossamer.web.indexnow import Notice, notice_in

KEY = "0123456789abcdef"


def posted(**fields: object) -> HttpRequest:
    return HttpRequest("POST", "/indexnow", [], {"content-type": "application/json"}, json.dumps(fields).encode())


def asked(**fields: str) -> HttpRequest:
    return HttpRequest("GET", "/indexnow", list(fields.items()), {})


def test_a_notice_names_urls_of_one_host_each_once() -> None:
    urls = ["https://a.test/x#part", "https://A.test/x", "http://a.test/y"]
    notice = notice_in(posted(host="A.test", key=KEY, urlList=urls, more="is ignored"))
    expected = ("https://a.test/x", "http://a.test/y")
    assert notice == Notice("a.test", KEY, f"https://a.test/{KEY}.txt", expected)


def test_the_key_file_has_scheme_and_port_of_the_urls() -> None:
    assert notice_in(asked(url="http://a.test:8080/x", key=KEY)).key_url == f"http://a.test:8080/{KEY}.txt"
    assert notice_in(posted(host="a.test:8080", key=KEY, urlList=["http://a.test:8080/"])).host == "a.test:8080"


def test_a_key_location_is_for_urls_below_its_folder() -> None:
    location = "https://a.test/shop/key.txt?v=/1"
    for url in ("https://a.test/shop/", "https://a.test/shop/x?y", "http://a.test/shop/x"):
        assert notice_in(asked(url=url, key=KEY, keyLocation=location)).key_url == location
    for url in ("https://a.test/", "https://a.test/shopping", "https://a.test/shop/../x"):
        with pytest.raises(BadRequestError, match="is not below /shop/") as caught:
            notice_in(asked(url=url, key=KEY, keyLocation=location))
        assert caught.value.status == 422


@pytest.mark.parametrize(
    ("request_", "status", "reason"),
    [
        (posted(host="a.test", key=KEY, urlList=["https://b.test/"]), 422, "is not of the host a.test"),
        (posted(host="a.test", key=KEY, urlList=["https://a.test:8443/"]), 422, "is not of the host a.test"),
        (posted(host="a.test", key=KEY, urlList=["https://a.test@b.test/"]), 422, "is not of the host a.test"),
        (posted(host="u@a.test", key=KEY, urlList=["https://a.test/"]), 400, "host is not the name of a host"),
        (posted(host="a.test/x", key=KEY, urlList=["https://a.test/"]), 400, "host is not the name of a host"),
        (posted(host="", key=KEY, urlList=["https://a.test/"]), 400, "host is not the name of a host"),
        (posted(host="a.test", key=KEY + "\n", urlList=["https://a.test/"]), 422, "the key has another form"),
        (posted(host="a.test", key="k" * 129, urlList=["https://a.test/"]), 422, "the key has another form"),
        (posted(host="a.test", key=KEY, urlList=["https://a.test/" + "x" * 2048]), 400, "is not a URL"),
        (posted(host="a.test", key=KEY, urlList=["javascript:alert(1)"]), 400, "is not a URL"),
        (
            asked(url="https://a.test/", key=KEY, keyLocation="https://b.test/k.txt"),
            422,
            "keyLocation is not of the host",
        ),
        (asked(url="https://a.test/"), 400, "key is missing"),
        (asked(key=KEY), 400, "url is missing"),
    ],
)
def test_what_is_wrong_has_the_status_of_the_protocol(request_: HttpRequest, status: int, reason: str) -> None:
    with pytest.raises(BadRequestError, match=reason) as caught:
        notice_in(request_)
    assert caught.value.status == status
    assert len(str(caught.value)) < 400


VALUES = st.text(max_size=60) | st.sampled_from(
    ["https://a.test/", "http://[::1]/x", "a.test", KEY, "http://a.test:99999/"]
)


@given(st.dictionaries(st.sampled_from(["url", "key", "keyLocation", "more"]), VALUES))
def test_any_query_is_a_notice_or_refused(fields: dict[str, str]) -> None:
    with suppress(BadRequestError):
        notice = notice_in(asked(**fields))
        assert notice.key_url.partition("://")[2].startswith(notice.host + "/")


@given(
    st.binary(max_size=200)
    | st.fixed_dictionaries(
        {"host": VALUES, "key": VALUES, "urlList": st.lists(VALUES, max_size=3)}, optional={"keyLocation": VALUES}
    ).map(lambda fields: json.dumps(fields).encode())
)
def test_any_body_is_a_notice_or_refused(body: bytes) -> None:
    with suppress(BadRequestError):
        notice = notice_in(HttpRequest("POST", "/indexnow", [], {}, body))
        assert all(url.partition("://")[2].startswith(notice.host + "/") for url in notice.urls)
