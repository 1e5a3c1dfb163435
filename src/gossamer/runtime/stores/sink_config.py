"""The configuration of sinks, from the settings of a crawl."""

from __future__ import annotations

import socket
from pathlib import Path

from gossamer import __version__
from gossamer.runtime.stores.sinks import SinkConfig
from gossamer.runtime.stores.upload_factory import UploadPlan
from gossamer.settings.model import RobotsUnreachable, Settings
from gossamer.settings.plugins import SINK, of_kind


def sink_config(settings: Settings, folder: Path, plan: UploadPlan, user_agent: str) -> SinkConfig:
    """Return the configuration of all workers' sinks."""
    return SinkConfig(
        stores=settings.store,
        out=str(folder),
        archive_prefix=plan.archive_prefix,
        save_interval=settings.save_interval,
        warcinfo={
            "software": f"Gossamer/{__version__}",
            "robots": _robots_policy(settings),
            "http-header-user-agent": user_agent,
            "operator": settings.contact or "unknown",
            "hostname": socket.gethostname() or "localhost",
            "isPartOf": folder.name,
        },
        max_file_bytes=plan.max_file_bytes,
        plugins=of_kind(settings.plugin, SINK),
    )


def _robots_policy(settings: Settings) -> str:
    """Return how robots.txt is obeyed, for the archive's own description."""
    is_strict = settings.robots_unreachable is RobotsUnreachable.DENY
    own = f"not obeyed at own hosts: {' '.join(settings.own_host)}" if settings.own_host else ""
    return ", ".join(filter(None, ("RFC 9309", "" if is_strict else "unreachable=allow", own)))
