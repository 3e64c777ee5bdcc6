"""Starting Swift's programs with the swift.conf of a folder."""

from __future__ import annotations

import sys

import pytest

from sluice_aio.base.layout import Layout
from sluice_aio.cluster import components
from sluice_aio.conf import swift_program
from sluice_aio.conf.swift import write_swift
from sluice_aio.errors import LaunchError


@pytest.fixture
def layout(tmp_path):
    made = Layout.at(tmp_path, 20000)
    write_swift(made)
    return made


def test_a_program_that_is_not_installed_is_refused(layout):
    with pytest.raises(SystemExit, match="`swift-paint` is no installed program"):
        swift_program.main([str(layout.swift_dir), "swift-paint"])
    with pytest.raises(LaunchError, match="`swift-paint` is not installed"):
        components.swift_command(layout, "swift-paint")


def test_it_refuses_to_start_too_late(layout, monkeypatch):
    monkeypatch.setitem(sys.modules, "swift.common.storage_policy", sys)
    with pytest.raises(SystemExit, match=r"`swift\.common\.storage_policy` was imported before"):
        swift_program.main([str(layout.swift_dir), "swift-get-nodes"])
