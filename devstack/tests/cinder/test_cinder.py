"""A cluster with Cinder, before its start: the written files, and the effects of a stop."""

import configparser
import json
import stat
import tempfile
from pathlib import Path

import pytest

from sluice_aio import play
from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cinder import backends
from sluice_aio.cinder.conf import write_cinder
from sluice_aio.cinder.konnector import write_konnector
from sluice_aio.cluster import components
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.errors import LaunchError
from sluice_aio.keystone import seed, venv
from sluice_block.cinder_nbd.pools import parse_pools

PYTHON = Path("/venv/bin/python")
AMQP = "amqp://guest:guest@127.0.0.1:21010/%2F"


@pytest.fixture
def layout():
    with tempfile.TemporaryDirectory(prefix="s-") as folder:  # short: the path of a socket may have 107 bytes
        yield Layout.at(Path(folder) / "c", 21000)


@pytest.fixture
def written(layout, monkeypatch):
    """A function that writes cinder.conf and parses it; repeated options are lines of one value."""

    def write(user_id=0, ceph_conf=""):
        monkeypatch.setattr("os.geteuid", lambda: user_id)
        write_cinder(layout, AMQP, PYTHON, ceph_conf)
        text = (layout.data / "cinder" / "cinder.conf").read_text().replace("\nsluice_nbd_pool = slow", "\n  slow")
        parser = configparser.ConfigParser(interpolation=None, strict=True)
        parser.read_string(text)
        return parser

    return write


@pytest.fixture
def bindings(tmp_path, monkeypatch):
    """The path of Debian's bindings of Ceph."""
    monkeypatch.setattr(backends, "_BINDINGS", tmp_path)
    return tmp_path


def test_cinder_listens_here_only_and_logs_in_as_a_user_of_its_own(layout, written):
    found = written()
    assert (found["DEFAULT"]["osapi_volume_listen"], found["DEFAULT"]["osapi_volume_listen_port"]) == (
        "127.0.0.1",
        "21019",
    )
    assert found["DEFAULT"]["api_paste_config"] == "/venv/etc/cinder/api-paste.ini"
    login = found["keystone_authtoken"]
    assert (login["username"], login["password"]) == ("cinder", seed.password(layout, "cinder"))
    assert stat.S_IMODE((layout.data / "cinder" / "cinder.conf").stat().st_mode) == 0o600


def test_its_notifications_go_to_the_clusters_broker_and_nothing_else_does(written):
    found = written()
    assert found["DEFAULT"]["transport_url"] == "fake://"
    assert found["oslo_messaging_notifications"]["transport_url"] == "rabbit://guest:guest@127.0.0.1:21010//"


def test_the_pools_are_what_the_driver_reads(written):
    found = written()["nbd"]
    pools = parse_pools(found["sluice_nbd_pool"].splitlines(), Path(found["sluice_nbd_folder"]), "nbd")
    assert set(pools) == {"fast", "slow"}
    assert pools["fast"].capabilities.keys() == pools["slow"].capabilities.keys()


def test_there_is_an_nfs_back_end_for_root_only(written):
    assert written()["DEFAULT"]["enabled_backends"] == "nbd,nfs"
    assert written(1000)["DEFAULT"]["enabled_backends"] == "nbd"


def test_a_ceph_is_a_back_end_that_says_its_fabric_and_its_copies(written, layout, bindings):
    for name in ("rados", "rbd"):
        (bindings / f"{name}.cpython-311-x86_64-linux-gnu.so").touch()
    found = written(ceph_conf="/etc/ceph/ceph.conf")
    assert found["DEFAULT"]["enabled_backends"] == "nbd,nfs,rbd"
    capabilities = json.loads(found["rbd"]["extra_capabilities"])
    assert (capabilities["sluice:fabric"], capabilities["sluice"]["resiliency"]) == ("rbd", "2")
    links = layout.data / "cinder" / "ceph-modules"
    assert {one.resolve() for one in links.iterdir()} == set(bindings.iterdir())


def test_a_ceph_without_its_bindings_is_refused(written, bindings):
    with pytest.raises(LaunchError, match="install python3-rados"):
        written(ceph_conf="/etc/ceph/ceph.conf")


def test_a_folder_too_deep_for_the_sockets_of_exports_is_refused(tmp_path):
    name = "d" * max(1, 68 - len(str(tmp_path)))  # not too deep for the sockets of agents
    deep = Layout.at(tmp_path / name, 21000)
    with pytest.raises(LaunchError, match="too long for Cinder's exports"):
        write_cinder(deep, AMQP, PYTHON)


def test_cinder_brings_the_broker_and_wants_keystone(layout):
    with pytest.raises(LaunchError, match="cinder asks Keystone"):
        Cluster(layout, {"cinder"})
    assert Cluster(layout, {"cinder"}, setup=Setup(auth=KEYSTONE))._names == {"cinder", "keystone", "rabbit"}
    assert "cinder" not in components.DEFAULT


def test_the_program_is_run_by_cinders_own_python_beside_the_room_of_our_driver_only(layout, monkeypatch):
    monkeypatch.setattr(venv, "python", lambda *_, service: f"/{service}/python")
    *command, folder, block = components.make_servers(layout, ["cinder"])["cinder"].argv()
    assert command[:2] == ["/cinder/python", "-I"]
    assert folder == str(layout.data / "cinder")
    assert (Path(block) / "sluice_block" / "cinder_driver.py").is_file()
    assert {path.name for path in Path(block).glob("sluice_*")} == {"sluice_block", "sluice_volumes"}
    assert "cinder==29.0.0" in venv.CONSTRAINTS.with_name("cinder-constraints.txt").read_text().splitlines()


def test_the_konnector_of_the_second_node_shares_the_certificate_alone(layout):
    layout.configs.mkdir(parents=True)
    found = []
    for name in components.KONNECTORS:
        write_konnector(layout.node_of(name), Setup(auth=KEYSTONE))
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(components.make_servers(layout, [name])[name].argv()[-1])
        found.append(dict(parser["konnector"]))
    same = {name for name, value in found[0].items() if value == found[1][name]}
    assert same == {"cache_dir", "tls_cert", "tls_key"}
    assert found[1]["agent_socket"] == str(layout.node_of("agent2").agent_socket)


def test_a_missing_program_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None if name == "qemu-img" else f"/bin/{name}")
    with pytest.raises(LaunchError, match=r"`qemu-img` is not installed.*install qemu-utils"):
        backends.check_programs()


def test_mounts_are_found_in_the_folder_only_and_the_last_comes_first(tmp_path, monkeypatch):
    table = tmp_path / "mounts"
    lines = ["/dev/x / ext4 rw 0 0", r"/dev/x /a\040b/one ext4 rw 0 0", r"/dev/x /a\040b/two ext4 rw 0 0"]
    table.write_text("\n".join([*lines, "/dev/x /a ext4 rw 0 0"]) + "\n")
    monkeypatch.setattr(backends, "_MOUNTS", table)
    assert backends._mounted(Path("/a b")) == [Path("/a b/two"), Path("/a b/one")]


@pytest.mark.parametrize(("user", "project"), [("alice", "acme"), ("admin", "admin")])
def test_a_file_to_source_says_who_one_is(layout, user, project):
    layout.folder.mkdir()
    path = play.write_openrc(layout, user)
    text = path.read_text()
    assert f"export OS_USERNAME={user}\n" in text
    assert f"export OS_PROJECT_NAME={project}\n" in text
    assert f"export OS_AUTH_URL={layout.keystone_url}\n" in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
