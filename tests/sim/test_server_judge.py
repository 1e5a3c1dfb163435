"""The judge, on logs written by hand: each rule is broken once and found once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gossamer.sim.web.log import LoggedRequest, RequestLog, read_log
from gossamer.sim.web.pages import SyntheticWeb
from gossamer.sim.web.server_judge import JudgeRules, ServerVerdict, judge
from gossamer.sim.web.truth import find_truth
from gossamer.sim.web.web import Health, RobotsKind, Site, WebPlan

PORT = 8080
WEB = SyntheticWeb(
    WebPlan(domains=8, hosts=12, pages=60, robots_rules=0.5, crawl_delays=0.3, crawl_delay_s=2.0, robots_down=0.1), PORT
)
SITES = [site for index in range(12) if (site := WEB.site(WEB.plan.host_name(index)))]
RULES = JudgeRules(politeness_s=1.0)


def site_where(**wanted: object) -> Site:
    return next(site for site in SITES if all(getattr(site, name) == value for name, value in wanted.items()))


PLAIN = site_where(robots=RobotsKind.RULES, health=Health.WELL, crawl_delay_s=0.0)


def seen(at: float, target: str, site: Site = PLAIN, *, status: int = 200, takes_s: float = 0.1) -> LoggedRequest:
    return LoggedRequest(at, site.name, target, 1, 1, "test", at + takes_s, status)


def judged(*log: LoggedRequest, rules: JudgeRules = RULES) -> ServerVerdict:
    return judge(WEB, log, rules)


def broken(report: ServerVerdict) -> dict[str, int]:
    names = ("robots_late", "disallowed", "too_soon", "too_many_at_once", "fetched_twice")
    return {name: count for name in names if (count := getattr(report, name).count)}


def test_a_perfect_crawl_is_clean_and_complete() -> None:
    log = []
    for site in SITES:
        paths = ["/robots.txt"]
        if site.is_available:
            paths += [WEB.card(site, number).path for number in range(site.pages)]
        gap = max(1.0, site.crawl_delay_s)
        log += [seen(place * gap, path, site) for place, path in enumerate(paths)]
    report = judged(*log)
    assert report.is_clean
    assert report.is_complete
    assert report.coverage == 1.0
    assert report.min_gap_s == 1.0
    assert report.strays == 0
    assert report.render().endswith("clean")


def test_a_page_before_robots_txt_is_found() -> None:
    assert broken(judged(seen(0, "/"), seen(1, "/robots.txt"))) == {"robots_late": 1}


def test_a_page_asked_while_robots_txt_is_still_being_answered_is_found() -> None:
    report = judged(seen(0, "/robots.txt", takes_s=3), seen(1, "/"), rules=JudgeRules(host_connections=2))
    assert broken(report) == {"robots_late": 1}


def test_a_forbidden_path_is_found_and_its_allowed_part_is_not() -> None:
    report = judged(seen(0, "/robots.txt"), seen(1, "/private/1"), seen(2, "/private/open/1.html", status=404))
    assert broken(report) == {"disallowed": 1}
    assert report.disallowed.samples[0].target == "/private/1"
    assert not report.is_polite
    assert report.render().endswith("NOT POLITE")


def test_pages_of_a_host_whose_robots_txt_is_down_are_forbidden_unless_the_rules_say_otherwise() -> None:
    down = site_where(health=Health.ROBOTS_DOWN)
    log = (seen(0, "/robots.txt", down, status=503), seen(1, "/", down))
    assert broken(judged(*log)) == {"disallowed": 1}
    assert broken(judged(*log, rules=JudgeRules(robots_unreachable="allow"))) == {}


def test_a_server_that_stood_still_does_not_know_how_close_two_requests_were() -> None:
    late, after, far = seen(1, "/robots.txt"), seen(1.1, "/"), seen(1.5, "/other")
    late.max_late_s = 0.9
    assert broken(judged(late, after)) == {}
    assert broken(judged(late, after, far)) == {"too_soon": 1}
    after.max_late_s = 0.9
    late.max_late_s = 0.8
    assert broken(judged(late, after)) == {"too_soon": 1}, "only that the first came earlier helps"


def test_a_request_too_soon_is_found_and_slack_forgives_jitter() -> None:
    log = (seen(0, "/robots.txt"), seen(0.999, "/"))
    assert broken(judged(*log)) == {"too_soon": 1}
    assert broken(judged(*log, rules=JudgeRules(slack_s=0.002))) == {}


def test_a_host_s_own_crawl_delay_counts_if_it_is_longer() -> None:
    slow = site_where(crawl_delay_s=2.0)
    assert broken(judged(seen(0, "/robots.txt", slow), seen(1.5, "/", slow))) == {"too_soon": 1}


def test_two_requests_at_once_are_found_by_host_and_by_domain_and_address() -> None:
    log = [seen(0, "/robots.txt"), seen(1, "/", takes_s=5), seen(2, "/missing/1", status=404)]
    assert broken(judged(*log)) == {"too_many_at_once": 1}
    assert broken(judged(*log, rules=JudgeRules(host_connections=2))) == {}
    one, two = next((a, b) for a in SITES for b in SITES if a is not b and a.domain == b.domain)
    pair = (seen(0, "/robots.txt", one), seen(0.05, "/robots.txt", two))
    assert broken(judged(*pair)) == {}
    assert broken(judged(*pair, rules=JudgeRules(domain_connections=1))) == {"too_many_at_once": 1}
    assert broken(judged(*pair, rules=JudgeRules(address_connections=1))) == {"too_many_at_once": 1}


def test_the_same_page_under_two_spellings_is_a_page_fetched_twice() -> None:
    path = WEB.card(PLAIN, 1).path
    mark = "&" if "?" in path else "?"
    report = judged(seen(0, "/robots.txt"), seen(1, path), seen(2, f"{path}{mark}utm_source=x"), seen(3, "/robots.txt"))
    assert broken(report) == {"fetched_twice": 1}
    assert report.is_polite
    assert not report.is_clean


def test_missing_pages_and_pages_out_of_scope_are_named() -> None:
    truth = find_truth(WEB, [f"http://{PLAIN.name}:{PORT}/"], "host")
    other = next(site for site in SITES if site.is_available and site.name != PLAIN.name)
    report = judge(WEB, [seen(0, "/robots.txt"), seen(1, "/"), seen(0, "/", other)], RULES, truth)
    assert report.missing == PLAIN.pages - 1
    assert report.stray_samples == (f"http://{other.name}:{PORT}/",)
    assert report.requests_by_host == {PLAIN.name: 2, other.name: 1}


def test_a_request_that_never_ended_still_counts_as_open() -> None:
    open_ended = LoggedRequest(1, PLAIN.name, "/", 1, 1, "test")
    report = judged(seen(0, "/robots.txt"), open_ended, seen(9, "/missing/1", status=404))
    assert broken(report) == {"too_many_at_once": 1}


def test_the_log_file_holds_every_request_once_also_those_that_ended_late(tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "log.jsonl")
    late = LoggedRequest(1.0, "a.test", "/late", 1, 1, "test")
    log.append(late)
    log.append(seen(2, "/early"))
    log.flush()
    late.finished_at, late.status = 5.0, 200
    log.flush()
    log.append(LoggedRequest(6.0, "a.test", "/never", 1, 1, "test"))
    log.flush()
    log.flush(is_last=True)
    assert [request.target for request in read_log(tmp_path / "log.jsonl")] == ["/late", "/early", "/never"]


def test_the_report_as_json_carries_the_verdicts() -> None:
    verdict = msgspec.json.decode(judged(seen(0, "/robots.txt")).as_json())
    assert (verdict["is_polite"], verdict["is_clean"], verdict["is_complete"]) == (True, True, False)


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="politness"):
        msgspec.convert({"politness": "1"}, JudgeRules, strict=False)
