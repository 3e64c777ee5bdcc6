"""The files that are written before any start."""

from __future__ import annotations

import configparser
import stat
import sys
from dataclasses import replace

import pytest
from swift.common.ring import RingData

from sluice_aio.base.layout import DATABASE_DEVICES, OBJECT_DEVICES, Layout
from sluice_aio.base.setup import Setup
from sluice_aio.conf.proxy import proxy_conf
from sluice_aio.conf.sluice import ensure_token, write_sluice
from sluice_aio.conf.swift import REPLICAS, build_rings, write_swift


@pytest.fixture
def layout(tmp_path):
    return Layout.at(tmp_path, 20000)


def parsed(text):
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.read_string(text)
    return parser


def pipeline(layout, plain):
    return parsed(proxy_conf(layout, plain))["pipeline:main"]["pipeline"].split()


def test_sluice_stands_right_of_everything_that_makes_requests_of_its_own(layout):
    names = pipeline(layout, plain=False)
    before = names[: names.index("sluice")]
    assert {"copy", "slo", "dlo", "versioned_writes", "symlink", "bulk"} <= set(before)
    assert names[names.index("sluice") + 1 :] == ["proxy-logging", "proxy-server"]


def test_the_plain_twin_differs_in_nothing_but_sluice_and_its_port(layout):
    ours_alone = {"sluice", "sluice-reads", "sluice-s3select"}
    assert [name for name in pipeline(layout, plain=False) if name not in ours_alone] == pipeline(layout, plain=True)
    ours, plain = (parsed(proxy_conf(layout, plain)) for plain in (False, True))
    assert {one.removeprefix("filter:") for one in set(ours.sections()) - set(plain.sections())} <= ours_alone
    for section in plain.sections():
        if section not in ("DEFAULT", "pipeline:main"):
            mine, other = (dict(one[section]) for one in (ours, plain))
            mine.pop("bind_port"), other.pop("bind_port")
            if section == "app:proxy-server":  # Sluice's chooses replicas by the agents' reports
                assert (mine.pop("use"), other.pop("use")) == ("egg:openstack-sluice#proxy_server", "egg:swift#proxy")
                assert mine.pop("sluice_agent_socket") == str(layout.agent_socket)
            assert mine == other


def test_every_filter_of_the_pipeline_has_a_section(layout):
    config = parsed(proxy_conf(layout, plain=False))
    for name in pipeline(layout, plain=False)[:-1]:
        assert f"filter:{name}" in config


def test_every_server_gets_a_configuration_and_its_devices(layout):
    write_swift(layout)
    for server in ("proxy", "plain", "account", "container", *OBJECT_DEVICES):
        config = parsed((layout.swift_dir / f"{server}.conf").read_text())
        assert config["DEFAULT"]["bind_port"] == str(layout.ports[server])
        assert config["DEFAULT"]["bind_ip"] == "127.0.0.1"
    for server, device in OBJECT_DEVICES.items():
        config = parsed((layout.swift_dir / f"{server}.conf").read_text())
        assert layout.device(server) == layout.devices / server / device
        assert config["DEFAULT"]["devices"] == str(layout.devices / server)
        assert layout.device(server).is_dir()
        assert config["DEFAULT"]["recon_cache_path"] == str(layout.recon / server)


def test_the_hash_suffix_survives_writing_the_configuration_again(layout):
    write_swift(layout)
    kept = [layout.swift_dir / name for name in ("swift.conf", "container-sync-realms.conf")]
    before = [file.read_text() for file in kept]
    write_swift(layout)
    assert [file.read_text() for file in kept] == before


def test_each_ring_puts_three_replicas_on_three_devices(layout):
    build_rings(layout)
    disks = tuple(OBJECT_DEVICES.values())
    wanted = {"account": DATABASE_DEVICES, "container": DATABASE_DEVICES, "object": disks, "object-1": disks}
    for name, devices in wanted.items():
        ring = RingData.load(str(layout.swift_dir / f"{name}.ring.gz"))
        assert len(ring._replica2part2dev_id) == REPLICAS
        for replicas in zip(*ring._replica2part2dev_id, strict=True):
            assert sorted(ring.devs[number]["device"] for number in replicas) == sorted(devices)


def test_the_token_is_for_its_owner_only_and_stays(layout):
    write_sluice(layout, "redis://r", "amqp://a")
    token = ensure_token(layout)
    assert stat.S_IMODE(layout.token_file.stat().st_mode) == 0o600
    assert len(token) > 20
    assert ensure_token(layout) == token


def test_an_agent_measures_the_devices_beside_it(layout):
    def measured(name, setup=None):
        write_sluice(layout, "redis://r", "amqp://a", setup)
        named = parsed((layout.configs / f"{name}.conf").read_text())["agent"]["storage_confs"]
        return [path.rpartition("/")[2] for path in named.split(", ")]

    assert measured("agent") == ["account.conf", "object1.conf", "object2.conf", "object3.conf"]
    assert measured("agent2") == measured("agent", Setup.plain()) == [""]
    assert measured("agent", Setup(storage_agents=True)) == ["account.conf"]
    assert measured("agent-object2", Setup(storage_agents=True)) == ["object2.conf"]


def test_our_own_processes_are_told_where_everything_is(layout):
    write_sluice(layout, "redis://r", "amqp://a")
    agent = parsed((layout.configs / "agent.conf").read_text())["agent"]
    assert agent["socket"] == str(layout.agent_socket)
    assert (agent["swift_python"], agent["sandbox_dir"]) == (sys.executable, str(layout.sandbox))
    assert agent["snapshot_dir"] == parsed(proxy_conf(layout, plain=False))["filter:sluice"]["snapshot_dir"]
    assert parsed((layout.configs / "api.conf").read_text())["api"]["bind"] == "127.0.0.1:20002"


def test_nodes_have_the_names_and_object_servers_the_addresses_that_a_layout_gives_them(layout):
    named = {"proxy2": "proxy-2", "object1": "storage-1"}
    layout = replace(layout, node="proxy-1", nodes=named, addresses={"object1": "127.0.0.21"})
    write_sluice(layout, "redis://r", "amqp://a", Setup(storage_agents=True))
    nodes = ("agent", "agent2", "agent-object1", "agent-object2")
    texts = {name: parsed((layout.configs / f"{name}.conf").read_text()) for name in nodes}
    assert [texts[name]["agent"]["node"] for name in nodes] == ["proxy-1", "proxy-2", "storage-1", "proxy-1-object2"]
    build_rings(layout)
    devices = RingData.load(str(layout.swift_dir / "object.ring.gz")).devs
    assert [(one["ip"], one["replication_ip"]) for one in devices[:2]] == [("127.0.0.21",) * 2, ("127.0.0.1",) * 2]
    write_swift(layout)
    servers = [parsed((layout.swift_dir / f"{name}.conf").read_text()) for name in ("object1", "object2")]
    assert [one["DEFAULT"]["bind_ip"] for one in servers] == ["127.0.0.21", "127.0.0.1"]
