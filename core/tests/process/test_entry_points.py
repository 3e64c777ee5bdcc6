"""Entry points are read once, and again after a package was installed."""

import os
import sys

from sluice_core.process import entry_points
from sluice_core.process.entry_points import installed_entry_points

GROUP = "sluice.tests"


def install(folder, name):
    metadata = folder / f"{name}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {name}:Thing\n")


def test_a_package_that_is_installed_meanwhile_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing"), str(tmp_path)])
    install(tmp_path, "first")
    assert [entry.value for entry in installed_entry_points(GROUP)] == ["first:Thing"]
    install(tmp_path, "second")
    os.utime(tmp_path, ns=(1, 1))  # a clock may be too coarse to tell the two apart
    assert {entry.name for entry in installed_entry_points(GROUP)} == {"first", "second"}
    assert not installed_entry_points("sluice.other")


def test_metadata_is_read_once_while_nothing_changes(tmp_path, monkeypatch):
    install(tmp_path, "first")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    installed_entry_points(GROUP)
    monkeypatch.delattr(entry_points, "entry_points")
    assert [entry.name for entry in installed_entry_points(GROUP)] == ["first"]
