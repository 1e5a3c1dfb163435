"""`gossamer init-cluster URL`: create what a ledger, a catalog or a feed needs on its servers.

Keyspace, tables, schema and topic; versions and rights are checked, too. It can be repeated.
"""

from __future__ import annotations

import argparse

from gossamer.backends.registry import CREATED, Purpose, create
from gossamer.model.errors import UsageError
from gossamer.ports.setup import MAX_PARTITIONS, SetupOptions

_EXAMPLES = """What is there is left as it is, so the command can be repeated. It prints what was created and what
was there, and ends with status 2 if a server cannot be reached, is too old, or refuses the user.

examples:
  gossamer init-cluster cassandra://db1:9042,db2:9042/catalog --replication 3
  gossamer init-cluster kafka://broker:9092/pages --partitions 12
  gossamer init-cluster redis://127.0.0.1:6379/0/example
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    parser.add_argument("url", metavar="URL", help="of a ledger (--ledger), a catalog (--catalog) or a feed (--feed)")
    parser.add_argument(
        "--for",
        dest="purpose",
        choices=[purpose.value for purpose in CREATED],
        help="what the URL is for, if its form does not say so: postgresql://…/database/NAME is a ledger otherwise",
    )
    parser.add_argument(
        "--replication", type=int, metavar="N", help="copies of everything (3, or as many as there are servers)"
    )
    parser.add_argument("--partitions", type=int, metavar="N", help="of a topic, 1 to 1,024 (64)")
    parser.add_argument("--buckets", type=int, metavar="N", help="into which Cassandra's partitions are divided")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    for name, maximum in (("replication", 100), ("partitions", MAX_PARTITIONS), ("buckets", 1024)):
        value = getattr(arguments, name)
        if value is not None and not 1 <= value <= maximum:
            raise UsageError(f"--{name} {value}: expected 1 to {maximum:,}")
    purpose = Purpose(arguments.purpose) if arguments.purpose else None
    options = SetupOptions(arguments.replication, arguments.partitions, arguments.buckets)
    for line in create(arguments.url, purpose, options):
        print(line)
    return 0
