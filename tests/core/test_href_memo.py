from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.url import href_memo
from gossamer.core.url.forms import links_from
from gossamer.core.url.href_memo import HrefMemo

PAGE = "http://a.test/docs/page.html?q=/x"
HREFS = st.sampled_from(
    r"x x.html ../y /z //b.test/ ?p=2 http://c.test/ http:x http:?q \\d.test /\e.test a:b ./x x?y https:/f .".split()
)
BASES = st.sampled_from(
    (
        "http://a.test/ http://a.test/docs/page.html?q=/x http://a.test/docs/ http://a.test/docs/other http://b.test/ "
        "https://a.test/docs/ http://a.test:81/ http://a.test/docs/deep/er"
    ).split()
)


def test_what_was_offered_is_left_out_on_pages_nearby() -> None:
    memo = HrefMemo()
    assert memo.fresh(1, PAGE, ["x", "/z", "?p=2", "http://c.test/"]) == ["x", "/z", "?p=2", "http://c.test/"]
    assert memo.fresh(2, PAGE, ["x"]) == ["x"], "nobody said that it was offered"
    memo.mark_offered(1)
    assert memo.fresh(3, "http://a.test/docs/other", ["x", "/z", "?p=2", "http://c.test/", "w"]) == ["?p=2", "w"]
    assert memo.fresh(4, "http://a.test/else/", ["x", "/z", "http://c.test/"]) == ["x"]
    assert memo.fresh(5, "https://a.test/docs/", ["x", "/z", "http://c.test/"]) == ["x", "/z"]


@given(st.lists(st.tuples(BASES, st.lists(HREFS, max_size=6, unique=True)), max_size=8))
def test_no_url_is_left_out_that_was_never_offered(pages: list[tuple[str, list[str]]]) -> None:
    memo, offered = HrefMemo(), set[str]()
    for number, (base, hrefs) in enumerate(pages):
        fresh = memo.fresh(number, base, hrefs)
        offered |= {link.url for link in links_from(base, fresh)}
        memo.mark_offered(number)
        assert {link.url for link in links_from(base, hrefs)} <= offered


def test_memory_is_bounded() -> None:
    memo = HrefMemo()
    for number in range(40):
        memo.fresh(number, "http://a.test/", [f"{number}-{n}" for n in range(2000)])
        memo.mark_offered(number)
    assert sum(len(known) for known in memo._known.values()) <= href_memo.MEMO_HREFS + 4000
    for number in range(2 * href_memo.MAX_PENDING):
        memo.fresh(number, "http://a.test/", [f"pending-{number}"])
    assert len(memo._pending) == href_memo.MAX_PENDING


def test_pages_with_very_many_links_that_are_not_decided_take_no_more_memory_than_others() -> None:
    memo = HrefMemo(max_hrefs=1000)
    for number in range(100):
        memo.fresh(number, "http://a.test/", [f"/{number}/{link}" for link in range(300)])
    assert sum(len(hrefs) for _, hrefs in memo._pending.values()) <= 1000
    memo.mark_offered(99)
    memo.fresh(200, "http://a.test/", [f"/200/{link}" for link in range(5000)])
    assert list(memo._pending) == [200], "the last page is kept, however many it has"
    assert memo.fresh(201, "http://a.test/", ["/99/5", "/98/5"]) == ["/98/5"]


def test_what_was_offered_for_one_seed_is_fresh_for_another() -> None:
    memo = HrefMemo()
    hrefs = ["x", "/z", "http://c.test/"]
    memo.fresh(1, PAGE, hrefs, 0)
    memo.mark_offered(1)
    assert memo.fresh(2, PAGE, hrefs, 7) == hrefs
    memo.mark_offered(2)
    assert memo.fresh(3, PAGE, hrefs, 7) == []
    assert memo.fresh(4, PAGE, hrefs, 8) == hrefs
    assert memo.fresh(5, PAGE, hrefs, 0) == []
