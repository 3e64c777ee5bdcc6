"""The bandwidth of a node: from its options, and measured."""

import errno
import os
import re
import shlex
from pathlib import Path

import pytest

from sluice_agent import calibration
from sluice_agent import disk_speed as calibrate_disk
from sluice_agent.calibration import changed
from sluice_agent.capacity import NAMES, read_capacity, read_rate, write_rate
from sluice_agent.cli import main
from sluice_agent.disk_speed import CHUNK, measure
from sluice_agent.settings import OPTIONS, SECTION, Settings
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.errors import CallerError, PeerError
from sluice_core.messages.bandwidth import GET, PUT, REPLICATION
from sluice_core.options import OptionError, read_file, sample_section


@pytest.mark.parametrize(
    ("text", "rate"),
    [("90MBps", 90e6), ("1MiB/s", 2**20), ("1.5 GB/sec", 1.5e9), ("512KBps", 512e3), ("7Bps", 7.0), (" 2kBps ", 2e3)],
)
def test_rates_are_those_of_the_language(text, rate):
    assert read_rate(text) == rate


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("90", "did you mean `90MBps`"),
        ("90mbps", "did you mean `90MBps`"),
        ("90M", "did you mean `90MBps`"),
        ("90Mb/s", "did you mean `90MBps`"),
        ("90parsecs", "expected a rate such as"),
        ("-1MBps", "expected a rate such as"),
        ("nanBps", "expected a rate such as"),
        ("0MBps", "empty to have it estimated"),
        ("99999999999999TBps", "empty to have it estimated"),
    ],
)
def test_an_invalid_rate_is_refused_with_the_near_miss(text, said):
    with pytest.raises(ValueError, match=said):
        read_rate(text)


@pytest.mark.parametrize("rate", [1.0, 999.0, 1000.0, 123_456.0, 90e6, 999_999_999.0, 1.234e10, 5e13])
def test_a_written_rate_reads_back_and_is_never_more(rate):
    assert rate * 0.98 <= read_rate(write_rate(rate)) <= rate


def test_empty_options_are_to_be_estimated():
    values = dict.fromkeys(NAMES, "") | {"proxy_get_bw": "90MBps", "storage_replication_bw": "1MBps"}
    assert read_capacity(values) == {PROXY: {GET: 90e6}, STORAGE_NODE: {REPLICATION: 1e6}}


def test_an_option_that_is_no_rate_is_named(tmp_path):
    conf = tmp_path / "agent.conf"
    conf.write_text("[agent]\nstorage_put_bw = fast\n")
    with pytest.raises(OptionError, match="option `storage_put_bw`: expected a rate such as 90MBps"):
        Settings.from_options(read_file(OPTIONS, conf, SECTION))


def test_disks_are_measured_and_nothing_stays(tmp_path):
    disks = [tmp_path / "a", tmp_path / "b"]
    for disk in disks:
        disk.mkdir()
    speeds = measure(disks, 0.05, 4 * CHUNK)
    assert [speed.path for speed in speeds] == disks
    assert all(speed.read > 0 and speed.write > 0 for speed in speeds)
    assert [list(disk.iterdir()) for disk in disks] == [[], []]


def test_a_file_system_without_direct_reads_is_measured_too(tmp_path, monkeypatch):
    monkeypatch.setattr(calibrate_disk.os, "O_DIRECT", 0)
    monkeypatch.setattr(calibrate_disk._Run, "_go_direct", lambda self: False)
    [speed] = measure([tmp_path], 0.05, 2 * CHUNK)
    assert not speed.direct
    assert speed.read > 0


def test_a_disk_that_is_not_there_or_may_not_be_written_is_named(tmp_path):
    with pytest.raises(CallerError, match="nowhere"):
        measure([tmp_path / "nowhere"], 0.01, CHUNK)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(PeerError, match="cannot measure"):
        measure([file], 0.01, CHUNK)


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("when", ["write", "read"])
@pytest.mark.parametrize("how", [OSError(errno.EIO, os.strerror(errno.EIO)), OverflowError("a fault of ours")])
def test_the_disk_that_failed_is_named_and_none_that_stopped_for_it(tmp_path, monkeypatch, which, when, how):
    disks = [tmp_path / name for name in ("one", "two", "three")]
    for disk in disks:
        disk.mkdir()
    stock = getattr(calibrate_disk._Run, when)

    def fails(self):
        if os.readlink(f"/proc/self/fd/{self.number}").startswith(f"{disks[which]}/"):
            raise how
        return stock(self)

    monkeypatch.setattr(calibrate_disk._Run, when, fails)
    with pytest.raises((PeerError, OverflowError)) as caught:
        measure(disks, 0.01, CHUNK)
    expected = f"cannot measure `{disks[which]}`: {how.strerror}" if isinstance(how, OSError) else str(how)
    assert str(caught.value) == expected


def test_the_command_prints_options_and_writes_them(tmp_path, capsys):
    conf = tmp_path / "agent.conf"
    conf.write_text("# ours\n" + sample_section(SECTION, OPTIONS) + "\n[other]\nx = 1\n")
    conf.chmod(0o640)
    given = ["--device", str(tmp_path), "--seconds", "0.02", "--size", "2", "--link", "90MBps", "--copies", "3"]
    assert main(["calibrate", *given, "--write", "--config", str(conf)]) == 0
    printed = capsys.readouterr().out.splitlines()
    settings = Settings.from_options(read_file(OPTIONS, conf, SECTION))
    assert settings.capacity[PROXY] == {GET: 90e6, PUT: 30e6}
    assert set(settings.capacity[STORAGE_NODE]) == {GET, PUT, REPLICATION}
    assert max(settings.capacity[STORAGE_NODE].values()) <= 90e6
    assert set(printed) <= set(conf.read_text().splitlines())
    assert conf.read_text().startswith("# ours\n")
    assert conf.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["agent.conf"]


def test_the_commands_of_the_page_measure_and_write(tmp_path, capsys):
    page = (Path(__file__).parents[3] / "docs" / "admin" / "bandwidth.md").read_text(encoding="utf-8")
    commands = re.findall(r"^sluice-agent (calibrate .*)", page, re.MULTILINE)
    assert len(commands) == 3
    conf = tmp_path / "agent.conf"
    conf.write_text("[agent]\n")
    for command in commands:
        words = command.replace("/etc/sluice/agent.conf", str(conf)).replace("/srv/node", str(tmp_path))
        for disk in re.findall(rf"{tmp_path}/sd\w+", words):
            Path(disk).mkdir()
        if "--device" not in words:
            words += f" --device {tmp_path}"
        assert main([*shlex.split(words), "--seconds", "0.02", "--size", "2"]) == 0
        assert "proxy_get_bw = 1.2GBps\n" in capsys.readouterr().out
    assert "proxy_get_bw = 1.2GBps\n" in conf.read_text()


def test_a_file_without_the_section_or_the_option_gets_it():
    values = {"proxy_get_bw": "1MBps"}
    assert changed("", SECTION, values) == "[agent]\nproxy_get_bw = 1MBps\n"
    text = "[agent]\nnode = a\n\n[other]\nproxy_get_bw = 2MBps\n"
    assert (
        changed(text, SECTION, values) == "[agent]\nnode = a\nproxy_get_bw = 1MBps\n\n[other]\nproxy_get_bw = 2MBps\n"
    )
    text = "[agent]\n#proxy_get_bw =\nproxy_get_bw: 3MBps\n"
    assert changed(text, SECTION, values) == "[agent]\n#proxy_get_bw =\nproxy_get_bw = 1MBps\n"


def test_what_cannot_be_measured_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(calibration, "_DEVICES", tmp_path)
    assert calibration.main([]) == 1
    assert "name them with --device" in capsys.readouterr().err
    assert calibration.main(["--link", "1GBps"]) == 0
    assert capsys.readouterr().out == "proxy_get_bw = 1GBps\nproxy_put_bw = 333MBps\n"
    for wrong in (["--write"], ["--link", "fast"], ["--seconds", "nan"]):
        with pytest.raises(SystemExit):
            calibration.main(wrong)
