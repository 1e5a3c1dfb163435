"""A single request, with the same address policy, limits and identity as a crawl."""

from __future__ import annotations

import argparse

from gossamer.core.url import host_of
from gossamer.engine_assembly import identity_of
from gossamer.exchanges import Exchange
from gossamer.fetch.dns import Resolver
from gossamer.fetch.guard import AddressPolicy
from gossamer.fetch.http import Fetcher, FetchRequest
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.trust import check_trust
from gossamer.runtime.clock import TimeLine
from gossamer.settings.load import merged
from gossamer.settings.model import Settings
from gossamer.settings.seeds import Seed, opened_addresses


def one_settings(parser: argparse.ArgumentParser) -> None:
    """Add the settings that one request needs."""
    parser.add_argument("--contact", default="", metavar="URL-OR-MAIL", help="who is making the request")
    parser.add_argument("--user-agent", default="", metavar="TEXT", help="the User-Agent header")
    parser.add_argument("--dns", default="", metavar="HOST:PORT", help="use this DNS server and no other")
    parser.add_argument("--ca-file", default="", metavar="FILE", help="further certificate authorities, as PEM")
    parser.add_argument("--timeout", default="10", metavar="S", help="for each step (10)")
    parser.add_argument(
        "--allow-network", action="append", default=[], metavar="CIDR", help="private or loopback range to allow"
    )


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings from the options of `one_settings`."""
    names = ("contact", "user_agent", "dns", "timeout", "allow_network", "ca_file")
    return merged(("command line", {name: getattr(arguments, name) for name in names}))


class OneFetch:
    """Fetches single URLs."""

    def __init__(self, settings: Settings, seed: Seed) -> None:
        check_trust(settings.ca_file)
        self._settings = settings
        self._time_line = TimeLine.begin()
        self._policy = AddressPolicy(settings.allow_network, opened_addresses(seed))

    async def fetch(self, url: str) -> Exchange:
        """Return the exchange of one request."""
        settings, now = self._settings, self._time_line.now
        async with Resolver(now, server=settings.dns or None) as resolver:
            resolution = await resolver.resolve(host_of(url))
            if not resolution.addresses:
                return Exchange(url=url, outcome=resolution.outcome, error=resolution.error)
            limits = FetchLimits.from_timeout(settings.timeout, settings.max_bytes)
            ca_file = settings.ca_file
            async with Fetcher(limits, identity_of(settings), self._policy, now, ca_file=ca_file) as fetcher:
                return await fetcher.fetch(FetchRequest(url=url, addresses=resolution.addresses))
