"""Keeps the messages of other nodes that are not received, or not in full: nothing leaves a ledger and is lost."""

from __future__ import annotations

from hashlib import blake2b

from gossamer.archive.recovery import ASIDE_FOLDER
from gossamer.archive.writer import sync_folder
from gossamer.backends.local.folder import CrawlFolder

REFUSED = "message_refused"
MAX_SENDER_CHARS = 100


def set_message_aside(folder: CrawlFolder, links: bytes) -> str:
    """Store a message, durable on return; return its place in the folder, or nothing if it is there already."""
    aside = folder.path / ASIDE_FOLDER
    name = f"message-{blake2b(links, digest_size=8).hexdigest()}.msgpack"
    if (aside / name).exists():
        return ""
    aside.mkdir(exist_ok=True)
    CrawlFolder(aside).write(name, links)
    sync_folder(aside)
    return f"{ASIDE_FOLDER}/{name}"


def refusal(shard: int, problem: str, place: str, sender: bytes = b"") -> str:
    """Return what to tell the operator; the ledger of a stopped crawl does not say who sent a message."""
    by = f" {sender.decode('utf-8', 'replace')[:MAX_SENDER_CHARS]}" if sender else ""
    return f"message{by} to shard {shard}: {problem}; it is kept in {place}"
