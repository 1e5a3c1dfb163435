"""Where the folders of a cluster's nodes are: each has the archive, the index and the events of its node.

A node reports its machine and its folder. A folder of this machine is read directly; one that lies elsewhere can be
named by the operator once it is mounted or copied here (`--node-folder NAME=DIR`). What can be read is in `found`;
whatever is in the other folders is counted by those who would read it, never left out in silence.

A crawl that was migrated from a folder has archive files whose names do not say which node has them: at first none, the
folder stands for itself (`ORIGIN_NODE`); then the node that took it over.
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.ledger.archive_names import node_of
from gossamer.model.errors import UsageError
from gossamer.model.state import ORIGIN_NODE, Origin
from gossamer.telemetry.text import printable

if TYPE_CHECKING:
    from gossamer.ports.shared_ledger import NodeId, NodeView

NODE_FILE = "node"  # in `state/`: the node and the incarnation that use the folder


class NodeElsewhere(Struct, frozen=True):
    """A node whose folder cannot be read here."""

    name: str
    place: str  # its machine and its folder, as it reported them


class NodeFolders(Struct, frozen=True):
    """The folders of all nodes of a crawl."""

    found: Mapping[str, CrawlFolder]
    elsewhere: Sequence[NodeElsewhere] = ()
    taken_by: str = ""  # the node that has the folder which the crawl was migrated from
    from_origin: Collection[str] = ()  # archive files that were in it

    def home_of(self, node: str) -> str:
        """Return which node has the folder of a node."""
        return (self.taken_by or node) if node == ORIGIN_NODE else node

    def node_of(self, file: str) -> str:
        """Return the node that has an archive file; empty if there is only one machine."""
        return self.home_of(ORIGIN_NODE) if file in self.from_origin else node_of(file)

    def folder_of(self, file: str) -> CrawlFolder | None:
        """Return the folder that an archive file is in; None if it cannot be read here."""
        return self.found.get("") or self.found.get(self.node_of(file))

    @property
    def events(self) -> list[Path]:
        """The folders of events."""
        return [folder.events for folder in self.found.values()]

    @property
    def hint(self) -> str:
        """Where what cannot be read is, and how to name it; empty if everything is here."""
        if not self.elsewhere:
            return ""
        places = ", ".join(f"{node.name} ({node.place})" for node in self.elsewhere)
        return f"of nodes elsewhere: {places}; --node-folder NAME=DIR names a copy"


def one_folder(folder: CrawlFolder) -> NodeFolders:
    """Return the folder of a crawl on one machine."""
    return NodeFolders({"": folder})


def find_folders(
    nodes: Mapping[NodeId, NodeView],
    given: Mapping[str, Path],
    origin: Origin | None = None,
    from_origin: Collection[str] = (),
) -> NodeFolders:
    """Find the folders of the nodes of a crawl; `given` are those that the operator named."""
    taken_by = origin.node if origin is not None else ""
    reported: dict[str, NodeView] = {}
    for node, view in nodes.items():
        is_known = node.name in reported or (taken_by and node.name == ORIGIN_NODE)
        if not is_known or (view.status.folder and node.name in reported):
            reported[node.name] = view
    if unknown := sorted(given.keys() - reported.keys()):
        known = ", ".join(sorted(reported)) or "none"
        raise UsageError(f"--node-folder {printable(unknown[0])}: no such node; there are: {known}")
    found: dict[str, CrawlFolder] = {}
    elsewhere: list[NodeElsewhere] = []
    for name, view in sorted(reported.items()):
        folder = _given_folder(name, given[name]) if name in given else _own_folder(name, view)
        if folder is not None:
            folder.require_own_entries()
            found[name] = folder
        elif view.totals.fetches or view.status.folder:
            elsewhere.append(NodeElsewhere(name, _place(view)))
    return NodeFolders(found, elsewhere, taken_by, frozenset(from_origin))


def _given_folder(name: str, path: Path) -> CrawlFolder:
    folder = CrawlFolder(path)
    if not folder.archive.is_dir() and not folder.events.is_dir():
        raise UsageError(f"--node-folder {name}={path}: not the folder of a node: it has no archive/ and no events/")
    owner = node_in(folder)
    if owner not in ("", name):
        raise UsageError(f"--node-folder {name}={path}: the folder of node {owner}")
    return folder


def _own_folder(name: str, view: NodeView) -> CrawlFolder | None:
    """Return the folder of a node if it is on this machine, and still the node's."""
    if not view.status.folder or view.status.machine != socket.gethostname():
        return None
    folder = CrawlFolder(Path(view.status.folder))
    if name == ORIGIN_NODE and folder.holds_crawl() and not node_in(folder):
        return folder
    return folder if node_in(folder) == name else None


def node_in(folder: CrawlFolder) -> str:
    """Return which node uses a folder; empty if it does not say."""
    try:
        return (folder.state / NODE_FILE).read_text("utf-8").partition(" ")[0].strip()
    except OSError:
        return ""


def _place(view: NodeView) -> str:
    status = view.status
    return f"{status.machine}:{status.folder}" if status.folder else "it has not reported its folder"
