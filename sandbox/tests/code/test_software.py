"""The build of a process: two commits differ; a wheel and the clone that it was built from do not."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_code import software as module
from sluice_code.software import code_digest, read_files, software

CLONE = Path(__file__).resolve().parents[3]
PROGRAM = "from sluice_code.software import software; print(software())"


def version(**environ):
    ran = subprocess.run(
        # not in the clone, whose openstack_sluice.egg-info would be found first
        [sys.executable, "-P", "-c", PROGRAM],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


def test_the_version_has_a_digest_of_the_code():
    assert re.fullmatch(r"openstack-sluice [0-9.]+\+[0-9a-f]{10}", software())


def test_another_process_of_the_same_code_says_the_same():
    assert version() == version(PYTHONHASHSEED="7") == software()


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "sluice_core"
    (folder / "inner").mkdir(parents=True)
    (folder / "one.py").write_text("ONE = 1\n")
    (folder / "inner" / "words.json").write_text("{}\n")
    return folder


def digest(package):
    return code_digest(read_files(package, "sluice_core"))


def test_a_file_that_changes_moves_or_comes_makes_another_build(package):
    found = {digest(package)}
    (package / "one.py").write_text("ONE = 2\n")
    found.add(digest(package))
    (package / "one.py").rename(package / "two.py")
    found.add(digest(package))
    (package / "inner" / "three.py").touch()
    found.add(digest(package))
    assert len(found) == 4


def test_what_a_node_makes_of_the_code_makes_no_other_build(package):
    before = digest(package)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "one.cpython-311.pyc").write_bytes(b"\0")
    (package / "native.so").write_bytes(b"\0")
    assert digest(package) == before


def test_code_that_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr(module, "DISTRIBUTION", "sluice-that-is-not-there")
    assert software.__wrapped__() == "sluice-that-is-not-there, not installed"


@pytest.mark.service
def test_a_wheel_and_the_clone_that_it_is_made_of_are_one_build(tmp_path):
    tree, target = tmp_path / "clone", tmp_path / "installed"
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=CLONE, capture_output=True, check=True, text=True
    ).stdout
    for name in filter(None, tracked.split("\0")):
        if (CLONE / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CLONE / name, tree / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--no-compile", "--target", target, tree], check=True)
    assert version(PYTHONPATH=str(target)) == software()
    record = next(target.glob("openstack_sluice-*.dist-info")) / "RECORD"
    record.write_text(re.sub(r"(sluice_core/describe.py,sha256=)\w", r"\1_", record.read_text()))
    assert version(PYTHONPATH=str(target)) != software()
