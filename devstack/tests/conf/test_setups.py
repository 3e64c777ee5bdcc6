"""The configurations of Swift in each set-up of a cluster."""

from __future__ import annotations

import configparser
import stat

import pytest

from sluice_aio.base import setup as cs
from sluice_aio.base.layout import OBJECT_DEVICES, Layout
from sluice_aio.base.setup import Setup
from sluice_aio.cluster import components
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.conf.sluice import write_sluice
from sluice_aio.conf.storage import DAEMONS
from sluice_aio.conf.swift import PROXIES, write_swift
from sluice_aio.errors import LaunchError
from sluice_filters.encryption.keys.key_file import KeyFile

FULL = Setup(parts=cs.ALL_PARTS)


@pytest.fixture
def layout(tmp_path):
    return Layout.at(tmp_path, 20000)


def written(layout, setup, name):
    write_swift(layout, setup)
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str
    parser.read(layout.swift_dir / f"{name}.conf")
    return parser


def pipeline(config):
    return config["pipeline:main"]["pipeline"].split()


def test_the_full_proxy_has_both_filters_of_ours_where_they_belong(layout):
    names = pipeline(written(layout, FULL, "proxy"))
    assert names[names.index("sluice-reads") + 1 : names.index("sluice")] == [
        "slo",
        "dlo",
        "versioned_writes",
        "symlink",
    ]
    assert names.index("sluice-s3select") + 1 == names.index("s3api")
    assert names.index("s3api") < names.index("tempauth") < names.index("copy") < names.index("sluice-reads")
    assert names[names.index("sluice") + 1 :] == ["proxy-logging", "proxy-server"]


def test_the_full_storage_node_has_our_app_filter_and_disk_files(layout):
    main = written(layout, FULL, "swift")
    modules = [main[f"storage-policy:{index}"]["diskfile_module"] for index in (0, 1)]
    assert modules == ["egg:openstack-sluice#replication.fs", "egg:openstack-sluice#erasure_coding.fs"]
    for server in OBJECT_DEVICES:
        config = written(layout, FULL, server)
        assert pipeline(config) == ["healthcheck", "sluice-storage", "object-server"]
        assert config["app:object-server"]["use"] == "egg:openstack-sluice#object"
        assert config["DEFAULT"]["sluice_agent_socket"] == str(layout.agent_socket)
        assert config["DEFAULT"]["sluice_key_file"] == str(layout.key_file)
    for server in ("account", "container"):
        assert "sluice_agent_socket" not in written(layout, FULL, server)["DEFAULT"]


@pytest.mark.parametrize(
    "name", ["swift", *PROXIES, *OBJECT_DEVICES, "account", "container", "expirer", "internal-client"]
)
def test_plain_swift_never_hears_of_sluice(layout, name):
    write_swift(layout, Setup.plain())
    text = (layout.swift_dir / f"{name}.conf").read_text().replace(str(layout.root), "")
    assert "sluice" not in text.replace("//sluice/aio", "")


@pytest.mark.parametrize("part", sorted(cs.ALL_PARTS))
def test_each_part_can_be_left_out_alone(layout, part):
    marks = {
        cs.PROXY: ("proxy", "egg:openstack-sluice#proxy"),
        cs.READS: ("proxy", "egg:openstack-sluice#reads"),
        cs.STORAGE: ("object1", "egg:openstack-sluice#storage"),
        cs.OBJECT: ("object1", "egg:openstack-sluice#object"),
        cs.DISKFILE: ("swift", "diskfile_module"),
        cs.KEYS: ("object1", "sluice_key_file"),
        cs.CACHE: ("proxy", "cache_dir"),
        cs.S3SELECT: ("proxy", "egg:openstack-sluice#s3select"),
    }
    gone = {part, cs.CACHE} if part == cs.PROXY else {part}
    write_swift(layout, Setup(parts=cs.ALL_PARTS - {part}))
    for other, (file, mark) in marks.items():
        assert (mark in (layout.swift_dir / f"{file}.conf").read_text()) == (other not in gone)


@pytest.mark.parametrize("default", cs.POLICIES)
def test_either_storage_policy_can_be_the_default_one(layout, default):
    main = written(layout, Setup.plain(default), "swift")
    policies = {main[name]["name"]: main[name] for name in main.sections() if name.startswith("storage-policy:")}
    assert list(policies) == ["gold", "ec21"]
    assert [name for name, policy in policies.items() if policy.get("default") == "yes"] == [default]
    fragments = policies["ec21"]
    assert (fragments["ec_num_data_fragments"], fragments["ec_num_parity_fragments"]) == ("2", "1")


def test_the_encrypted_twin_has_swifts_encryption_where_sluice_would_be(layout):
    names = pipeline(written(layout, FULL, "encrypted"))
    at = names.index("keymaster")
    assert names[at - 1 : at + 3] == ["symlink", "keymaster", "encryption", "proxy-logging"]
    assert not [name for name in names if name.startswith("sluice")]


def test_a_second_proxy_has_an_agent_a_snapshot_and_a_name_of_its_own(layout):
    first, second = (written(layout, FULL, name)["filter:sluice"] for name in ("proxy", "proxy2"))
    assert first["snapshot_dir"] != second["snapshot_dir"]
    assert first["agent_socket"] != second["agent_socket"]
    assert first["key_file"] == second["key_file"]
    write_sluice(layout, "redis://r", "amqp://a", FULL)
    agents = []
    for name in ("agent", "agent2"):
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(layout.configs / f"{name}.conf")
        agents.append(parser["agent"])
    assert agents[0]["node"] != agents[1]["node"]
    assert [agent["socket"] for agent in agents] == [first["agent_socket"], second["agent_socket"]]
    assert [agent["snapshot_dir"] for agent in agents] == [first["snapshot_dir"], second["snapshot_dir"]]
    assert [agent["cache_dir"] for agent in agents] == [first["cache_dir"], second["cache_dir"]]
    assert first["cache_dir"] != second["cache_dir"]
    assert [agent["storage_daemons"] for agent in agents] == ["object-server", ""]


def test_without_s3api_nothing_of_it_is_there(layout):
    config = written(layout, Setup(s3api=False), "proxy")
    assert not {"s3api", "sluice-s3select"} & set(pipeline(config))
    assert "filter:s3api" not in config


def test_workers_and_further_options_arrive(layout):
    setup = Setup(
        parts=cs.ALL_PARTS,
        proxy_workers=5,
        storage_workers=3,
        fallocate=False,
        proxy_options={"cache_dir": "/c"},
        reads_options={"x": "y"},
        storage_options={"sluice_z": "1"},
    )
    proxy, node = (written(layout, setup, name) for name in ("proxy", "object2"))
    assert (proxy["DEFAULT"]["workers"], node["DEFAULT"]["workers"]) == ("5", "3")
    assert (proxy["filter:sluice"]["cache_dir"], proxy["filter:sluice-reads"]["x"]) == ("/c", "y")
    assert (node["DEFAULT"]["sluice_z"], node["DEFAULT"]["disable_fallocate"]) == ("1", "true")


def test_every_daemon_finds_its_section_and_writes_into_the_folder(layout):
    write_swift(layout, FULL)
    for daemon, servers in DAEMONS.items():
        for server in servers:
            config = written(layout, FULL, server)
            assert daemon in config
            assert config["DEFAULT"]["recon_cache_path"].startswith(str(layout.root))
            assert (layout.recon / server).is_dir()


def test_container_sync_reads_as_clients_do_and_the_movers_read_what_is_stored(layout):
    config = written(layout, FULL, "internal-client")
    assert "sluice" in pipeline(config)
    assert "cache_dir" not in config["filter:sluice"]
    for name in ("expirer", "reconciler"):
        assert "sluice" not in pipeline(written(layout, FULL, name))


def test_each_server_is_a_module_of_rsync_named_by_its_port(layout):
    write_swift(layout, FULL)
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string("[global]\n" + (layout.swift_dir / "rsyncd.conf").read_text())
    for server, port in (("object1", 20005), ("object3", 20007), ("account", 20003)):
        kind = server.rstrip("13")
        template = written(layout, FULL, server)[f"{kind}-replicator"]["rsync_module"]
        module = template.format(replication_port=port).rpartition("/")[2]
        assert parser[module]["path"] == written(layout, FULL, server)["DEFAULT"]["devices"]


def test_disks_may_lie_elsewhere(tmp_path):
    layout = Layout(tmp_path / "a", Layout.at(tmp_path).ports, disks=tmp_path / "b")
    write_swift(layout)
    assert layout.device("object1") == tmp_path / "b" / "object1" / "disk1"
    assert layout.device("object1").is_dir()


def test_the_key_file_is_for_its_owner_only_and_stays(layout):
    write_sluice(layout, "redis://r", "amqp://a")
    secret = KeyFile(layout.key_file).secret(KeyFile(layout.key_file).active())
    assert stat.S_IMODE(layout.key_file.stat().st_mode) == 0o600
    write_sluice(layout, "redis://r", "amqp://a")
    assert KeyFile(layout.key_file).secret("aio") == secret


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"parts": frozenset({"proxxy"})}, "`proxxy`, expected some of"),
        ({"default_policy": "lead"}, "`lead`, expected one of"),
    ],
)
def test_an_invalid_set_up_is_refused(wrong, said):
    with pytest.raises(LaunchError, match=said):
        Setup(**wrong)


def test_a_cluster_without_an_agent_is_a_plain_swift(tmp_path):
    layout = Layout.at(tmp_path)
    assert Cluster(layout, components.PLAIN_SWIFT).setup == Setup.plain()
    assert Cluster(layout).setup == Setup()


def test_nothing_but_one_node_of_each_sort_is_started_by_default():
    assert not components.DEFAULT & {"plain", "proxy2", "agent2", "encrypted", "rsync", *components.DAEMON_SERVICES}


def test_without_a_supervisor_no_agent_looks_for_it(layout):
    found = {}
    for sandbox in (True, False):
        write_sluice(layout, "redis://h", "amqp://h", Setup(sandbox=sandbox))
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(layout.configs / "agent.conf")
        found[sandbox] = parser["agent"]["sandbox_dir"]
    assert found == {True: str(layout.sandbox), False: ""}
