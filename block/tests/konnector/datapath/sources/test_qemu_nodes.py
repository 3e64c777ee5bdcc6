"""Connections of drivers as QEMU's block nodes."""

import pytest

from sluice_block.konnector.datapath.sources.qemu_nodes import file_nodes, rbd_nodes
from sluice_core.errors import CallerError


def test_an_image_of_ceph_is_named_with_its_monitors_and_its_user():
    (node,) = rbd_nodes(
        {
            "name": "volumes/volume-7",
            "hosts": ["192.0.2.1", "192.0.2.2"],
            "ports": ["6789", 3300],
            "auth_enabled": True,
            "auth_username": "cinder",
            "cluster_name": "nowhere",
        }
    )
    assert (node["driver"], node["pool"], node["image"], node["user"]) == ("rbd", "volumes", "volume-7", "cinder")
    assert node["server"] == [{"host": "192.0.2.1", "port": "6789"}, {"host": "192.0.2.2", "port": "3300"}]
    assert "conf" not in node


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({}, "connection of type `rbd` has no `name`"),
        ({"name": "volume-7"}, "`name` is `volume-7`, expected pool/image"),
        ({"name": "volumes/volume-7", "auth_enabled": True}, "has no `auth_username`"),
    ],
)
def test_an_image_that_is_not_wholly_named_is_refused(data, reason):
    with pytest.raises(CallerError, match=reason):
        rbd_nodes(data)


def test_the_format_of_a_file_is_never_guessed(tmp_path):
    with pytest.raises(CallerError, match="`format` is `vmdk`, expected raw or qcow2"):
        file_nodes(tmp_path / "image", "vmdk")
    assert [one["driver"] for one in file_nodes(tmp_path / "image", "raw")] == ["file", "raw"]
