"""The configuration: errors that are reported before a worker is forked, and their texts."""

import os
from dataclasses import replace

import pytest

from sluice_controller.app.apps import ControllerConfig
from sluice_controller.app.checks import check_options, faults
from sluice_controller.app.cli import main
from sluice_controller.app.server import gunicorn_settings
from sluice_controller.config import OPTIONS, Config, split_source
from sluice_controller.identity.caller import read_token, token_matches
from sluice_core.errors import SluiceError
from sluice_core.options import OptionError


@pytest.fixture
def good(token_file):
    return Config(auth="token", token_file=str(token_file))


def test_the_defaults_with_a_token_are_usable(good):
    assert list(faults(good)) == []


BAD = {
    "bind": ("127.0.0.1", "sluice.E002", "address:port"),
    "redis_url": ("http://secret@127.0.0.1", "sluice.E004", "redis://"),
    "history_redis_url": ("http://secret@127.0.0.1", "sluice.E004", "redis://"),
    "history_url": ("secret@127.0.0.1:9090", "sluice.E023", "http://host:port"),
    "workers": (0, "sluice.E005", "expected 1 to 64"),
    "threads": (1, "sluice.E005", "expected 2 to 64"),
    "text_limit": (0, "sluice.E005", "expected 1 to"),
    "log_level": ("loud", "sluice.E006", "debug, info"),
    "node_timeout": (0.0, "sluice.E007", "more than 0"),
    "redis_prefix": ("", "sluice.E008", "expected a word"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_invalid_option_is_named(good, name):
    value, number, text = BAD[name]
    (fault,) = faults(replace(good, **{name: value}))
    assert fault.id == number
    assert f"option `{name}`" in fault.msg
    assert text in fault.msg
    assert "secret" not in fault.msg


def test_a_cinder_without_a_user_is_named(good):
    (fault,) = faults(replace(good, cinder_auth_url="http://127.0.0.1/v3", cinder_user="sluice"))
    assert (fault.id, "expected project:user" in fault.msg) == ("sluice.E022", True)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.1", "", "[::]", "example.org"])
def test_a_static_token_is_not_served_to_the_network(good, host):
    assert [one.id for one in faults(replace(good, bind=f"{host}:8877"))] == ["sluice.E003"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
def test_loopback_addresses_are_served(good, host):
    assert list(faults(replace(good, bind=f"{host}:8877"))) == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o601])
def test_a_token_file_that_others_can_use_is_refused(tmp_path, mode):
    path = tmp_path / "token"
    path.write_text("x" * 32)
    path.chmod(mode)
    with pytest.raises(OptionError, match=f"mode {mode:04o}, expected 0600"):
        read_token(str(path))


@pytest.mark.parametrize("text", ["", "\n", " \n ", "short", "x" * 5000])
def test_a_token_of_the_wrong_length_is_refused(tmp_path, text):
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(text)
    with pytest.raises(OptionError, match="expected 16 to 4096"):
        read_token(str(path))


def test_a_missing_token_file_is_refused(tmp_path):
    with pytest.raises(OptionError, match="cannot be read"):
        read_token(str(tmp_path / "none"))


def test_blanks_around_a_token_are_ignored(token_file):
    assert read_token(str(token_file)) == token_file.read_bytes().strip()
    assert token_matches(token_file.read_text().strip(), read_token(str(token_file)))


def test_the_checks_are_registered_with_django(config):
    from django.apps import apps
    from django.core.checks import run_checks

    assert type(apps.get_app_config("sluice_controller")) is ControllerConfig
    assert check_options() == []
    assert run_checks() == []


def test_the_sample_holds_every_option_and_can_be_read(capsys, tmp_path):
    assert main(["--sample-config"]) == 0
    path = tmp_path / "api.conf"
    path.write_text(capsys.readouterr().out)
    assert Config.read(path) == Config(source=str(path))
    assert all(f"#{option.name} =" in path.read_text() for option in OPTIONS)


def test_an_invalid_configuration_exits_with_1_and_names_the_file(tmp_path, capsys):
    path = tmp_path / "api.conf"
    path.write_text("[api]\nwokers = 3\n")
    assert main(["--config", str(path)]) == 1
    assert "unknown option `wokers`, did you mean `workers`" in capsys.readouterr().err
    path.write_text(f"[api]\nauth = token\ntoken_file = {tmp_path}/none\nbind = 0.0.0.0:1\n")
    assert main(["--config", str(path)]) == 1
    said = capsys.readouterr().err
    assert "[sluice.E001]" in said
    assert "[sluice.E003]" in said
    assert main(["--config", str(tmp_path / "none")]) == 1


def test_check_exits_with_0_for_a_valid_configuration(tmp_path, token_file, capsys):
    path = tmp_path / "api.conf"
    path.write_text(f"[api]\nauth = token\ntoken_file = {token_file}\n")
    assert main(["--config", str(path), "--check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_several_files_and_a_folder_are_one_configuration(tmp_path, token_file, capsys):
    first, folder = tmp_path / "api.conf", tmp_path / "conf.d"
    folder.mkdir()
    first.write_text(f"[api]\nauth = token\ntoken_file = {tmp_path}/none\nworkers = 3\n")
    second = folder / "token.conf"
    second.write_text(f"[api]\ntoken_file = {token_file}\n")
    assert main(["--config-file", str(first), "--config-dir", str(folder), "--check"]) == 0
    assert capsys.readouterr() == ("", "")
    found = Config.read(first, second)
    assert (found.workers, found.token_file) == (3, str(token_file))
    assert Config.read(*split_source(found.source)) == found, "as a worker process reads it"


def test_a_command_line_without_a_file_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--check"])
    assert ended.value.code == 2
    assert "--config FILE is needed" in capsys.readouterr().err


def test_two_distributions_are_refused(monkeypatch, capsys, tmp_path):
    def refuse():
        raise SluiceError("both are installed")

    monkeypatch.setattr("sluice_controller.app.cli.refuse_two_distributions", refuse)
    assert main(["--config", str(tmp_path / "api.conf")]) == 1
    assert capsys.readouterr().err == "sluice-api: both are installed\n"


def test_gunicorn_gets_no_control_socket_and_no_preloaded_application(good):
    settings = gunicorn_settings(good)
    assert settings["control_socket_disable"] is True
    assert settings["preload_app"] is False


def test_importing_the_settings_reads_what_the_environment_names(tmp_path, monkeypatch):
    path = tmp_path / "api.conf"
    path.write_text("[api]\nthreads = 7\n")
    monkeypatch.setenv("SLUICE_API_CONFIG", str(path))
    assert Config.from_environment().threads == 7
    assert os.environ["SLUICE_API_CONFIG"] == str(path)
