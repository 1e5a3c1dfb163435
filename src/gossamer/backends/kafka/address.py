"""From a ledger URL to its two engines: `kafka://b1:9092,b2/NAME?cassandra=h1:9042,h2/KEYSPACE`.

User and password stand before an @, in both halves, or are in GOSSAMER_KAFKA_PASSWORD and GOSSAMER_CASSANDRA_PASSWORD.
Further options are those of librdkafka (`&security.protocol=SASL_SSL`), and `cassandra_tls=CA_FILE`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote

from msgspec import Struct

from gossamer.backends.clients.cassandra import Servers
from gossamer.model.errors import UsageError

EXPECTED = "expected kafka://host:port,…/NAME?cassandra=host:port,…/keyspace"
KAFKA_PASSWORD, CASSANDRA_PASSWORD = "GOSSAMER_KAFKA_PASSWORD", "GOSSAMER_CASSANDRA_PASSWORD"
_KAFKA_PORT, _CASSANDRA_PORT = 9092, 9042
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_KEYSPACE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}")
_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")


class CrawlAddress(Struct, frozen=True):
    """Where a crawl is."""

    name: str
    kafka: Servers
    cassandra: Servers
    keyspace: str
    kafka_options: dict[str, str] = {}
    cassandra_tls: str = ""  # a file with the certificates to trust

    @property
    def topic(self) -> str:
        """The topic for links."""
        return f"{self.name}.frontier"

    @property
    def shown(self) -> str:
        """The URL for people: without users and passwords."""
        return f"kafka://{self.kafka.text}/{self.name}?cassandra={self.cassandra.text}/{self.keyspace}"


def place_of(url: str, environment: Mapping[str, str]) -> CrawlAddress:
    """Return where the crawl of a URL is."""
    rest, _, query = url.removeprefix("kafka://").partition("?")
    brokers, _, name = rest.rpartition("/")
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise UsageError(f"{_safe(url)}: what follows the ? are options name=value, joined by &; {EXPECTED}") from None
    hosts, _, keyspace = options.pop("cassandra", "").rpartition("/")
    kafka = _servers(url, brokers, _KAFKA_PORT, environment.get(KAFKA_PASSWORD, ""))
    if not _NAME.fullmatch(name):
        raise UsageError(f"{_safe(url)}: the name of a crawl has up to 100 letters, digits and ._-; {EXPECTED}")
    if not hosts or not _KEYSPACE.fullmatch(keyspace):
        raise UsageError(f"{_safe(url)}: no keyspace of Cassandra (letters, digits and _); {EXPECTED}")
    return CrawlAddress(
        name=name,
        kafka=kafka,
        cassandra=_servers(url, hosts, _CASSANDRA_PORT, environment.get(CASSANDRA_PASSWORD, "")),
        keyspace=keyspace,
        cassandra_tls=options.pop("cassandra_tls", ""),
        kafka_options=options,
    )


def _servers(url: str, text: str, port: int, password: str) -> Servers:
    login, at, places = text.rpartition("@")
    user, colon, given = login.partition(":")
    found = [_HOST.fullmatch(place) for place in places.split(",")]
    hosts = tuple((each["name"], int(each["port"] or port)) for each in found if each is not None)
    if len(hosts) < len(found) or any(not 0 < number < 65536 for _, number in hosts):
        raise UsageError(f"{_safe(url)}: not a host with a port; {EXPECTED}")
    if at and not user:
        raise UsageError(f"{_safe(url)}: no user before the @; {EXPECTED}")
    return Servers(hosts, unquote(user), (unquote(given) if colon else password) if user else "")


def _safe(url: str) -> str:
    return re.sub(r"(//|=)[^/=&]*@", r"\1", url)
