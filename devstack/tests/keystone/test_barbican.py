"""A cluster with Barbican, before its start: the written files, and Sluice's configuration."""

import configparser
import re
import stat
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cluster import components
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.errors import LaunchError
from sluice_aio.keystone import barbican, seed, venv

DOCS = Path(__file__).parents[3] / "docs" / "admin" / "encryption.md"


@pytest.fixture
def layout(tmp_path):
    return Layout.at(tmp_path, 21000)


def parsed(text):
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.read_string(text)
    return parser


def test_barbican_has_a_key_and_a_login_of_its_own_which_stay(layout):
    path = barbican.folder(layout) / "barbican.conf"
    barbican.write_barbican(layout)
    first = path.read_text()
    barbican.write_barbican(layout)
    assert path.read_text() == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = parsed(first)
    assert found["DEFAULT"]["host_href"] == "http://127.0.0.1:21018"
    assert found["queue"]["enable"] == "false"
    login = found["keystone_authtoken"]
    assert (login["username"], login["password"]) == ("barbican", seed.password(layout, "barbican"))
    Fernet(found["simple_crypto_plugin"]["kek"])  # ValueError for a text that is no key


def test_the_program_is_run_by_barbicans_own_python(layout, monkeypatch):
    monkeypatch.setattr(venv, "python", lambda *_, service="keystone": f"/{service}/python")
    command = components.make_servers(layout, ["barbican"])["barbican"].argv()
    assert command[:2] == ["/barbican/python", "-I"]
    assert command[3:] == [str(layout.data / "barbican"), "21018"]
    assert "barbican==23.0.0" in venv.CONSTRAINTS.with_name("barbican-constraints.txt").read_text().splitlines()


def test_each_service_has_an_environment_of_its_own(tmp_path, monkeypatch):
    ran = []

    def run(command, say):
        ran.append(command)
        if "pip" not in command:
            Path(command[-1], "bin").mkdir(parents=True)

    monkeypatch.setattr(venv, "_run", run)
    ours, theirs = (venv.python(cache=tmp_path, service=name) for name in ("barbican", "keystone"))
    assert ours.parents[1].name.startswith("barbican-")
    assert theirs.parents[1].name.startswith("keystone-")
    assert [command[-1] for command in ran if "pip" in command] == ["barbican", "keystone"]


def test_barbican_without_keystone_is_refused(layout):
    with pytest.raises(LaunchError, match="barbican asks Keystone"):
        Cluster(layout, components.DEFAULT | {"barbican"})
    assert "keystone" in Cluster(layout, {"barbican"}, setup=Setup(auth=KEYSTONE))._names


def test_the_documentation_shows_the_configuration_that_is_tested(layout):
    shown = DOCS.read_text(encoding="utf-8").partition("### Barbican")[2]
    documented = parsed(re.search(r"```ini\n(.*?)```", shown, re.DOTALL)[1])
    written = parsed(barbican.key_manager_conf(layout, "2026", {"2025": "0f9c8a52-…", "2026": "77ab01f3-…"}))
    assert documented.sections() == written.sections()
    for name in written.sections():
        assert list(documented[name]) == list(written[name])
    theirs = {"auth_url", "password"}
    for name in written.sections():
        for option in set(written[name]) - theirs:
            assert documented[name][option] == written[name][option]
