"""One crawl of the whole catalogue by the program itself, and what is left behind to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gossamer.archive.reader import ArchivedRecord, ArchiveReader
from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.url.forms import canonical
from gossamer.model.records import HostRecord, UrlRecord
from tests.e2e.program import run, summary_of
from tests.hostile.catalogue_network import NETWORK
from tests.hostile.catalogue_pages import PAGES
from tests.hostile.catalogue_rules import NAMES, RULES
from tests.hostile.serving import Catalogue, HostileServer

WHOLE = Catalogue()
for part in (NETWORK, PAGES, RULES):
    WHOLE.scripts.update(part.scripts)
NOT_SEEDS = frozenset({"r09other", "b09other", "s05other", "d02alias"})
OPTIONS = (
    *("--politeness-ms", "2", "--timeout", "0.8", "--retry-wait", "0.02", "--max-wait", "1"),
    *("--max-pages-per-host", "250", "--max-depth", "250", "--max-hosts-per-domain", "25"),
    *("--address-connections", "0", "--store", "warc", "--store", "files", "--json"),
)


class Aftermath:
    """What a crawl of the catalogue left: ledger, events, archive, and what the server saw."""

    def __init__(self, server: HostileServer, out: Path, summary: dict[str, Any], stdout: str) -> None:
        self.server = server
        self.out = out
        self.summary = summary
        self.stdout = stdout
        self.events = [
            json.loads(line)
            for path in sorted((out / "events").glob("*.jsonl"))
            for line in path.read_text("utf-8").splitlines()
        ]
        self._ledger = LocalLedger(out / "state", is_readonly=True)
        self._ledger.open()

    def close(self) -> None:
        self._ledger.close()

    def url(self, name: str, path: str = "/") -> str:
        return f"http://{name}.test:{self.server.port}{path}"

    def row(self, name: str, path: str = "/") -> UrlRecord:
        """Return the catalog's row of a URL of a hostile host (or of a whole URL)."""
        row = self.find(self.url(name, path) if "://" not in name else name)
        assert row is not None, f"{name} {path} was never accepted"
        return row

    def find(self, url: str) -> UrlRecord | None:
        address = canonical(url)
        assert address is not None
        return self._ledger.look_up(self._ledger.url_id(address))

    def rows(self, name: str) -> list[UrlRecord]:
        """Return all rows of a host and its sub-hosts."""
        return [row for _, row in self._ledger.urls() if f"{name}.test" in row.url.split("/")[2]]

    def all_rows(self) -> list[UrlRecord]:
        return [row for _, row in self._ledger.urls()]

    def host(self, name: str) -> HostRecord:
        record = self._ledger.host(f"{name}.test")
        assert record is not None
        return record

    def told(self, name: str, event: str = "") -> list[dict[str, Any]]:
        """Return the events of a host."""
        host = f"{name}.test"
        return [each for each in self.events if each["host"] == host and event in ("", each["event"])]

    def records(self) -> Iterator[ArchivedRecord]:
        for path in sorted((self.out / "archive").glob("*.warc.gz")):
            yield from ArchiveReader(path)

    def archived(self, name: str, path: str = "/") -> list[ArchivedRecord]:
        """Return the response and revisit records of a URL."""
        url = self.url(name, path)
        return [each for each in self.records() if each.target == url and each.type in ("response", "revisit")]

    def times_asked(self, name: str, path: str = "/") -> int:
        return len(self.server.requests(name, path))


def crawl_catalogue(server: HostileServer, out: Path, names: Sequence[str] | None = None, *more: str) -> Aftermath:
    """Crawl hostile hosts (all of them) and return what is left."""
    chosen = names if names is not None else [name for name in WHOLE.scripts if name not in NOT_SEEDS]
    seeds = [f"http://{name}.test:{server.port}/" for name in chosen]
    options = (*OPTIONS, "--dns", server.dns_address, "--allow-network", "127.0.0.1/32", "--out", str(out), *more)
    done = run("crawl", *seeds, *options)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return Aftermath(server, out, summary_of(done.stdout), done.stdout)


def whole_server(**options: Any) -> HostileServer:
    return HostileServer(WHOLE, names=NAMES, **options)
