"""A single request, with the same settings as a crawl: from flags, environment and file, in the same order."""

from __future__ import annotations

import argparse
import os
import sys
from functools import cache

from gossamer.assembly.access import access_rules_of, check_plain_seeds, warnings_about
from gossamer.assembly.engine import identity_of
from gossamer.cli.options import add_some, given
from gossamer.core.url.forms import host_of
from gossamer.fetch.access import AccessTable
from gossamer.fetch.http import Fetcher, FetchRequest
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.dns import Resolution, Resolver
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.names.proxied_names import unasked, unless_failed
from gossamer.fetch.trust import check_trust
from gossamer.model.exchanges import Exchange
from gossamer.runtime.session.clock import TimeLine
from gossamer.settings.load import merged
from gossamer.settings.model import Settings
from gossamer.settings.seeds import Seed, opened_addresses

NAMES = (
    *("contact", "user_agent", "robots_token", "timeout", "max_bytes"),
    *("dns", "ca_file", "insecure", "proxy", "allow_network"),
)


def one_settings(parser: argparse.ArgumentParser) -> None:
    """Add the settings that one request needs."""
    add_some(parser, NAMES)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings, as a crawl with these options would have them."""
    return merged(*given(arguments))


@cache  # once, however many URLs are fetched
def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


class OneFetch:
    """Fetches single URLs."""

    def __init__(self, settings: Settings, seed: Seed) -> None:
        check_trust(settings.ca_file)
        check_plain_seeds(settings, [] if seed.is_guess else [seed.link.url])
        rules = access_rules_of(settings, os.environ)
        for text in warnings_about(rules).values():
            _warn(text)
        self._settings = settings
        self._time_line = TimeLine.begin()
        self._policy = AddressPolicy(settings.allow_network, opened_addresses(seed))
        self._access = AccessTable(rules) if rules else None

    async def fetch(self, url: str) -> Exchange:
        """Return the exchange of one request."""
        settings = self._settings
        now = self._time_line.now
        async with Resolver(now, server=settings.dns or None) as resolver:
            resolution = await self._resolve(resolver, host_of(url))
            if not resolution.addresses:
                return Exchange(url=url, outcome=resolution.outcome, error=resolution.error)
            limits = FetchLimits.from_timeout(settings.timeout, settings.max_bytes)
            identity = identity_of(settings)
            ca_file = settings.ca_file
            async with Fetcher(limits, identity, self._policy, now, ca_file=ca_file, access=self._access) as fetcher:
                return await fetcher.fetch(FetchRequest(url=url, addresses=resolution.addresses))

    async def _resolve(self, resolver: Resolver, host: str) -> Resolution:
        if self._access is None:
            return await resolver.resolve(host)
        now = self._time_line.now()
        known = resolver.cached(host) or unasked(self._access, host, now)
        return unless_failed(self._access, host, known or await resolver.resolve(host), now)
