"""Connections to images of Ceph: the options for QEMU and Ceph's programs, and refused connections."""

import stat
from pathlib import Path

import pytest

from sluice_block.datapath.rbd_image import RbdImage
from sluice_core.errors import CallerError

KEY = "AQCfigdrAAAAABAAePWlvVHm3K2QwOcJUFqxtQ=="
KEYRING = f'[client.admin]\n\tkey = other\n[client.cinder]\n\tkey = {KEY}\n\tcaps mon = "profile rbd"\n'
CONNECTION = {
    "name": "volumes/volume-1",
    "hosts": ["192.0.2.1", "[2001:db8::1]"],
    "ports": ["3300", 6789],
    "cluster_name": "ceph",
    "auth_enabled": True,
    "auth_username": "cinder",
}


@pytest.mark.parametrize("keyring", [KEYRING, f"{KEY}\n"])
def test_the_key_goes_by_a_file_that_its_owner_alone_reads(tmp_path, keyring):
    image = RbdImage.of(CONNECTION | {"keyring": keyring})
    (node,), objects = image.block_nodes("source", tmp_path)
    options = image.client_options(tmp_path)
    assert KEY not in f"{node} {objects} {options}"
    files = [tmp_path / "rbd.key", tmp_path / "rbd.keyring"]
    assert [stat.S_IMODE(one.stat().st_mode) for one in files] == [0o600, 0o600]
    assert [one.read_text() for one in files] == [KEY, f"[client.cinder]\nkey = {KEY}\n"]


def test_without_a_key_the_machines_own_is_used(tmp_path):
    image = RbdImage.of(CONNECTION)
    (node,), objects = image.block_nodes("source", tmp_path)
    assert objects == []
    assert Path(node["conf"]).exists()  # without any configuration Ceph searches for no keyring
    assert not {"key-secret", "auth-client-required"} & set(node)
    assert "--keyring" not in image.client_options(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_all_monitors_are_named_as_qemu_and_ceph_want_it(tmp_path):
    image = RbdImage.of(CONNECTION)
    servers = [{"host": "192.0.2.1", "port": "3300"}, {"host": "2001:db8::1", "port": "6789"}]
    assert image.block_nodes("source", tmp_path)[0][0]["server"] == servers
    assert "192.0.2.1:3300,[2001:db8::1]:6789" in image.client_options(tmp_path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "volume-1"}, "`volume-1`, expected POOL/IMAGE"),
        ({"hosts": []}, "no `hosts`"),
        ({"ports": ["3300"]}, "no `hosts` with as many `ports`"),
        ({"keyring": "[client.admin]\nkey = other\n"}, "no key of `client.cinder`"),
        ({"keyring": "[client.cinder"}, "no key of `client.cinder`"),
    ],
)
def test_a_connection_that_lacks_something_is_refused(change, reason):
    with pytest.raises(CallerError, match=reason):
        RbdImage.of(CONNECTION | change)
