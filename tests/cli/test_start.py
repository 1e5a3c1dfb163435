"""What the start of a crawl imports. Time is measured by benchmarks/startup.py; here, what it depends on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gossamer.model import events, figures, records, state

MAX_OURS = 352
# Each is needed by some crawls only, and takes a millisecond or brings others that do.
NOT_AT_START = """
    confluent_kafka cassandra boto3 psycopg redis pymongo pyarrow pypdf turbohtml re2 tomllib
    difflib secrets pycurl pycares idna csv json.encoder xml.parsers.expat gossamer.cli.cluster.node
    gossamer.runtime.cluster.node_agent gossamer.engine.cluster.node gossamer.runtime.stores.publishing
    gossamer.runtime.stores.segment_uploads
    gossamer.parse.pdf.pdf gossamer.parse.feeds.sitemap gossamer.parse.text.article gossamer.parse.feeds.feeds
    gossamer.core.content.written_dates gossamer.web gossamer.core.revisit.text_change
    gossamer.fetch.curl.client gossamer.fetch.names.dns_channel gossamer.archive.files
    gossamer.runtime.stores.uploads gossamer.runtime.hub.reviewing gossamer.plugins
    gossamer.ports.shared_ledger gossamer.reading.host_view gossamer.sim brotli zstandard html
    html.entities gossamer.settings.changes gossamer.reading.host_states
    gossamer.reading.node_folders gossamer.fetch.cookies gossamer.engine.cluster.rehoming
    gossamer.runtime.recovery.unsaved_facts gossamer.core.links.first_pass gossamer.telemetry.crawl_log
    gossamer.telemetry.view gossamer.ports gossamer.cli.dashboard_process
""".split()
_CRAWL = """
import sys
from gossamer.cli.main import main
status = main(["crawl", "http://127.0.0.1:9/", "--allow-network", "127.0.0.0/8", "-o", sys.argv[1], "--max-time", "1"])
print("imported", *sys.modules)
"""


def test_a_crawl_imports_only_what_every_crawl_needs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CRAWL, str(tmp_path / "crawl")], check=True, capture_output=True, text=True
    )
    imported = set(done.stdout.rpartition("imported")[2].split())
    assert "gossamer.report.build" in imported
    assert imported & set(NOT_AT_START) == set()
    assert len([name for name in imported if name.startswith("gossamer")]) <= MAX_OURS


def test_records_that_are_decoded_at_every_start_have_types_instead_of_text() -> None:
    for module in (events, figures, records, state):
        for record in vars(module).values():
            if isinstance(record, type) and record.__module__ == module.__name__:
                kinds = vars(record).get("__annotations__", {})
                assert not [name for name, kind in kinds.items() if isinstance(kind, str)], record
