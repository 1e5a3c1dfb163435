"""Creates the keyspace and the tables of a catalog."""

from __future__ import annotations

from contextlib import closing

from gossamer.backends.cassandra.catalog import CassandraCatalog
from gossamer.backends.cassandra.connect import Ring
from gossamer.backends.cassandra.writing import DEFAULT_BUCKETS, MAX_BUCKETS
from gossamer.model.errors import UsageError
from gossamer.ports.setup import SetupOptions


def init(url: str, options: SetupOptions) -> list[str]:
    """See `gossamer.ports.setup.Setup`."""
    buckets = options.buckets or DEFAULT_BUCKETS
    if buckets > MAX_BUCKETS:
        raise UsageError(f"--buckets {buckets}: expected 1 to {MAX_BUCKETS:,}")
    with closing(CassandraCatalog(url)) as catalog:
        lines = [f"Cassandra {catalog.ring.check_server()} at {catalog.name}", _keyspace(catalog.ring, options)]
        has_made = catalog.create("", buckets)
        catalog.check_rights()
        found = catalog.buckets()
        if not has_made and options.buckets not in {None, found}:
            raise UsageError(
                f"catalog {catalog.name}: its tables have {found} buckets, which cannot change; "
                f"expected --buckets {found}"
            )
        return [*lines, f"tables of the catalog: {'created' if has_made else 'were there'}, {found} buckets per host"]


def _keyspace(ring: Ring, options: SetupOptions) -> str:
    """Create the keyspace, unless it is there; return a line about it."""
    name = ring.keyspace
    servers = len(ring.session().cluster.metadata.all_hosts())
    if not ring.has_keyspace():
        copies = options.copies(servers)
        if copies > servers:
            raise UsageError(f"--replication {copies}: there are {servers} servers; expected at most as many copies")
        strategy = f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': {copies}}}"
        ring.execute(f"CREATE KEYSPACE IF NOT EXISTS $keyspace WITH replication = {strategy}")
        return f"keyspace {name}: created, {_copies(copies)}"
    query = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"
    (row,) = ring.execute(query, (name,))
    found = sum(int(value) for key, value in row.replication.items() if key != "class")
    if options.replication not in {None, found}:
        raise UsageError(
            f"{ring.label}: the keyspace {name} was there, with {_copies(found)}; expected --replication {found}, or "
            "ALTER KEYSPACE first"
        )
    return f"keyspace {name}: was there, {_copies(found)}"


def _copies(number: int) -> str:
    return "1 copy of everything" if number == 1 else f"{number} copies of everything"
