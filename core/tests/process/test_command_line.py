"""The command line of daemons: the files that it names, their order, and its output."""

from importlib import metadata
from pathlib import Path

import pytest

from sluice_core.errors import SluiceError
from sluice_core.process import command_line
from sluice_core.process.command_line import run_daemon


@pytest.fixture
def daemon(tmp_path, monkeypatch):
    """Runs a daemon that records its files; gives the status and the record."""
    monkeypatch.chdir(tmp_path)

    def run(*argv, error=None):
        noted = []

        def serve(files):
            noted.extend(files)
            if error:
                raise error

        status = run_daemon(
            argv, serve, lambda: "[x]\n#a = 1\n", prog="sluice-x", description="tries", config="an ini file"
        )
        return status, [str(file) for file in noted]

    return run


def test_files_are_read_in_the_order_of_the_command_line_and_those_of_a_folder_by_name(daemon, tmp_path):
    folder = tmp_path / "conf.d"
    folder.mkdir()
    for name in ("20-b.conf", "10-a.conf", "README", ".hidden.conf"):
        (folder / name).touch()
    status, files = daemon("--config-file", "first.conf", "--config-dir", str(folder), "--config", "last.conf")
    assert status == 0
    assert files == ["first.conf", f"{folder}/10-a.conf", f"{folder}/20-b.conf", "last.conf"]


def test_the_older_word_and_the_home_folder_are_understood(daemon):
    assert daemon("--config", "~/x.conf") == (0, [str(Path.home() / "x.conf")])


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((), "--config FILE is needed"),
        (("--config-dir", "empty"), "--config FILE is needed"),
        (("--config-dir", "none"), "argument --config-dir: `none` is no folder"),
    ],
)
def test_a_command_line_without_a_file_is_refused(daemon, tmp_path, capsys, argv, said):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit) as ended:
        daemon(*argv)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_sample_needs_no_file(daemon, capsys):
    assert daemon("--sample-config") == (0, [])
    assert capsys.readouterr().out == "[x]\n#a = 1\n"


def test_the_version_is_that_of_the_distribution(daemon, capsys):
    with pytest.raises(SystemExit) as ended:
        daemon("--version")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"sluice-x {metadata.version('openstack-sluice')}\n"


def test_what_cannot_be_used_is_said_in_one_line(daemon, capsys):
    assert daemon("--config", "x.conf", error=SluiceError("option `a`: bad"))[0] == 1
    assert capsys.readouterr().err == "sluice-x: option `a`: bad\n"


def test_a_daemon_does_not_start_from_two_distributions(daemon, monkeypatch, capsys):
    def refuse():
        raise SluiceError("`sluice` 0.1.0 and `openstack-sluice` 0.2.0 are both installed")

    monkeypatch.setattr(command_line, "refuse_two_distributions", refuse)
    assert daemon("--config", "x.conf") == (1, [])
    assert "both installed" in capsys.readouterr().err
