"""Errors that we or the operator must act on. What servers do is a value (`records.Outcome`).

    GossamerError
    ├── UsageError            wrong option, key, seed or folder     exit 2, nothing was started
    │   ├── FolderBusyError   another process owns the crawl folder
    │   └── NodeNameTakenError  a live node of the cluster has this name
    ├── NotListeningError     the crawl begins or ends              exit 1; the same command may be obeyed later
    ├── DiskFullError         no space for the archive or ledger    exit 3, can be resumed
    ├── SeedsFailedError      no seed could be fetched              raised by the Python API only
    ├── PluginError           a plugin raised                       exit 1, can be resumed
    ├── CorruptFolderError    the folder cannot be what we wrote    exit 1
    ├── CorruptRowError       a row of the shared ledger cannot be what we wrote    exit 1
    ├── LedgerUnavailableError  the shared ledger cannot be reached    exit 2; a node that runs tries again
    ├── StoreUnavailableError  a store of pages cannot be reached     exit 11, can be resumed; a crawl that runs waits
    └── LeaseLostError        this node's shards may have other owners: drop the copy, join again

A message states where, what, and what was expected, in one line.
"""

from __future__ import annotations

import errno

import msgspec


class GossamerError(Exception):
    """Base of all errors that Gossamer raises on purpose."""

    exit_status = 1


class UsageError(GossamerError):
    """The command, a setting, a seed or the folder is not usable as given."""

    exit_status = 2


class NotListeningError(GossamerError):
    """A crawl that owns its folder, but takes no commands: it begins or ends."""


class FolderBusyError(UsageError):
    """Another process owns the crawl folder."""


class NodeNameTakenError(UsageError):
    """A live node of the cluster has this name."""


class DiskFullError(GossamerError):
    """There is no space left for the archive or the ledger."""

    exit_status = 3


class SeedsFailedError(GossamerError):
    """No seed could be fetched, so there is nothing to crawl."""


class IncompleteCrawlWarning(UserWarning):
    """A crawl has ended although URLs are held back: what a program has read may not be all. Python API only."""


class PluginError(GossamerError):
    """A plugin raised, or returned what it must not."""

    def __init__(self, plugin: str, what: str) -> None:
        super().__init__(f"plugin {plugin!r}: {what}")
        self.plugin = plugin

    @classmethod
    def of(cls, plugin: str, doing: str, error: BaseException) -> PluginError:
        """Return an exception of a plugin as ours."""
        return cls(plugin, f"{doing}: " + " ".join(f"{type(error).__name__}: {error}".split())[:300])


class CorruptFolderError(GossamerError):
    """The crawl folder contains something that Gossamer cannot have written."""


class CorruptRowError(GossamerError):
    """The shared ledger contains a row that no node can have written: its shard cannot be crawled."""

    @classmethod
    def of(cls, table: str, key: bytes | str, problem: object) -> CorruptRowError:
        """Return the error of a row; its key may be a name."""
        name = key if isinstance(key, str) else key[:32].hex()
        text = " ".join(f"{name[:100]!r} in {table}: {problem}".split())[:300]
        return cls(f"the ledger's row {text}; remove or restore it: until then no node can crawl its shard")


class LedgerUnavailableError(GossamerError):
    """The shared ledger cannot be reached, or cannot accept anything now. A node that runs waits for it."""

    exit_status = 2


class StoreUnavailableError(GossamerError):
    """A store of pages cannot be reached, or cannot accept anything now. It ends a crawl only if that is stopped."""

    exit_status = 11


class LeaseLostError(GossamerError):
    """The node's lease has ended, or what it knows of its shards is not what the shared ledger has."""


_SERVERS = (
    *(f"gossamer.backends.{server}." for server in ("redis", "postgresql", "kafka")),
    "gossamer.reading.cluster",
)
HOW_TO_REBUILD = "; restore it from a copy, or rebuild it from the archive: gossamer verify DIR --mend"


def damage_of(error: BaseException) -> CorruptFolderError | CorruptRowError | None:
    """Return an error that only damaged state can cause as one of ours; None for any other."""
    if isinstance(error, BaseExceptionGroup):  # of the tasks of a run
        found = [damage_of(one) for one in error.exceptions]
        return found[0] if all(found) else None
    kind = type(error)
    if _was_reading_server(error):
        text = " ".join(f"{kind.__name__}: {error}".split())[:300]
        return CorruptRowError(f"the ledger has a value that no node can have written ({text})")
    is_of_store = isinstance(error, msgspec.DecodeError) or kind.__module__.partition(".")[0] == "lmdb"
    # What the ledger's own code cannot make sense of, it did not write.
    is_nonsense = isinstance(error, ValueError | LookupError | AssertionError) and _was_reading_ledger(error)
    if not is_of_store and not is_nonsense:
        return None
    return CorruptFolderError(f"the ledger is damaged ({kind.__name__}: {error}){HOW_TO_REBUILD}")


def _was_reading_server(error: BaseException) -> bool:
    """Return whether an error is of what the server of a shared ledger, or of a catalog, has answered."""
    if not isinstance(error, ValueError | TypeError | LookupError | OverflowError | msgspec.MsgspecError):
        return False
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").startswith(_SERVERS):
            return True
        trace = trace.tb_next
    return False


def _was_reading_ledger(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        function = trace.tb_frame.f_code.co_name
        if module.startswith("gossamer.backends.local") or (module, function) == ("gossamer.engine.crawl", "restore"):
            return True
        trace = trace.tb_next
    return False


def as_our_error(error: Exception) -> GossamerError:
    """Return a system error as a GossamerError; a full disk has its own type."""
    if isinstance(error, GossamerError):
        return error
    damage = damage_of(error)
    if damage is not None:
        return damage
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(f"{error.filename or 'the crawl folder'}: no space left; free some space and resume")
    if isinstance(error, PermissionError):
        return GossamerError(f"{error.filename or 'a file'}: permission denied: this user may not read or change it")
    return GossamerError(f"{type(error).__name__}: {error}")
