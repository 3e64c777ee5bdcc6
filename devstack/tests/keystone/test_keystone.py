"""A cluster with Keystone, before its start: the written files, and the environment that pip creates."""

import configparser
import stat
import sys

import pytest

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cluster import components
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.conf.proxy import proxy_conf
from sluice_aio.conf.sluice import write_sluice
from sluice_aio.errors import LaunchError
from sluice_aio.keystone import seed, venv

SETUP = Setup(auth=KEYSTONE, api_options={"self_service": "noop"})


@pytest.fixture
def layout(tmp_path):
    return Layout.at(tmp_path, 21000)


def parsed(text):
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.read_string(text)
    return parser


def test_keystones_middlewares_stand_where_tempauth_stood(layout):
    names = parsed(proxy_conf(layout, plain=False, setup=SETUP))["pipeline:main"]["pipeline"].split()
    usual = parsed(proxy_conf(layout, plain=False))["pipeline:main"]["pipeline"].split()
    left, right = names.index("authtoken"), names.index("keystoneauth")
    assert names[left : right + 1] == ["authtoken", "sluice-s3select", "s3api", "s3token", "keystoneauth"]
    assert [*names[:left], "sluice-s3select", "s3api", "tempauth", *names[right + 1 :]] == usual


def test_swift_and_the_api_log_in_as_users_of_their_own(layout):
    swift = parsed(proxy_conf(layout, plain=False, setup=SETUP))["filter:authtoken"]
    write_sluice(layout, "redis://x", "amqp://x", SETUP)
    path = layout.configs / "api.conf"
    api = parsed(path.read_text())
    assert api["api"]["auth"] == "keystone"
    assert api["api"]["self_service"] == "noop"
    ours = api["keystone_authtoken"]
    assert (swift["username"], ours["username"]) == ("swift", "sluice")
    assert swift["password"] != ours["password"] == seed.password(layout, "sluice")
    of_s3 = parsed(proxy_conf(layout, plain=False, setup=SETUP))["filter:s3token"]
    assert (of_s3["username"], of_s3["password"]) == (swift["username"], swift["password"])
    assert ours["auth_url"] == layout.keystone_url == "http://127.0.0.1:21016/v3"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_being_asked_for_there_is_no_keystone(layout):
    write_sluice(layout, "redis://x", "amqp://x")
    api = parsed((layout.configs / "api.conf").read_text())
    assert api["api"]["auth"] == "token"
    assert not api.has_section("keystone_authtoken")
    assert "keystone" not in components.DEFAULT
    with pytest.raises(LaunchError, match="no auth `kerberos`, expected tempauth or keystone"):
        Setup(auth="kerberos")


def test_the_program_is_run_by_keystones_own_python(layout, monkeypatch):
    monkeypatch.setattr(venv, "python", lambda *_: "/venv/python")
    command = components.make_servers(layout, ["keystone"])["keystone"].argv()
    assert command[:2] == ["/venv/python", "-I"]
    assert command[3:] == [str(layout.data / "keystone"), "21016"]
    assert "keystone" in Cluster(layout, setup=SETUP)._names


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """A Keystone that installs at once, or fails: the commands that were run."""
    ran = []

    def run(command, say):
        ran.append(command)
        if "pip" in command:
            say("  Collecting keystone")
            if (tmp_path / "broken").exists():
                raise LaunchError("keystone cannot be installed: no")
        else:
            (tmp_path / "cache").joinpath(command[-1], "bin").mkdir(parents=True)

    monkeypatch.setattr(venv, "_run", run)
    return ran


def test_the_environment_is_made_once_from_pinned_versions_and_says_so(quick, tmp_path):
    said = []
    first = venv.python(said.append, tmp_path / "cache")
    assert venv.python(said.append, tmp_path / "cache") == first
    assert said == ["installing keystone into an environment of its own, once", "  Collecting keystone"]
    assert [command[0] for command in quick] == [sys.executable, quick[1][0]]
    assert quick[1][-3:] == ["--constraint", str(venv.CONSTRAINTS), "keystone"]
    assert "keystone==30.0.0" in venv.CONSTRAINTS.read_text().splitlines()
    assert first.parent.is_dir()


def test_an_installation_that_fails_leaves_nothing_and_is_tried_again(quick, tmp_path):
    (tmp_path / "broken").touch()
    with pytest.raises(LaunchError, match="cannot be installed"):
        venv.python(cache=tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["keystone.lock"]
    (tmp_path / "broken").unlink()
    venv.python(cache=tmp_path / "cache")


def test_what_pip_says_is_in_the_error(tmp_path):
    said = []
    with pytest.raises(LaunchError, match="went wrong"):
        venv._run(
            [sys.executable, "-c", "print('Collecting x'); print('went wrong'); raise SystemExit(1)"], said.append
        )
    assert said == ["  Collecting x"]
