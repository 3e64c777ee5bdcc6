import pytest

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import Setup
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.conf import horizon
from sluice_aio.errors import LaunchError


@pytest.fixture
def layout(tmp_path):
    return Layout.at(tmp_path, 20000)


def settings(layout):
    return (horizon.folder(layout) / "local" / "local_settings.py").read_text(encoding="utf-8")


def test_settings_name_keystone_and_a_secret_that_stays_and_is_its_owners(layout):
    horizon.write_horizon(layout)
    secret = horizon.folder(layout) / "secret"
    first = secret.read_bytes()
    horizon.write_horizon(layout)
    assert layout.keystone_url in settings(layout)
    assert first.decode() not in settings(layout)
    assert secret.read_bytes() == first
    assert secret.stat().st_mode & 0o077 == 0


def test_settings_are_python(layout):
    horizon.write_horizon(layout)
    compile(settings(layout), "local_settings.py", "exec")


def test_another_style_sheet_is_compressed_anew_and_the_same_one_is_not(layout, tmp_path, monkeypatch):
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    (plugin / "one.scss").write_text("a { color: red }")
    monkeypatch.setattr(horizon, "_PLUGIN", plugin)
    written = []
    for text in ("a { color: red }", "a { color: red }", "a { color: blue }"):
        (plugin / "one.scss").write_text(text)
        horizon.write_horizon(layout)
        written.append(settings(layout))
    assert written[0] == written[1] != written[2]


def test_horizon_is_not_started_without_keystone(layout):
    with pytest.raises(LaunchError, match="horizon asks Keystone who logs in"):
        Cluster(layout, {"horizon"}, setup=Setup.plain())
