"""The functions of the DevStack plugin, each by itself; tests/probe/test_devstack.py runs its phases."""

import configparser
import re
import subprocess
from pathlib import Path

import pytest

from sluice_motifs_swift.settings import read_settings

DEVSTACK = Path(__file__).parents[1]
#: Replaces DevStack's library, as far as these functions need it.
STUBS = """
function die { shift; echo "$*" >&2; exit 1; }
function is_service_enabled {
    local name
    for name in "$@"; do if [[ " $ENABLED " == *" $name "* ]]; then return 0; fi; done
    return 1
}
function trueorfalse { echo "${!2:-$1}"; }
function get_python_exec_prefix { echo /venv/bin; }
function define_plugin { :; }
function is_ubuntu { :; }
function enable_service { ENABLED+=" $*"; }
DEST=/opt/stack DATA_DIR=/opt/stack/data HORIZON_DIR=/opt/stack/horizon SWIFT_CONF_DIR=/etc/swift SERVICE_PROTOCOL=http
SERVICE_HOST=192.0.2.1 SERVICE_LOCAL_HOST=127.0.0.1 SERVICE_LISTEN_ADDRESS=0.0.0.0
RABBIT_HOST=192.0.2.1 RABBIT_PASSWORD=x
ENABLED="key s-proxy s-object"
"""


def call(script, *libraries):
    """The output of a function, with the settings and these libraries; an error when it fails."""
    sources = "\n".join(f'source "{DEVSTACK}/{name}"' for name in ("settings", *libraries))
    ended = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", f"{STUBS}\n{sources}\n{script}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    return ended.stdout.strip() if ended.returncode == 0 else f"refused: {ended.stderr.strip()}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "healthcheck cache keystoneauth copy slo dlo versioned_writes symlink proxy-logging proxy-server",
            "healthcheck list-endpoints cache keystoneauth copy sluice-reads slo dlo versioned_writes symlink sluice "
            "proxy-logging proxy-server",
        ),
        (
            "s3api keystoneauth slo dlo proxy-server",
            "sluice-s3select s3api keystoneauth sluice-reads slo dlo sluice proxy-server",
        ),
        ("symlink proxy-logging ceilometer proxy-server", "symlink sluice proxy-logging ceilometer proxy-server"),
        ("copy symlink keymaster encryption proxy-server", "copy symlink sluice keymaster encryption proxy-server"),
    ],
    ids=["of devstack", "s3", "middleware of others", "swift's encryption"],
)
def test_a_pipeline_gets_sluice_where_it_belongs_however_often(before, after):
    assert call(f'add_sluice_to_pipeline "{before}"', "lib/sluice_swift") == after
    assert call(f'add_sluice_to_pipeline "{after}"', "lib/sluice_swift") == after


def test_a_pipeline_without_large_objects_is_refused():
    said = call('add_sluice_to_pipeline "cache proxy-server"', "lib/sluice_swift")
    assert said.startswith("refused: the pipeline `cache proxy-server` has none of copy")


def test_behind_the_tls_proxy_the_api_listens_on_loopback():
    assert call("get_sluice_bind", "lib/sluice_conf") == "0.0.0.0:8877"
    assert call("ENABLED+=' tls-proxy'; get_sluice_bind", "lib/sluice_conf") == "127.0.0.1:18877"


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ("SWIFT_USE_MOD_WSGI=True", "SWIFT_USE_MOD_WSGI"),
        ("RABBIT_PASSWORD=", "RabbitMQ"),
        ("ENABLED=sluice-api", "Keystone"),
    ],
)
def test_settings_that_cannot_work_are_refused(setting, word):
    functions = "lib/sluice"
    assert call("ENABLED+=' keystone'; check_sluice_settings", functions) == ""
    assert word in call(f"{setting}; check_sluice_settings", functions)


def test_redis_of_another_node_is_not_installed_here():
    assert call("is_sluice_redis_local && echo local", "lib/sluice") == "local"
    other = "SLUICE_REDIS_URL=redis://:x@192.0.2.7:6379/0; is_sluice_redis_local || echo other"
    assert call(other, "lib/sluice") == "other"


def test_the_motif_daemon_has_the_options_of_its_node_and_a_proxy_application(tmp_path):
    settings = f"SLUICE_CONF_DIR={tmp_path} DATA_DIR=/data\nSLUICE_MOTIFS_CONF={tmp_path}/motifs.conf\n"
    assert call(f"{settings}SLUICE_DATA_DIR=/data/sluice\nconfigure_sluice_motifs", "lib/sluice_conf") == ""
    path = tmp_path / "motifs.conf"
    assert path.stat().st_mode & 0o077 == 0, "the URL of Redis may hold a password"
    found = read_settings(str(path))
    folder = "/data/sluice"
    assert {name: found[name] for name in ("socket", "agent_socket", "snapshot_dir", "cache_dir", "key_file")} == {
        "socket": f"{folder}/motifs.sock",
        "agent_socket": f"{folder}/agent.sock",
        "snapshot_dir": f"{folder}/snapshot",
        "cache_dir": f"{folder}/cache",
        "key_file": f"{tmp_path}/keys.json",
    }
    assert found["redis_url"] == "redis://127.0.0.1:6379/0"
    parser = configparser.ConfigParser()
    parser.read(path)
    assert parser["pipeline:main"]["pipeline"].split()[-1] == "proxy-server"
    assert parser.defaults()["swift_dir"] == "/etc/swift"


def test_a_proxy_asks_the_motif_daemon_where_one_is_enabled():
    ini = "function iniget { echo 'copy slo dlo symlink proxy-server'; }\nfunction iniset { echo \"$2 $3=$4\"; }"
    option = "filter:sluice motif_socket=/opt/stack/data/sluice/motifs.sock"
    configure = f"{ini}\nconfigure_sluice_proxy /proxy.conf"
    assert option in call(configure, "lib/sluice_swift").splitlines()
    without = call(f"ENABLED='key s-proxy'\n{configure}", "lib/sluice_swift").splitlines()
    assert "filter:sluice use=egg:openstack-sluice#proxy" in without
    assert option not in without
    elsewhere = 'ENABLED="key s-object"\nsource "$PLUGIN/settings"\nis_service_enabled sluice-motifs || echo none'
    assert call(f'PLUGIN="{DEVSTACK}"\n{elsewhere}', "lib/sluice_swift") == "none"


def test_tempest_is_told_what_its_plugin_has_an_option_for():
    told = re.findall(
        r'iniset "\$TEMPEST_CONFIG" (\S+) (\w+)', (DEVSTACK / "lib" / "sluice").read_text(encoding="utf-8")
    )
    plugin = (DEVSTACK / "sluice_tempest_plugin" / "config.py").read_text(encoding="utf-8")
    assert {section for section, _ in told} == {"service_available", "sluice-feature-enabled"}
    assert {name for _, name in told} == set(re.findall(r'cfg\.BoolOpt\(\s*"(\w+)"', plugin))


def test_the_docs_have_every_option_with_its_default():
    settings = (DEVSTACK / "settings").read_text(encoding="utf-8")
    options = dict(re.findall(r"^(SLUICE_\w+)=\$\{\1:-(.*)\}$", settings, re.MULTILINE))
    page = (DEVSTACK.parent / "docs" / "admin" / "devstack.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `(SLUICE_\w+)` \| `(.*?)` \|", page, re.MULTILINE)) == options


@pytest.mark.parametrize("distribution", ["sluice", "openstack-sluice"])
def test_files_of_swift_that_name_either_distribution_are_restored_and_not_copied(tmp_path, distribution):
    swift, copies = tmp_path / "swift", tmp_path / "copies"
    swift.mkdir()
    plain, ours = "use = egg:swift#proxy\n", f"use = egg:{distribution}#proxy\n"
    (swift / "proxy-server.conf").write_text(plain)
    places = f"SWIFT_CONF_DIR={swift} SLUICE_SWIFT_COPIES={copies}"
    call(f"{places}; copy_swift_confs", "lib/sluice_swift")
    (swift / "proxy-server.conf").write_text(ours)
    call(f"{places}; copy_swift_confs", "lib/sluice_swift")
    assert (copies / "proxy-server.conf").read_text() == plain
    call(f"{places}; restore_swift_confs", "lib/sluice_swift")
    assert (swift / "proxy-server.conf").read_text() == plain
