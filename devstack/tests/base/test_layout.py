"""Folder, ports, and their environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_aio.base.layout import DEFAULT_PORT_BASE, OFFSETS, Layout
from sluice_aio.errors import LaunchError


def test_every_port_is_the_base_plus_its_offset_and_no_two_are_equal():
    layout = Layout.at("/x", 20000)
    assert layout.ports["proxy"] == 20000
    assert sorted(layout.ports.values()) == list(range(20000, 20000 + len(OFFSETS)))


def test_free_ports_are_all_different():
    ports = Layout.free("/x").ports
    assert set(ports) == set(OFFSETS)
    assert len(set(ports.values())) == len(OFFSETS)


@pytest.mark.parametrize(
    ("environment", "folder", "base"),
    [
        ({}, "/clone/.sluice", DEFAULT_PORT_BASE),
        ({"SLUICE_DIR": "other"}, "/clone/other", DEFAULT_PORT_BASE),
        ({"SLUICE_DIR": "/elsewhere"}, "/elsewhere", DEFAULT_PORT_BASE),
        ({"SLUICE_PORT_BASE": "16500"}, "/clone/.sluice", 16500),
    ],
)
def test_the_environment_moves_folder_and_ports(environment, folder, base):
    layout = Layout.from_environment(environment, Path("/clone"))
    assert (str(layout.folder), layout.ports["proxy"]) == (folder, base)


@pytest.mark.parametrize("base", ["", "abc", "-5", "80", "65535"])
def test_a_base_that_gives_no_ports_is_refused(base):
    with pytest.raises(LaunchError, match=base or "SLUICE_PORT_BASE"):
        Layout.from_environment({"SLUICE_PORT_BASE": base}, Path("/clone"))


def test_a_folder_too_deep_for_unix_sockets_is_refused_at_once():
    with pytest.raises(LaunchError, match="too long"):
        Layout.at("/" + "x" * 100)


def test_the_demo_has_its_own_folder_on_the_same_ports():
    layout = Layout.at("/x")
    assert layout.for_demo().folder == Path("/x/demo")
    assert layout.for_demo().ports == layout.ports
