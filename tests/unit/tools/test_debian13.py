"""``tools/debian13`` up to its entry into the root, with apt-get, debootstrap and unshare replaced by recorders."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "tools" / "debian13"
TOOLS = ("bash", "cat", "dirname", "find", "mkdir", "mv", "rm", "tail", "tar")
SOURCES = """\
http://mirror.test/debian-security bookworm-security main
http://mirror.test/debian bookworm-updates main
http://mirror.test/debian bookworm contrib
http://mirror.test/debian bookworm main
http://other.test/debian bookworm main
"""
NOTE = '#!/bin/bash\necho "$(basename "$0") $*" >> "$NOTES"\n'


class Machine:
    """A clone with three files, and a PATH with only the given files."""

    def __init__(self, folder):
        self.clone, self.programs, self.notes = folder / "clone", folder / "bin", folder / "notes"
        self.programs.mkdir()
        (self.clone / "tools").mkdir(parents=True)
        shutil.copy(SCRIPT, self.clone / "tools" / "debian13")
        (self.clone / "setup.cfg").write_text("new")
        for tool in (*TOOLS, "basename"):
            (self.programs / tool).symlink_to(shutil.which(tool))
        self.program("id", "#!/bin/bash\necho 0\n")
        self.program("git", "#!/bin/bash\nprintf 'setup.cfg\\0tools/debian13\\0deleted\\0'\n")
        self.program("apt-get", f"#!/bin/bash\ncat <<'END'\n{SOURCES}END\n")
        self.program("debootstrap", NOTE + 'mkdir -p "${@: -2:1}"\n')
        self.program("unshare", NOTE)

    def program(self, name, text):
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)

    @property
    def root(self):
        return self.clone / ".debian13" / "root"

    def run(self, *words):
        return subprocess.run(
            [str(self.programs / "bash"), str(self.clone / "tools" / "debian13"), *words],
            env={"PATH": str(self.programs), "NOTES": str(self.notes)},
            capture_output=True,
            text=True,
            check=False,
        )

    def noted(self, program):
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [line for line in lines if line.startswith(f"{program} ")]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_the_root_is_made_once_from_the_archive_of_apt(machine):
    for _ in range(2):
        result = machine.run()
        assert result.returncode == 0, result.stderr
    (made,) = machine.noted("debootstrap")
    assert made.endswith(" trixie .debian13/making http://mirror.test/debian")
    assert [line.partition("--inside ")[2] for line in machine.noted("unshare")] == ["demo unit service"] * 2


def test_the_clone_is_copied_anew_and_its_environment_stays(machine):
    place = machine.root / "sluice"
    for name in (".venv", "old"):
        (place / name).mkdir(parents=True)
        (place / name / "file").touch()
    assert machine.run("unit").returncode == 0
    assert machine.noted("unshare")[0].endswith("--inside unit")
    assert (place / "setup.cfg").read_text() == "new"
    assert sorted(one.name for one in place.iterdir()) == [".venv", "setup.cfg", "tools"]
    assert (place / ".venv" / "file").exists()


def test_a_failed_debootstrap_leaves_no_root_and_shows_its_log(machine):
    machine.program(
        "debootstrap", '#!/bin/bash\nmkdir -p "${@: -2:1}"\nfor n in {1..40}; do echo line $n; done; exit 1\n'
    )
    result = machine.run()
    assert result.returncode == 1
    assert "the end of .debian13/debootstrap.log:\nline 26\n" in result.stderr
    assert not machine.root.exists()


@pytest.mark.parametrize(
    ("program", "text", "said"),
    [
        ("id", "#!/bin/bash\necho 1000\n", "needs root: run `sudo make debian13`"),
        ("apt-get", "#!/bin/bash\n", "apt's sources name no Debian archive"),
    ],
)
def test_what_is_missing_is_named(machine, program, text, said):
    machine.program(program, text)
    result = machine.run()
    assert (result.returncode, machine.noted("unshare")) == (1, [])
    assert said in result.stderr
