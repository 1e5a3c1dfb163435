"""Numbers and switches of the engine."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from gossamer.core.dedup.scheme import NearDup
from gossamer.core.revisit.schedule import RevisitRules
from gossamer.core.spam.hosts import SpamUse


class CrawlRules(Struct, frozen=True):
    robots_token: str = "gossamer"  # noqa: S105 - a name, not a secret
    follows_sitemaps: bool = True
    reads_sitemaps_first: bool = False
    follows_duplicates: bool = True
    cooldown_s: float = 0.0
    max_queued: int | None = None
    max_oversize: int | None = None  # answers over the size limit, after which deep links to their host are refused
    max_redirects: int = 5  # in a row
    continues_after_target: bool = False
    max_hosts_per_domain: int = 1000
    watches_traps: bool = True
    near_dup: NearDup = NearDup.MINHASH
    revisits: RevisitRules | None = None  # None: nothing is fetched again
    host_ranks: Mapping[str, float] = {}  # from 0 to 1, by the operator, for hosts that are new
    spam: SpamUse = SpamUse.DEMOTE
    max_requisites: int = 0  # of one page, to be fetched; 0: none
    identified: tuple[str, ...] = ()  # patterns of hosts that requests identify themselves to
    insecure: tuple[str, ...] = ()  # patterns of hosts whose certificates are not checked
