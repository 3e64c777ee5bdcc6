"""The wheels that the installation guide installs from are built once, and do not fill the disk."""

from pathlib import Path

import pytest
from tests.support.install import wheelhouse


@pytest.fixture
def built(tmp_path, monkeypatch):
    """The folders that pip has filled."""
    filled = []

    def make_wheels(*words):
        folder = Path(words[words.index("--wheel-dir") + 1])
        folder.mkdir()
        for name in ("alembic-1.whl", "openstack_sluice-0.2.0-py3-none-any.whl"):
            (folder / name).touch()
        filled.append(folder)

    monkeypatch.setattr(wheelhouse, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(wheelhouse, "_pip", make_wheels)
    return filled


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_wheels_of_others_are_built_once(tmp_path, built):
    for name in ("first", "second"):
        wheelhouse.link_third_parties(tmp_path / name)
        assert names(tmp_path / name) == {"alembic-1.whl"}
    assert len(built) == 1


def test_wheels_of_earlier_versions_are_removed(tmp_path, built, monkeypatch):
    for number in range(5):
        monkeypatch.setattr(wheelhouse, "_ROLES", f"role{number}")
        wheelhouse.link_third_parties(tmp_path / str(number))
    assert len(built) == 5
    kept = [folder.name.removesuffix(".new") for folder in built[-3:]]
    assert names(tmp_path / "cache") == {*kept, "wheelhouse.lock"}
    assert names(tmp_path / "0") == {"alembic-1.whl"}, "links hold what the cache has removed"
