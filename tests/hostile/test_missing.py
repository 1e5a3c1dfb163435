"""`gossamer missing` on a crawl of all hostile hosts: counts are those of the summary, nothing is listed twice."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from gossamer.core.url.forms import url_id
from gossamer.model.records import UrlState
from gossamer.model.state import HoldRule
from tests.e2e.program import run
from tests.hostile.crawling import Aftermath


def missing(after: Aftermath) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    done = run("missing", str(after.out), "--json")
    assert done.returncode == 0, done.stderr
    head, *lines = map(json.loads, done.stdout.splitlines())
    return head, lines


def test_counts_are_those_of_the_summary(after: Aftermath) -> None:
    head, lines = missing(after)
    summary = after.summary
    by_outcome: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for each in head["counts"]:
        by_outcome[each["outcome"]] += each["urls"]
        if each["outcome"] == "held":
            held[each["rule"]] += each["urls"]
    held[HoldRule.QUARANTINE.value] += by_outcome["quarantined"]
    assert by_outcome["robots_denied"] == summary["robots_disallowed"] > 0
    assert by_outcome["evicted"] == summary["evicted"]
    assert by_outcome["held_dropped"] == summary["held_dropped"]
    assert +held == summary["held"]
    others = {"robots_denied", "held", "held_dropped", "excluded", "links_only", "type_refused"}
    others |= {"links_cut", "too_deep", "nofollow", "truncated"}
    assert by_outcome["truncated"] == summary["cuts"]["truncated_pages"] > 0
    assert by_outcome["nofollow"] == summary["cuts"].get("nofollow", 0)
    assert sum(urls for outcome, urls in by_outcome.items() if outcome not in others) == summary["dead"] > 0
    assert head["urls"] == sum(line["count"] for line in lines)
    assert head["queued"] == summary["urls_queued"]


def test_refused_links_are_those_of_the_events_that_were_never_queued(after: Aftermath) -> None:
    head, lines = missing(after)
    rules = {rule.value for rule in HoldRule}
    refused = [event for event in after.events if event["event"] == "excluded_by_rule" and event["reason"] not in rules]
    assert head["refused_links"] == len(refused) > 0
    ids = {event.get("url_id") or url_id(event["url"]).hex() for event in refused}
    known = {url_id(row.url).hex() for row in after.all_rows()}
    listed = [line for line in lines if line["outcome"] == "excluded"]
    assert len(listed) == len(ids - known) > 0


def test_links_beyond_the_limit_per_page_are_listed_with_their_page(after: Aftermath) -> None:
    _, lines = missing(after)
    capped = {event["url"]: event["links"] for event in after.events if event["event"] == "links_capped"}
    cut: Counter[str] = Counter()
    for line in lines:
        if line["outcome"] == "links_cut":
            assert line["url"]
            cut[line["referrer"]] += line["count"]
    assert cut == capped
    assert capped


def test_a_dead_letter_is_listed_once_with_its_referrer(after: Aftermath) -> None:
    _, lines = missing(after)
    dead = [row.url for row in after.all_rows() if row.state is UrlState.DEAD]
    listed = Counter(line["url"] for line in lines if line["url"] in set(dead))
    assert listed == Counter(dead)
    assert any(line["referrer"] for line in lines if line["outcome"] == "held" and line["rule"] == "quarantine")
