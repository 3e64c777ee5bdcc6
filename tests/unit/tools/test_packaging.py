"""setup.cfg, the import contracts and the tree agree."""

from __future__ import annotations

import configparser
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import setuptools
from packaging.requirements import Requirement

CLONE = Path(__file__).resolve().parents[3]
SETUP = configparser.ConfigParser(interpolation=None)
SETUP.read(CLONE / "setup.cfg")
SETUPTOOLS = tomllib.loads((CLONE / "pyproject.toml").read_text())["tool"]["setuptools"]
FIND = SETUPTOOLS["packages"]["find"]
#: Files of earlier versions, kept unchanged.
RECORDED = "tests/compatibility/recorded/"
#: Extras that are installed beside a service, in its environment: with its versions.
OWN_ENVIRONMENTS = {"tempest": "devstack/tempest-constraints.txt"}
#: Groups of entry points that only such a service loads.
LOADED_ELSEWHERE = {"tempest.test_plugins"}


def words(section, option):
    return {line for line in SETUP[section][option].splitlines() if line and not line.startswith("#")}


def packages_in_the_tree():
    found = set()
    for folder in CLONE.glob("*/sluice_*/"):
        for module in folder.rglob("*.py"):
            if not module.parent.name.isidentifier():
                continue  # a folder of snippets, as Horizon's local_settings.d
            found.add(".".join(module.parent.relative_to(folder.parent).parts))
    return found


def extra(name, seen=()):
    """Names of the packages that an extra requires directly, following Sluice's own extras."""
    found = set()
    for line in words("options.extras_require", name):
        requirement = Requirement(line)
        if requirement.name == "openstack-sluice":
            for inner in requirement.extras - set(seen):
                found |= extra(inner, (*seen, name))
        else:
            found.add(requirement.name.lower())
    return found


def packages_found():
    """The packages that setuptools installs: those without an ``__init__.py`` are left out."""
    return {name for root in FIND["where"] for name in setuptools.find_packages(CLONE / root, include=FIND["include"])}


def test_every_package_of_the_tree_is_installed_and_no_other():
    assert packages_found() == packages_in_the_tree()


def test_every_data_file_of_a_package_is_installed():
    """All files other than Python, in packages or in other folders, and snippets of settings."""
    rooms = list(CLONE.glob("*/sluice_*/"))
    there = {
        path
        for room in rooms
        for path in room.rglob("*")
        if path.is_file()
        and path.suffix not in (".md", ".pyc")
        and (path.suffix != ".py" or not path.parent.name.isidentifier())
    }
    folders = {room.name: room.parent for room in rooms}
    installed = {
        path
        for package, patterns in SETUPTOOLS["package-data"].items()
        for pattern in patterns
        for path in (folders[package.partition(".")[0]] / package.replace(".", "/")).glob(pattern)
        if path.is_file()
    }
    assert installed == there


def test_every_room_is_under_the_import_contracts():
    contracts = configparser.ConfigParser(interpolation=None)
    contracts.read(CLONE / ".importlinter")
    tops = {name for name in packages_found() if "." not in name}
    assert set(contracts["importlinter"]["root_packages"].split()) == tops


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("swift", {"django", "djangorestframework", "redis", "pika"}),
        ("agent", {"django", "swift", "pyparsing"}),
        ("controller", {"swift", "pika", "lmdb"}),
        ("actors", {"django", "swift", "lmdb"}),
        ("dsl", {"django", "swift", "redis"}),
        ("client", {"django", "swift", "redis"}),
    ],
)
def test_a_role_brings_nothing_of_the_others(name, absent):
    assert not extra(name) & absent


def test_everything_together_brings_every_role():
    everything = extra("aio")
    for name in ("swift", "agent", "controller", "actors", "dsl", "client", "filters"):
        assert extra(name) <= everything


def pinned(constraints):
    return {
        line.partition("==")[0].strip().lower().replace("_", "-")
        for line in (CLONE / constraints).read_text().splitlines()
        if not line.startswith("#")
    }


def test_every_direct_dependency_is_pinned():
    for name in SETUP["options.extras_require"]:
        constraints = OWN_ENVIRONMENTS.get(name, "constraints.txt")
        assert {one.replace("_", "-") for one in extra(name)} <= pinned(constraints), name


def test_constraints_name_versions_and_no_places():
    for line in (CLONE / "constraints.txt").read_text().splitlines():
        assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line


@pytest.mark.parametrize(
    "point",
    [one for one in metadata.distribution("openstack-sluice").entry_points if one.group not in LOADED_ELSEWHERE],
    ids=lambda point: point.name,
)
def test_every_entry_point_loads(point):
    found = point.load()
    assert callable(found) or point.group == "openstack.cli.extension"  # which names a module


def test_every_declared_entry_point_is_installed():
    declared = {
        (group, line.split(" = ")[0])
        for group in SETUP["options.entry_points"]
        for line in words("options.entry_points", group)
    }
    installed = {(point.group, point.name) for point in metadata.distribution("openstack-sluice").entry_points}
    assert declared == installed


def test_no_text_installs_what_others_call_sluice():
    """PyPI's ``sluice`` is another project: Sluice's own is required as ``openstack-sluice``, a folder by its path."""
    tracked = subprocess.run(["git", "grep", "-lI", r"sluice\["], cwd=CLONE, capture_output=True, text=True, check=True)
    extras = "|".join(SETUP["options.extras_require"])
    wrong = re.compile(rf"(?<![\w/.-])sluice\[(?:{extras})\b|pip install '?sluice\b")
    texts = {name: (CLONE / name).read_text() for name in tracked.stdout.split() if not name.startswith(RECORDED)}
    assert "setup.cfg" in texts
    assert not {name: found.group() for name, text in texts.items() if (found := wrong.search(text))}


def test_no_requirement_of_ours_is_what_others_call_sluice():
    requirements = [Requirement(line) for line in metadata.requires("openstack-sluice")]
    assert "openstack-sluice" in {requirement.name for requirement in requirements}
    assert "sluice" not in {requirement.name for requirement in requirements}
