"""Which archive files does a crawl have, and how are they opened? By its stores."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.objects import RemoteArchive
from gossamer.errors import UsageError
from gossamer.ports.object_store import ObjectStore
from gossamer.settings.stores import S3, scheme_of


def archive_files(archive: Path | None, stores: Sequence[str]) -> ArchiveFiles:
    """Return the archive files of a crawl that has these stores; its folder is None if it is on another machine."""
    url = s3_url(stores)
    return ArchiveFiles(archive, (lambda: RemoteArchive(open_s3(url))) if url else None)


def s3_url(stores: Sequence[str]) -> str:
    """Return the S3 store among several; empty if there is none."""
    return next((store for store in stores if scheme_of(store) == S3), "")


def open_s3(url: str) -> ObjectStore:
    """Return the objects of an S3 store."""
    if find_spec("boto3") is None:
        raise UsageError("s3:// needs the package boto3: pip install 'gossamer[s3]'")
    from gossamer.backends.s3.store import S3Store

    return S3Store(url)
