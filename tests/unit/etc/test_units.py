"""The units in ``etc/systemd``, as systemd reads them where they are installed."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
UNITS = sorted((ROOT / "etc" / "systemd").glob("*.service"))
#: What the probe of the installation guide runs units by.
SYSTEMCTL = ROOT / "tests" / "support" / "hosts" / "systemctl.py"
PAGE = ROOT / "docs" / "install" / "index.md"
SAMPLES = ROOT / "docs" / "configuration" / "sample"
#: What a service gives up; other directives say how it starts and ends.
CONFINES = re.compile(r"(?:Capability|NoNew|Private|Protect|Restrict|SystemCall|UMask)\w*")


@pytest.fixture
def root(tmp_path):
    """A root with the units, and with Sluice's programs where the installation guide links them."""
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg")
    for folder in ("usr/local/bin", "etc/systemd/system"):
        (tmp_path / folder).mkdir(parents=True)
    for line in setup["options.entry_points"]["console_scripts"].split("\n")[1:]:
        program = tmp_path / "usr/local/bin" / line.partition(" = ")[0]
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    for unit in UNITS:
        shutil.copy(unit, tmp_path / "etc/systemd/system")
    return tmp_path


def test_systemd_finds_no_fault_in_the_units(root):
    installed = sorted(map(str, (root / "etc/systemd/system").iterdir()))
    assert len(installed) == len(UNITS) > 0
    command = ["systemd-analyze", "verify", f"--root={root}", "--recursive-errors=no", "--man=no", *installed]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_systemd_would_find_a_fault(root):
    unit = root / "etc/systemd/system/sluice-api.service"
    unit.write_text(unit.read_text().replace("/usr/local/bin/sluice-api", "/usr/local/bin/sluice-apo"))
    command = ["systemd-analyze", "verify", f"--root={root}", "--recursive-errors=no", "--man=no", str(unit)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "sluice-apo is not executable" in ended.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_has_started_when_its_daemon_says_so(unit):
    text = unit.read_text().splitlines()
    assert "Type=notify" in text
    assert "Restart=on-failure" in text


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_what_confines_a_unit_is_applied_by_the_probe_and_named_in_the_guide(unit):
    named = {line.partition("=")[0] for line in unit.read_text().splitlines() if CONFINES.match(line)}
    assert {name for name in named if f'"{name}"' not in SYSTEMCTL.read_text()} == set()
    tried, marker, _ = PAGE.read_text().partition("The test does not apply these directives")
    assert marker
    assert {name for name in named if f"`{name}=" not in tried} == set()


def test_the_sandbox_may_make_control_groups():
    """Else systemd keeps the processor's controller, and ends all of a unit when the kernel ends one process of it."""
    assert "Delegate=yes" in (ROOT / "etc" / "systemd" / "sluice-sandbox.service").read_text().splitlines()


def folders_of(user):
    """The folders that systemd-tmpfiles makes for a user."""
    lines = [line.split() for file in (ROOT / "etc" / "tmpfiles.d").iterdir() for line in file.read_text().splitlines()]
    return {fields[1] for fields in lines if fields[0] == "d" and fields[3] == user}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_runs_as_a_user_whose_folders_are_made(unit):
    users = re.findall(r"^User=(.*)$", unit.read_text(), re.MULTILINE)
    if users == ["sluice"]:
        assert "\nu sluice - " in (ROOT / "etc" / "sysusers.d" / "sluice.conf").read_text()
    else:
        assert users in ([], ["swift"]), "root and Swift's user are there"
    sample = SAMPLES / f"{unit.stem.removeprefix('sluice-')}.conf"
    if users and sample.exists():
        places = re.findall(r"^#?\w+ = (/(?:run|var)/\S+)$", sample.read_text(), re.MULTILINE)
        made = folders_of(users[0])
        assert [place for place in places if not {place, str(Path(place).parent)} & made] == []
