"""What verbs read of a crawl: the same for a folder (`reading/folder`) and for a cluster (`reading/cluster`)."""

from __future__ import annotations

from typing import Protocol

from gossamer.model.figures import Figures, Totals
from gossamer.model.state import CrawlState
from gossamer.ports import Catalog
from gossamer.reading.host_states import HostTally
from gossamer.reading.node_folders import NodeFolders
from gossamer.settings.model import Settings


class OpenCrawl(Protocol):
    """A crawl whose ledger is open, for reading or by the crawl itself."""

    @property
    def name(self) -> str:
        """For people: the path of its folder, or its ledger without a password."""
        ...

    @property
    def folders(self) -> NodeFolders:
        """Its folder, or those of its nodes: archive, index and events."""
        ...

    @property
    def ledger(self) -> Catalog:
        """What is known about URLs, hosts and domains."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings of the crawl."""
        ...


class CrawlView(OpenCrawl, Protocol):
    """A crawl that is read from outside, at one moment."""

    @property
    def state(self) -> CrawlState:
        """The state of the whole crawl."""
        ...

    @property
    def totals(self) -> Totals:
        """What was counted so far."""
        ...

    @property
    def now(self) -> float:
        """When it was opened."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether the crawl was running then."""
        ...

    def figures(self) -> Figures:
        """Return the figures of the crawl."""
        ...

    def hosts(self) -> HostTally:
        """Return the hosts counted by state."""
        ...
