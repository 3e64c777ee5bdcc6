"""Certificates for servers of one machine that speak TLS: self-signed, made once."""

from __future__ import annotations

import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sluice_aio.base.ports import HOST
from sluice_aio.base.secret_files import ensure_secret

_VALID: Final = datetime.timedelta(days=3650)


def ensure_certificate(certificate: Path, key: Path) -> None:
    """Make a certificate for 127.0.0.1, which everybody may read, and its key; both stay once they are there."""
    if certificate.exists() and key.exists():
        return
    certificate.unlink(missing_ok=True)
    key.unlink(missing_ok=True)
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sluice")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(private, hashes.SHA256())
    )
    encoded = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    ensure_secret(key, encoded)
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
