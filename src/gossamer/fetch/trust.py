"""Which certificate authorities are trusted? The system's, and those that the operator adds.

`--ca-file`, `SSL_CERT_FILE` and `SSL_CERT_DIR` (a list of folders, separated by colons) add authorities to
those of the system; none of them takes one away. libcurl keeps what it has read for its next connections
only if that is a single file, so several sources are joined in memory (`memfd_create`): nothing is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from gossamer.model.errors import UsageError

_BUILT_IN_FILE: Final = "/etc/ssl/certs/ca-certificates.crt"  # in libcurl as pycurl's wheel has it; Debian's
_SYSTEM_FILES: Final = (
    _BUILT_IN_FILE,
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine
)
_CERTIFICATE: Final = (
    rb"(?s)-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----.+?-----END (?:TRUSTED |X509 )?CERTIFICATE-----"
)


class TrustSource(Struct, frozen=True):
    """Where authorities come from: who names it, and its path."""

    name: str
    path: str


def trust_sources(ca_file: str = "", environment: Mapping[str, str] = os.environ) -> tuple[TrustSource, ...]:
    """Return everything that is trusted, the system's store first."""
    sources = [_system_source()]
    if environment.get("SSL_CERT_FILE"):
        sources.append(TrustSource("SSL_CERT_FILE", environment["SSL_CERT_FILE"]))
    for folder in environment.get("SSL_CERT_DIR", "").split(":"):
        if folder and os.path.isdir(folder):
            sources.append(TrustSource("SSL_CERT_DIR", folder))
    if ca_file:
        sources.append(TrustSource("--ca-file", ca_file))
    return tuple(sources)


def _system_source() -> TrustSource:
    for path in _SYSTEM_FILES:
        if os.path.exists(path):
            return TrustSource("the system's", path)
    import certifi  # 5 ms, for who needs it

    return TrustSource("certifi's", certifi.where())


def certificates_in(source: TrustSource) -> list[bytes]:
    """Return the certificates of a source; a file without any, or one that cannot be read, is an error."""
    found = [match for data in _contents(source) for match in re.findall(_CERTIFICATE, data)]
    if not found and not os.path.isdir(source.path):
        raise UsageError(
            f"{source.name} {source.path}: no certificate in it; expected PEM (-----BEGIN CERTIFICATE-----)"
        )
    return found


def _contents(source: TrustSource) -> Iterator[bytes]:
    path = Path(source.path)
    try:
        files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
        for file in files:
            yield file.read_bytes()
    except OSError as error:
        raise UsageError(f"{source.name} {source.path}: cannot read it: {error.strerror or error}") from error


def check_trust(ca_file: str) -> None:
    """Raise UsageError if something that the operator added cannot be used."""
    for source in trust_sources(ca_file)[1:]:
        if not os.path.isdir(source.path) and not any(re.search(_CERTIFICATE, data) for data in _contents(source)):
            certificates_in(source)  # raises


def bundle(sources: Sequence[TrustSource]) -> str:
    """Return the path of one file with all authorities, for libcurl; empty if that is the path built into it."""
    if len(sources) > 1:
        return _joined(tuple(sources))
    return "" if sources[0].path == _BUILT_IN_FILE else sources[0].path


@cache  # the file lives as long as the process: libcurl opens it by its path
def _joined(sources: tuple[TrustSource, ...]) -> str:
    certificates = dict.fromkeys(certificate for source in sources for certificate in certificates_in(source))
    fd = os.memfd_create("certificates")
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(b"\n".join(certificates) + b"\n")
    return f"/proc/self/fd/{fd}"
