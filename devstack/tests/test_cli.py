"""The command line without a cluster."""

from __future__ import annotations

import pytest

from sluice_aio import cli
from sluice_aio.cluster import components


def test_help_names_the_commands_and_the_variables(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for word in ("up", "down", "status", "demo", "SLUICE_DIR", "SLUICE_PORT_BASE"):
        assert word in text


def test_down_and_status_succeed_without_a_cluster(tmp_path, capsys):
    options = ["--folder", str(tmp_path / "c")]
    assert cli.main([*options, "down"]) == 0
    assert cli.main([*options, "status"]) == cli.STOPPED
    assert "no cluster runs" in capsys.readouterr().out
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("ports", ["many", "99", "70000"])
def test_invalid_ports_are_refused(tmp_path, capsys, ports):
    assert cli.main(["--folder", str(tmp_path), "--ports", ports, "status"]) == 1
    assert f"`{ports}`" in capsys.readouterr().err


def test_options_win_over_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("SLUICE_DIR", "elsewhere")
    monkeypatch.setenv("SLUICE_PORT_BASE", "20000")
    monkeypatch.chdir(tmp_path)
    arguments = cli.parser().parse_args(["status"])
    assert cli.layout_of(arguments).ports["proxy"] == 20000
    assert cli.layout_of(arguments).folder == tmp_path / "elsewhere"
    arguments = cli.parser().parse_args(["--folder", "mine", "--ports", "21000", "status"])
    assert cli.layout_of(arguments).ports["proxy"] == 21000
    assert cli.layout_of(arguments).folder == tmp_path / "mine"


def test_an_unknown_service_is_refused(tmp_path):
    from sluice_aio.base.layout import Layout
    from sluice_aio.errors import LaunchError

    with pytest.raises(LaunchError, match="`proxxy`, expected one of"):
        components.make_servers(Layout.at(tmp_path), {"proxxy"})


def test_profiles_are_named_together_and_a_wrong_one_is_refused(capsys):
    assert cli.parser().parse_args(["up", "--with", "block,horizon"]).profiles == {"block", "horizon"}
    with pytest.raises(SystemExit):
        cli.parser().parse_args(["up", "--with", "horizont"])
    assert "no profile `horizont`, expected some of block, horizon" in capsys.readouterr().err
