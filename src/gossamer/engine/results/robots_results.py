"""What follows from an answer to a request for robots.txt: rules stored, sitemaps offered, fallback to http."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.core.frontier.effects import Effects
from gossamer.core.frontier.workbench import OriginRules
from gossamer.core.ledger.catalog import record_of
from gossamer.core.links.intake import LinkContext
from gossamer.core.robots.answers import leads_to_robots
from gossamer.core.robots.rules import MAX_CRAWL_DELAY_S, MAX_ROBOTS_BYTES, RobotsRules, parse_robots
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import canonical, host_of, link_to
from gossamer.core.url.identity import host_id
from gossamer.engine.admission.admission import Admission
from gossamer.engine.admission.first_pass import FirstPassProgress
from gossamer.engine.admission.scope_record import ScopeRecord
from gossamer.engine.admission.submitters import add_submitter
from gossamer.engine.cluster.link_messages import RobotsAnswer, RobotsQuestion
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import EventName
from gossamer.model.records import (
    ContentRecord,
    FetchKind,
    FetchTask,
    Outcome,
    QueuedUrl,
    Result,
    RobotsRecord,
    Source,
    UrlState,
)
from gossamer.model.state import CrawlState

if TYPE_CHECKING:
    from gossamer.ports import FrontierStore


def result_of(answer: RobotsAnswer) -> Result:
    return Result(
        0,
        answer.outcome,
        status=answer.status,
        error=answer.error,
        robots=answer.body,
        retry_after_s=answer.retry_after_s,
    )


class RobotsResults:
    def __init__(
        self,
        rules: CrawlRules,
        ledger: FrontierStore,
        *,
        admission: Admission,
        first_pass: FirstPassProgress,
        scope: ScopeRecord,
        emitter: EventEmitter,
        state: CrawlState,
    ) -> None:
        self._rules = rules
        self._ledger = ledger
        self._admission = admission
        self._first_pass = first_pass
        self._scope = scope
        self._events = emitter
        self._state = state

    def record(self, task: FetchTask, result: Result, effects: Effects, now: float) -> None:
        origin = effects.robots_origin
        robots = effects.robots
        self._events.robots(task, result, origin, now, lacks_https=bool(effects.fallbacks))
        if robots is not None and not robots.is_last_good_copy:
            self._store(origin, task.url, robots, result, now)
        self._warn_of_absurd(task, result, robots, now)
        for url in effects.fallbacks:
            self._fall_back(url, result, now)
        self._offer_sitemaps(effects.sitemaps, origin, now)
        if effects.robots_asked is not None or effects.robots_answered is not None:
            self._exchange(effects, result)

    def _exchange(self, effects: Effects, result: Result) -> None:
        """Have another node request a robots.txt at its host, or tell it what came of its own question."""
        asked = effects.robots_asked
        answered = effects.robots_answered
        if asked is not None:
            question = RobotsQuestion(asked.origin, asked.url, asked.hops)
            self._admission.message_to(asked.url).questions.append(question)
        if answered is not None:
            answer = RobotsAnswer(
                answered.origin,
                answered.url,
                answered.hops,
                result.outcome,
                result.status,
                result.error,
                result.robots[:MAX_ROBOTS_BYTES],
                result.retry_after_s,
            )
            self._admission.message_to(answered.origin + "/").answers.append(answer)

    def record_answer(self, answer: RobotsAnswer, effects: Effects, now: float) -> None:
        """Record a robots.txt that another node requested."""
        result = result_of(answer)
        if effects.robots is not None and not effects.robots.is_last_good_copy:
            self._store(answer.origin, answer.url, effects.robots, result, now)
        self._offer_sitemaps(effects.sitemaps, answer.origin, now)

    def recall(self, record: RobotsRecord, now: float) -> None:
        """Offer the sitemaps of a robots.txt that was read back from the archive, as if it had just arrived."""
        rules = parse_robots(record.body, self._rules.robots_token)
        self._offer_sitemaps(list(rules.sitemaps), record.origin, now)

    def _warn_of_absurd(self, task: FetchTask, result: Result, robots: OriginRules | None, now: float) -> None:
        """Warn of a redirect that is not followed, which counts as no robots.txt, and of a delay over an hour."""
        if robots is None:
            return
        reason = ""
        if result.outcome is Outcome.REDIRECT:
            reason = "robots_loop" if leads_to_robots(task.url, result.redirect_to) else "robots_elsewhere"
        if robots.rules is not None and robots.rules.crawl_delay_s == MAX_CRAWL_DELAY_S:
            reason = "crawl_delay_capped"
        if reason:
            self._events.emit(EventName.WARNING, now, url=task.url, host=host_of(task.url), reason=reason)
        if robots.rules is not None and result.robots:
            self._warn_of_left_out(task, robots.rules, now)

    def _warn_of_left_out(self, task: FetchTask, rules: RobotsRules, now: float) -> None:
        """Warn of rules that are not matched in full, and of sitemaps that are not read."""
        left_out = {"robots_rules_capped": rules.rules_beyond, "robots_sitemaps_capped": rules.sitemaps_left_out}
        for reason, number in left_out.items():
            if number:
                self._events.emit(
                    EventName.WARNING, now, url=task.url, host=host_of(task.url), reason=reason, links=number
                )
        self._state.totals.robots_cut += any(left_out.values())

    def _store(self, origin: str, url: str, rules: OriginRules, result: Result, now: float) -> None:
        record = RobotsRecord(
            origin=origin,
            status=result.status,
            outcome=result.outcome.value,
            body=result.robots[:MAX_ROBOTS_BYTES] if result.outcome is Outcome.OK else b"",
            fetched_at=now,
            expires_at=rules.expires_at,
            etag=rules.etag,
            last_modified=rules.last_modified,
        )
        if result.outcome is Outcome.OK and result.payload_digest:
            record.stored = ContentRecord(b"", url, result.sent_at, result.payload_digest, result.archived)
        if result.outcome is Outcome.NOT_MODIFIED:
            for known in self._ledger.robots(host_id(host_of(origin + "/"))):
                if known.origin == origin:
                    record.status = known.status
                    record.outcome = known.outcome
                    record.body = known.body
                    record.stored = known.stored
        self._ledger.put_robots(record)

    def _fall_back(self, url: QueuedUrl, result: Result, now: float) -> None:
        """Try a bare domain without https over http."""
        record = record_of(url)
        link = link_to("http:" + url.url.removeprefix("https:"))
        record.state = UrlState.DONE
        record.outcome = Outcome.NO_HTTPS.value
        record.error = f"{result.outcome}: {result.error}".rstrip(": ")
        record.redirect_to = link.url
        self._ledger.finish(url, record)
        self._scope.join(link, url.seed)
        self._events.fallback(url, link, now)
        self._admission.offer([link], LinkContext(depth=0, source=Source.SEED, seed=url.seed), now)
        self._first_pass.fail(url.host, now)

    def _offer_sitemaps(self, sitemaps: list[str], origin: str, now: float) -> None:
        if not sitemaps or not self._rules.follows_sitemaps:
            return
        urls = [url for text in sitemaps if (url := canonical(text, origin + "/")) is not None]
        links = [link_to(url) for url in urls]
        host = host_of(origin + "/")
        domain = registrable_domain(host)
        for link in links:
            if link.host != host and self._admission.owns(link):
                add_submitter(self._ledger, link.id, domain)
        for seed, its_links in self._scope.by_seed(links, origin):
            found_on = f"{origin}/robots.txt"
            context = LinkContext(
                0, Source.SITEMAP, kind=FetchKind.SITEMAP, found_on=found_on, seed=seed, submitter=domain
            )
            if self._first_pass.is_running:
                self._first_pass.hold(its_links, context, now)
            else:
                self._admission.offer(its_links, context, now)
