"""The distribution that operators install: one wheel, from which each role runs in an environment of its own.

The wheel is built by `python -m build` from what git has of this clone. Each role is installed by the extras that its
page names, with the tested versions. Its programs say their version and their help; its daemons start before a Redis
and a RabbitMQ of this test, report that they are ready and end in order; its libraries and plugins are used.
"""

from __future__ import annotations

import email
import os
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.support.committed_files import copy_committed_files
from tests.support.wheel import daemons, libraries
from tests.support.wheel.role import UV, Role, Servers, run

from sluice_aio.base.backing_servers import RabbitServer, RedisServer
from sluice_aio.base.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
NAME = "openstack-sluice"


@dataclass(frozen=True)
class Brings:
    """What a role brings.

    :param start: starts or uses it
    :param programs: each of them has --version and --help
    :param host: whose plugin it is: a package with its tested versions in devstack
    :param borrowed: packages that the tests' own environment lends
    """

    start: Callable[[Role, Servers], None]
    programs: tuple[str, ...] = ()
    host: str = ""
    borrowed: tuple[str, ...] = ()


#: Extras → what they bring.
ROLES = {
    "dsl": Brings(libraries.explain, ("sluice-dsl",)),
    "client": Brings(libraries.call_api, ("sluice",)),
    "openstack": Brings(libraries.call_openstack, ("sluice", "openstack")),
    "filters": Brings(libraries.make_keys, ("sluice-keys",)),
    "barbican": Brings(libraries.ask_key_manager),
    "motifs-kv": Brings(libraries.store_values),
    "motifs-fs": Brings(libraries.mount, ("sluice-motif-fs",)),
    "agent": Brings(daemons.run_agent, ("sluice-agent",)),
    "swift,agent": Brings(
        daemons.run_node, ("sluice-agent", "sluice-diskfile", "sluice-keys", "sluice-motifs", "sluice-rewriter")
    ),
    "swift,sandbox": Brings(daemons.run_sandbox, ("sluice-sandbox",)),
    "actors": Brings(daemons.run_actors, ("sluice-actors",)),
    "controller": Brings(daemons.serve_api, ("sluice-api",)),
    "block": Brings(daemons.run_konnector, ("sluice-konnector",)),
    "spark": Brings(libraries.register_in_spark, borrowed=("pyspark", "py4j")),
    "horizon": Brings(libraries.check_dashboard, host="horizon"),
    "tempest": Brings(libraries.list_tempest_tests, host="tempest"),
    "aio": Brings(daemons.run_cluster, ("sluice-aio",)),
}
#: Programs that print a sample of their configuration.
DAEMONS = ("sluice-actors", "sluice-agent", "sluice-api", "sluice-konnector", "sluice-motifs", "sluice-rewriter")
#: Extras that roles bring, and those that only a clone has a use for.
PARTS = {"cinder", "motifs"}
OF_A_CLONE = {"bench", "browser", "coverage", "dev", "docs", "foreign", "fuzz", "lint", "test"}
#: What is documentation, and no part of a package.
_NOT_INSTALLED = (".md",)


@pytest.fixture(scope="module")
def clean_clone(tmp_path_factory):
    """The committed files of this clone, without those of earlier builds."""
    folder = tmp_path_factory.mktemp("clean")
    copy_committed_files(folder)
    return folder


@pytest.fixture(scope="module")
def wheel(clean_clone, tmp_path_factory):
    """The wheel, built from the source distribution."""
    out = tmp_path_factory.mktemp("dist")
    path = os.pathsep.join((str(UV.parent), os.environ["PATH"]))  # by uv, which keeps what it fetched
    words = ("--installer", "uv", "--outdir", out, clean_clone)
    run(sys.executable, "-m", "build", *words, env={**os.environ, "PATH": path})
    (found,) = out.glob("*.whl")
    (source,) = out.glob("*.tar.gz")
    assert found.name.startswith("openstack_sluice-")
    assert source.name.startswith("openstack_sluice-")
    return found


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """A Redis and a RabbitMQ for all roles that need them."""
    folder = tmp_path_factory.mktemp("servers")
    ports = (free_port(), free_port(), free_port())
    with (
        RedisServer(free_port(), folder / "redis", tied=True) as redis,
        RabbitServer(*ports, folder / "rabbit", tied=True) as rabbit,
    ):
        yield Servers(redis.url, rabbit.url)


@pytest.fixture
def role(request, wheel, tmp_path_factory):
    """A fresh environment into which the wheel is installed."""
    made = Role(request.param, tmp_path_factory.mktemp(request.param.replace(",", "-")) / "env")
    brings = ROLES[request.param]
    host = brings.host
    constraints = ROOT / "devstack" / f"{host}-constraints.txt" if host else ROOT / "constraints.txt"
    made.install(wheel, constraints, (host,) if host else (), brings.borrowed)
    yield made
    made.remove()


def test_the_wheel_has_every_package_and_data_file_of_the_clone(wheel, clean_clone):
    expected = {
        path.relative_to(room.parent).as_posix()
        for room in clean_clone.glob("*/sluice_*/")
        for path in room.rglob("*")
        if path.is_file() and path.suffix not in _NOT_INSTALLED
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("sluice_")}
    assert names == expected


def metadata(wheel):
    """What the wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_the_wheel_requires_nothing_under_the_former_name(wheel):
    said = metadata(wheel)
    assert said["Name"] == NAME
    required = [Requirement(text).name for text in said.get_all("Requires-Dist")]
    assert "sluice" not in required
    assert "msgpack" in required
    assert NAME in required, "extras name each other under our own name"


def test_every_extra_is_tried_or_for_a_clone_alone(wheel):
    tried = {one for extras in ROLES for one in extras.split(",")}
    assert tried | PARTS | OF_A_CLONE == set(metadata(wheel).get_all("Provides-Extra"))


@pytest.mark.parametrize("role", ROLES, indirect=True)
def test_what_a_role_brings_runs_from_the_wheel(role, wheel, servers):
    version = wheel.name.split("-")[1]
    brings = ROLES[role.extras]
    for name in brings.programs:
        said = role.run(name, "--version")
        assert name == "openstack" or said == f"{name} {version}\n"
        assert "usage" in role.run(name, "--help").lower()
        if name in DAEMONS:
            assert "#log_format = text" in role.run(name, "--sample-config")
    brings.start(role, servers)
