"""Certificates for servers of tests, made here: no program has to be installed for them."""

from __future__ import annotations

import ssl
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from msgspec import Struct

DAY = timedelta(days=1)


class Certificate(Struct, frozen=True):
    """A certificate with its key. `NAME.pem` and `NAME_key.pem` in a folder, once `write` was called."""

    name: str
    key: ec.EllipticCurvePrivateKey
    signed: x509.Certificate

    @property
    def pem(self) -> bytes:
        return self.signed.public_bytes(Encoding.PEM)

    @property
    def pin(self) -> str:
        """Return the public key's digest as curl compares it."""
        public = self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return f"sha256//{b64encode(sha256(public).digest()).decode()}"

    def write(self, folder: Path, password: str = "") -> None:
        """Write both files; the key encrypted if there is a password."""
        hidden: KeySerializationEncryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden)
        (folder / f"{self.name}.pem").write_bytes(self.pem)
        (folder / f"{self.name}_key.pem").write_bytes(key)


def certified(
    name: str, *hosts: str, by: Certificate | None = None, until: datetime | None = None, is_authority: bool = False
) -> Certificate:
    """Return a certificate for hosts or addresses, signed by another one or by itself; it ends tomorrow, or `until`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    ends = until or datetime.now(UTC) + DAY
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.signed.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ends - 2 * DAY)
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=is_authority or by is None, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_name(host) for host in hosts]), critical=False)
    return Certificate(name, key, builder.sign(by.key if by else key, hashes.SHA256()))


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def server_context(folder: Path, name: str) -> ssl.SSLContext:
    """Return what a server needs to speak TLS with a certificate that was written."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}_key.pem")
    return context
