"""``sluice-agent upgrade-swift-conf``: its output, and its changes.

Tests the commands of docs/admin/upgrade.md.
"""

import stat

import pytest

from sluice_agent import swift_conf
from sluice_agent.cli import main

FORMER = """\
[filter:sluice]
# ours since 0.1
use = egg:sluice#proxy
[filter:cache]
use = egg:swift#memcache
"""
CHANGED = FORMER.replace("egg:sluice#proxy", "egg:openstack-sluice#proxy")


@pytest.fixture
def swift(tmp_path, monkeypatch):
    """Swift's folder with a proxy's file and two of object servers, one in a folder of files."""
    monkeypatch.setattr(swift_conf, "SWIFT", tmp_path)
    (tmp_path / "object-server").mkdir()
    for name in ("proxy-server.conf", "object-server/1.conf"):
        (tmp_path / name).write_text(FORMER)
    (tmp_path / "object-server.conf").write_text("[DEFAULT]\n")
    return tmp_path


def test_without_write_the_difference_is_shown_and_nothing_changes(swift, capsys):
    assert main(["upgrade-swift-conf"]) == 1
    shown = capsys.readouterr()
    assert shown.out.count("-use = egg:sluice#proxy\n+use = egg:openstack-sluice#proxy\n") == 2
    assert "2 file(s) to change" in shown.err
    assert (swift / "proxy-server.conf").read_text() == FORMER


def test_write_changes_what_names_the_former_distribution_and_only_once(swift, capsys):
    (swift / "proxy-server.conf").chmod(0o640)
    untouched = (swift / "object-server.conf").stat()
    assert main(["upgrade-swift-conf", "--write"]) == 0
    for name in ("proxy-server.conf", "object-server/1.conf"):
        assert (swift / name).read_text() == CHANGED
    assert stat.S_IMODE((swift / "proxy-server.conf").stat().st_mode) == 0o640
    assert (swift / "object-server.conf").stat().st_mtime_ns == untouched.st_mtime_ns
    assert sorted(path.name for path in swift.iterdir()) == ["object-server", "object-server.conf", "proxy-server.conf"]
    capsys.readouterr()
    assert main(["upgrade-swift-conf", "--write"]) == 0
    assert capsys.readouterr().out == "no file names the former distribution `sluice`\n"


def test_only_named_files_are_changed(swift):
    assert main(["upgrade-swift-conf", "--write", str(swift / "object-server" / "1.conf")]) == 0
    assert (swift / "object-server" / "1.conf").read_text() == CHANGED
    assert (swift / "proxy-server.conf").read_text() == FORMER


@pytest.mark.parametrize(
    ("files", "said"), [([], "no `*.conf` in"), (["/no/such.conf"], "cannot read `/no/such.conf`")]
)
def test_what_cannot_be_read_is_said(tmp_path, monkeypatch, capsys, files, said):
    monkeypatch.setattr(swift_conf, "SWIFT", tmp_path)
    assert main(["upgrade-swift-conf", *files]) == 2
    assert said in capsys.readouterr().err
