"""Which seeds could not be fetched, and why? Read from the ledger, so it holds for earlier runs too."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.api.hooks import Failure
from gossamer.core.url.forms import host_of, link_to
from gossamer.engine.admission.link_following import MAX_HOPS
from gossamer.model.records import Link, Outcome, UrlRecord, UrlState
from gossamer.ports import Catalog
from gossamer.settings.seeds import Seed


def failed_seeds(seeds: Iterable[Seed], ledger: Catalog) -> list[Failure]:
    """Return the seeds that failed, were forbidden, or wait for a host that is parked."""
    failures = (_failure(seed, ledger) for seed in seeds)
    return [failure for failure in failures if failure is not None]


def _failure(seed: Seed, ledger: Catalog) -> Failure | None:
    link = seed.link
    if seed.is_guess:  # https was a guess: if there is none, the seed is the URL with http
        plain = link_to("http:" + link.url.removeprefix("https:"))
        link = plain if ledger.look_up(plain.id) is not None else link
    at, row = _redirected(link, ledger)
    if row is None:
        is_target = at.id != link.id
        return _failed(link, "not_queued", f"redirects to {at.url}, which was not queued") if is_target else None
    if row.state is UrlState.DEAD or row.outcome == Outcome.ROBOTS_DENIED.value:
        return _failed(link, row.outcome, row.error or (f"status {row.status}" if row.status else ""), row)
    host = ledger.host(host_of(row.url)) if row.state is UrlState.QUEUED else None
    if host is not None and host.park_reason and host.parked_until > 0:
        return _failed(link, "parked", host.park_reason, row)
    return None


def _redirected(link: Link, ledger: Catalog) -> tuple[Link, UrlRecord | None]:
    """Return where redirects lead to."""
    row = ledger.look_up(link.id)
    for _ in range(MAX_HOPS):
        if row is None or row.outcome != Outcome.REDIRECT.value or not row.redirect_to:
            break
        link = link_to(row.redirect_to)
        row = ledger.look_up(link.id)
    return link, row


def _failed(link: Link, outcome: str, error: str, row: UrlRecord | None = None) -> Failure:
    status, attempts = (row.status, row.attempt + 1) if row is not None else (0, 0)
    return Failure(url=link.url, host=link.host, outcome=outcome, error=error, status=status, attempts=attempts)
