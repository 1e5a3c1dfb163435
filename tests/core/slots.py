"""Hosts, URLs and tables for tests of the core, each as plain as it can be."""

from __future__ import annotations

from gossamer.core.frontier.host_table import HostTable
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder, ordering
from gossamer.core.frontier.workbench import DomainSlot, HostSlot, OriginRules
from gossamer.core.robots.rules import ALLOW_ALL
from gossamer.core.url.forms import link_to
from gossamer.model.records import DomainRecord, HostRecord, QueuedUrl

NOW = 1000.0
FOREVER = float("inf")


def lone_host(name: str, domain: DomainSlot | None = None, address: str = "10.0.0.1", connections: int = 1) -> HostSlot:
    """Return a host that is in no table."""
    slot = domain or DomainSlot(name)
    host = HostSlot(HostRecord(name, slot.name, addresses=(address,)), name.encode(), slot, connections=connections)
    slot.hosts.append(host)
    return host


def queued_url(host: HostSlot, path: str, *, seq: int = 1, not_before: float = 0.0) -> QueuedUrl:
    """Return a URL of a host, as its queue has it."""
    link = link_to(f"http://{host.name}/{path}")
    return QueuedUrl(link.url, link.id, host.name, 0, seq, depth=0, not_before=not_before)


def table_with(limits: FrontierLimits | None = None) -> HostTable:
    """Return a table without hosts."""
    return HostTable(limits or FrontierLimits(), ordering(QueueOrder.BREADTH))


def enter(table: HostTable, name: str = "a.test", *, domain: str = "", connections: int = 1) -> HostSlot:
    """Bring in a host whose address is known for ever, and whose robots.txt allows all."""
    domain = domain or name
    record = HostRecord(name, domain, addresses=("10.0.0.1",), addresses_until=FOREVER)
    host = table.enter(record, DomainRecord(domain), connections)
    host.origins[f"http://{name}"] = OriginRules(rules=ALLOW_ALL, expires_at=FOREVER)
    return host
