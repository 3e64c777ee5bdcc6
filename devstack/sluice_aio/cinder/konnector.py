"""The konnector of a node: its configuration, its certificate, and its state outside the process.

Volumes stay attached when it ends, as in production.  ``down`` ends them like a shutdown of the machine, and the next
``up`` attaches them again.
"""

from __future__ import annotations

import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sluice_aio.base.files import ensure_secret, section
from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import HOST
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.errors import LaunchError
from sluice_aio.keystone import seed
from sluice_block.konnector.konnector import Konnector
from sluice_sandbox.files import cache_folder

_VALID: Final = datetime.timedelta(days=3650)
SERVICE: Final = "konnector"


def ensure_certificate(certificate: Path, key: Path) -> None:
    """Create a certificate for 127.0.0.1, readable by all users, and its key; existing files stay."""
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


def run_folder(layout: Layout) -> Path:
    """Folder of its socket and of those of its volumes; a short path, because Linux refuses long socket paths."""
    return layout.run / f"k{layout.suffix}"


def state_folder(layout: Layout) -> Path:
    """Folder of the attachments."""
    return layout.data / f"{SERVICE}{layout.suffix}"


def log_folder(layout: Layout) -> Path:
    """The logs of requests of volumes."""
    return layout.logs / f"volumes{layout.suffix}"


def write_konnector(layout: Layout, setup: Setup) -> None:
    """Its configuration; with Keystone it can be called over TLS, too.

    :param layout: the cluster as its node sees it
    """
    name = f"{SERVICE}{layout.suffix}"
    options = {
        "node": layout.node,
        "run_dir": str(run_folder(layout)),
        "state_dir": str(state_folder(layout)),
        "cache_dir": str(cache_folder() / "nbdkit"),
        "log_dir": str(log_folder(layout)),
        "agent_socket": str(layout.agent_socket),
        "code_dir": str(layout.code),
        "snapshot_dir": str(layout.snapshots),
    }
    logins = ""
    if setup.auth == KEYSTONE:
        key = layout.configs / f"{SERVICE}.key"
        ensure_certificate(layout.konnector_certificate, key)
        options |= {"bind": f"{HOST}:{layout.ports[name]}"}
        options |= {"tls_cert": str(layout.konnector_certificate), "tls_key": str(key)}
        logins = "\n" + section("keystone_authtoken", seed.authtoken(layout, "sluice"))
    path = layout.configs / f"{name}.conf"
    path.touch(mode=0o600)  # it may hold a password
    path.write_text(section(SERVICE, options) + logins, encoding="utf-8")


def release(layout: Layout) -> None:
    """End the volumes that are attached, on both nodes.

    :raises LaunchError: names the processes that hold devices
    """
    reasons = []
    for node in (layout, layout.second_node()):
        if state_folder(node).exists():
            reasons += Konnector(state_folder(node), run_folder(node), cache_folder(), log_folder(node)).halt()
    if reasons:
        raise LaunchError("; ".join(reasons))
