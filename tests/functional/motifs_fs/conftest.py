"""Mounts of motifs by ``sluice-motif-fs``, with templates that a test can hold up."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "sluice_motifs_fs"]
#: The name of the mounts in the kernel's list.
KIND = "fuse"


class Mount:
    """One folder and its mount; several mounts may be made of one folder, one after the other."""

    def __init__(self, folder, plugins):
        self.source = folder / "source"
        self.path = folder / "mount"
        self.log = folder / "log"
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(plugins), *sys.path])}
        self.source.mkdir(exist_ok=True)
        self.path.mkdir(exist_ok=True)
        self.process = None

    def start(self, *options):
        """Mount it, and wait until it is mounted."""
        with self.log.open("ab") as log:
            command = [*COMMAND, "mount", str(self.source), str(self.path), *options]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment)
        while not self.mounted():
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.01)
        return self

    def mounted(self):
        """Whether it is mounted."""
        lines = Path("/proc/self/mounts").read_text().splitlines()
        return any(line.split(" ")[1] == str(self.path) and line.split(" ")[2] == KIND for line in lines)

    def stop(self):
        """Unmount it; return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def kill(self):
        """Kill its process."""
        self.process.kill()
        self.process.wait()
        subprocess.run(["umount", "-l", str(self.path)], check=True)

    def run(self, *arguments):
        """One command of ``sluice-motif-fs``."""
        command = [*COMMAND, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment, check=False)

    def attach(self, name, template, **params):
        """Attach a motif to a file, as a client does with an extended attribute."""
        text = ", ".join(f'"{key}": "{value}"' for key, value in params.items())
        described = f'{{"template": "{template}", "params": {{{text}}}}}'
        os.setxattr(self.path / name, "user.sluice.motif", described.encode())

    def contract(self, name):
        """Contract a file."""
        os.setxattr(self.path / name, "user.sluice.motif.state", b"contracted")

    def state(self, name):
        """Whether it is contracted or expanded."""
        return os.getxattr(self.path / name, "user.sluice.motif.state").decode()

    def close(self):
        """Remove what a test has left."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
            self.process.kill()
            self.process.wait()
        if self.mounted():
            subprocess.run(["umount", "-l", str(self.path)], check=True)


@pytest.fixture(scope="session")
def plugins(tmp_path_factory):
    """A folder with templates of the tests, as an installed package provides them."""
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "held_copies.py").write_text((Path(__file__).parent / "held_copies.py").read_text())
    package = folder / "held_copies-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: held_copies\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[sluice.motif_templates]\nheld_copy = held_copies:HeldCopy\n")
    return folder


@pytest.fixture
def unmounted(tmp_path, plugins):
    """A folder that a test mounts itself."""
    assert os.geteuid() == 0, "mounts are tried as root"
    assert Path("/dev/fuse").exists(), "/dev/fuse is missing: mounts cannot be tried"
    mount = Mount(tmp_path, plugins)
    yield mount
    mount.close()


@pytest.fixture
def mount(unmounted):
    """A folder that is mounted."""
    return unmounted.start()
