"""The command ``sluice-actors`` and its options."""

import os
import socket

import pytest

from sluice_actors import cli, settings
from sluice_core.options import OptionError


def config(tmp_path, text):
    path = tmp_path / "actors.conf"
    path.write_text(text)
    return path


def test_the_sample_is_a_configuration_at_its_defaults(tmp_path, capsys):
    assert cli.main(["--sample-config"]) == 0
    sample = capsys.readouterr().out
    found = settings.read(config(tmp_path, sample))
    mine = f"{socket.gethostname()}-{os.getpid()}"
    assert found == {**{one.name: one.default for one in settings.OPTIONS if not one.is_retired}, "host": mine}
    uncommented = sample.replace("\n#", "\n").splitlines()
    lines = [line for line in uncommented if " = " in line or line.startswith("[")]
    assert settings.read(config(tmp_path, "\n".join(lines))) == found


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("transient_window = 3", "did you mean `transient_windows`"),
        ("transient_windows = 0", "`transient_windows`: `0`, expected 1 or more"),
        ("heartbeat_ms = 49", "`heartbeat_ms`: `49`, expected 50 or more"),
        ("heartbeat_ms = many", "option `heartbeat_ms`"),
        ("log_level = loud", "`loud`, expected one of DEBUG"),
    ],
)
def test_options_that_cannot_be_used_are_refused(tmp_path, capsys, line, said):
    path = config(tmp_path, f"[actors]\n{line}\n")
    with pytest.raises(OptionError, match=r"\[actors\]"):
        settings.read(path)
    assert cli.main(["--config", str(path)]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("argv", "status"), [(["--help"], 0), ([], 2), (["--what"], 2)])
def test_the_command_line(argv, status, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(argv)
    assert ended.value.code == status
    shown = capsys.readouterr()
    assert "--sample-config" in shown.out + shown.err
