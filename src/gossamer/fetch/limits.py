"""Limits on the time and size of an answer, and on open files.

All times are in seconds. `FetchLimits.from_timeout` derives all of them from the one
number of the command line.
"""

from __future__ import annotations

import resource
from typing import Final

from msgspec import Struct

FILES_FOR_OTHERS: Final = 40  # ledger, archive, events, sockets of the loop and the resolver


class FetchLimits(Struct, frozen=True, gc=False):
    """The limits of a request, and of the connections kept for more. Each is enforced whatever the server does."""

    connect_timeout_s: float = 10.0  # TCP, and once more for the TLS handshake
    first_byte_timeout_s: float = 10.0  # from the request's last byte to the end of the response head
    silence_s: float = 10.0  # between two pieces of a body
    total_timeout_s: float = 30.0  # from the request to the end of the answer
    max_bytes: int = 5_000_000  # of the body, on the wire and decoded, each
    max_header_bytes: int = 256 * 1024
    max_header_line_bytes: int = 64 * 1024
    max_headers: int = 1000
    max_interim_answers: int = 20  # 1xx heads before the final one
    max_idle_connections: int = 1024  # kept for the next request, plain and TLS each

    @classmethod
    def from_timeout(cls, timeout_s: float, max_bytes: int = 5_000_000) -> FetchLimits:
        """Derive all times from `--timeout`: that long for each step, three times that for a whole answer."""
        return cls(
            connect_timeout_s=timeout_s,
            first_byte_timeout_s=timeout_s,
            silence_s=timeout_s,
            total_timeout_s=3 * timeout_s,
            max_bytes=max_bytes,
        )


def max_connections(files: int) -> int:
    """Return how many connections may be in use if that many files may be open; as many are for idle ones."""
    return max(1, (files - FILES_FOR_OTHERS) // 2)


def files_for(connections: int) -> int:
    """Return how many files must be allowed for a number of connections in use."""
    return FILES_FOR_OTHERS + 2 * connections


def max_idle_connections(files: int) -> int:
    """Return how many idle connections may be kept, plain and TLS each, if that many files may be open."""
    return max(1, (files - FILES_FOR_OTHERS) // 4)


def raise_file_limit(wanted: int = 65_536) -> int:
    """Raise the soft limit of open files towards `wanted`, within the hard limit; return the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= target:
        return soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return target
