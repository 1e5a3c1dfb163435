"""How many dated URLs may a host have?"""

from __future__ import annotations

from gossamer.core.dedup.minhash import minhash
from gossamer.core.traps.calendar import JUDGED_PAGES, MAX_UNPROVEN, DateBudget
from gossamer.core.traps.novelty import LANES, PageMark
from gossamer.core.url.identity import host_id, shard_of
from gossamer.model.state import HostEvidence
from gossamer.parse.text.fingerprint import text_fingerprint
from tests.support.sites.trap_sites import TRAPS, prose

URL = "http://h.test/2000/01/"
MONTH = "http://h.test/2000/02/"
FIRST_JUDGEMENT = 34


def mark(text: str) -> PageMark:
    content = text.encode()
    return PageMark(text_fingerprint(content, URL), minhash(content)[: 4 * LANES], len(text.split()))


def full() -> DateBudget:
    budget = DateBudget()
    for _ in range(MAX_UNPROVEN):
        assert budget.refusal(URL, "h.test", MONTH) is None
        budget.admit("h.test")
    return budget


def test_a_host_has_forty_unproven_date_shaped_urls() -> None:
    budget = full()
    assert budget.refusal(URL, "h.test", MONTH) == "calendar"
    assert budget.refusal("http://h.test/page/7", "h.test", MONTH) is None
    assert budget.refusal("http://i.test/2000/01", "i.test", MONTH) is None
    assert (budget.room("h.test"), budget.room("i.test")) == (0, MAX_UNPROVEN)


def test_what_another_page_names_is_not_held() -> None:
    assert full().refusal(URL, "h.test", "http://h.test/archive") is None
    assert full().refusal(URL, "h.test", "") is None, "a sitemap, a seed"


def test_a_calendar_of_events_has_pages_for_months_too() -> None:
    budget, pages = DateBudget(), 0
    while budget.room("h.test") and pages < 500:
        budget.admit("h.test")
        text = prose(100, "the month") if pages % 5 == 0 else prose(20, pages)
        budget.record("h.test", mark(text))
        pages += 1
    assert pages == 500


def test_pages_with_new_text_make_room() -> None:
    budget = full()
    for number in range(FIRST_JUDGEMENT):
        assert budget.room("h.test") == 0
        budget.record("h.test", mark(prose(100, number)))
    assert budget.room("h.test") == 2 * FIRST_JUDGEMENT, "each makes room for one that brings nothing"
    assert budget.refusal(URL, "h.test", MONTH) is None


def test_pages_without_new_text_make_none() -> None:
    budget = full()
    for number in range(MAX_UNPROVEN):
        budget.record("h.test", mark(TRAPS["a calendar"].text(number)))
    assert budget.room("h.test") <= 10, "the first of each month counted as new"


def test_a_day_of_the_week_in_each_month_is_no_news_for_long() -> None:
    budget, pages = DateBudget(), 0
    days = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
    months = "January February March April May June July August September October November December".split()
    while budget.room("h.test") and pages < 5000:
        budget.admit("h.test")
        date = f"{days[pages % 7]} {months[pages // 30 % 12]} {pages % 30} {2000 + pages // 360}"
        budget.record("h.test", mark(f"{prose(60, 'menu')} {date} nothing happens on this day"))
        pages += 1
    assert pages < 200


def test_what_brings_no_page_is_withdrawn() -> None:
    budget = full()
    for _ in range(3):
        budget.withdraw("h.test")
    assert budget.room("h.test") == 3


def test_what_proved_to_be_new_is_not_withdrawn() -> None:
    budget = full()
    for number in range(FIRST_JUDGEMENT):
        budget.record("h.test", mark(prose(100, number)))
    for _ in range(2 * MAX_UNPROVEN):
        budget.withdraw("h.test")
    assert budget.room("h.test") == MAX_UNPROVEN + FIRST_JUDGEMENT


def stored(budget: DateBudget) -> HostEvidence:
    evidence = HostEvidence("h.test")
    budget.store(evidence)
    return evidence


def test_pages_that_were_not_judged_before_a_restart_are_given_back() -> None:
    budget = full()
    for number in range(FIRST_JUDGEMENT - 1):
        budget.record("h.test", mark(prose(100, number)))
    again = DateBudget()
    again.restore(stored(budget))
    assert again.room("h.test") == FIRST_JUDGEMENT - 1


def test_a_restart_gives_nothing_back_to_what_was_judged_to_be_a_calendar() -> None:
    budget = full()
    for _ in range(FIRST_JUDGEMENT + JUDGED_PAGES // 2):
        budget.record("h.test", mark(prose(100, "same")))
    again = DateBudget()
    again.restore(stored(budget))
    assert again.refusal(URL, "h.test", MONTH) == "calendar"


def test_a_released_shard_is_forgotten() -> None:
    budget = full()
    budget.release([shard_of(host_id("h.test"))])
    assert not budget.has_dated("h.test")
    assert budget.refusal(URL, "h.test", MONTH) is None
