"""What we or the operator must act on. What the web does to us is a value (`records.Outcome`).

    GossamerError
    ├── UsageError            wrong option, key, seed or folder     exit 2, nothing was started
    │   └── FolderBusyError   another process owns the crawl folder
    ├── DiskFullError         no room for the archive or the ledger exit 3, can be resumed
    └── CorruptFolderError    the folder cannot be what we wrote    exit 1

A message says where, what, and what would be right, in one line.
"""


class GossamerError(Exception):
    """Base of all errors that Gossamer raises on purpose."""

    exit_status = 1


class UsageError(GossamerError):
    """The command, a setting, a seed or the folder is not usable as given."""

    exit_status = 2


class FolderBusyError(UsageError):
    """Another process owns the crawl folder."""


class DiskFullError(GossamerError):
    """There is no room left for the archive or the ledger."""

    exit_status = 3


class CorruptFolderError(GossamerError):
    """The crawl folder holds something that Gossamer cannot have written."""
