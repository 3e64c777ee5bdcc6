"""A node with the former distribution `sluice` gets `openstack-sluice`: Swift's files, its objects, its policies.

The former one is built from the last commit before the renaming, and starts its own cluster.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from sluice_aio.base.swift_http import SwiftHttp
from sluice_client import Client

CLONE = Path(__file__).parents[2]
#: The commit whose distribution is upgraded; later ones up to the renaming write the same files.
FORMER = "6a3c314a"
TEXT = b"".join(b"%d: a line that compresses\n" % number for number in range(20_000))
POLICY = "FOR CONTAINER AUTH_test/kept DO SET compression ON PROXY, SET encryption ON STORAGE_NODE"
#: Loads an application as Swift's servers do, with the swift.conf beside its file.
LOAD = """
import os, sys
from swift.common import utils
utils.set_swift_dir(os.path.dirname(sys.argv[1]))
from swift.common.wsgi import loadapp
loadapp(sys.argv[1])
"""


class Node:
    """An environment of its own with one distribution of Sluice, and its cluster."""

    def __init__(self, folder):
        self.folder = folder
        self.cluster = folder / "cluster"
        self.bin = folder / "venv" / "bin"

    def make(self):
        """Create an environment with the packages of this one, without Sluice's distribution."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.bin.parent)], check=True)
        site = Path(self.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        shutil.copytree(sysconfig.get_path("purelib"), site, copy_function=_link, dirs_exist_ok=True)
        for ours in [*site.glob("openstack_sluice-*"), *site.glob("__editable__*sluice*")]:
            shutil.rmtree(ours) if ours.is_dir() else ours.unlink()
        for name in os.listdir(Path(sys.executable).parent):
            if name.startswith(("swift-", "gunicorn")):
                self._write_script(name)

    def _write_script(self, name):
        """A program of another distribution, for this environment's Python."""
        text = Path(sys.executable).with_name(name).read_text()
        (self.bin / name).write_text(re.sub(r"\A#!.*", f"#!{self.bin / 'python'}", text))
        (self.bin / name).chmod(0o755)

    def run(self, program, *arguments, succeeds=True):
        """Run a program; return its output, or its errors where it must fail."""
        ended = subprocess.run([self.bin / program, *arguments], capture_output=True, text=True, cwd=self.folder)
        assert (ended.returncode == 0) is succeeds, ended.stdout + ended.stderr
        return ended.stdout if succeeds else ended.stderr

    def pip(self, *arguments):
        self.run("python", "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments)

    def up(self):
        self.run("sluice-aio", "--folder", str(self.cluster), "--ports", "free", "up")

    def down(self):
        self.run("sluice-aio", "--folder", str(self.cluster), "down")

    def settings(self):
        """The variables that ``playrc`` exports."""
        shown = subprocess.run(
            ["/bin/sh", "-c", '. "$0" && env', self.cluster / "playrc"], capture_output=True, text=True
        )
        return dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)

    def swift(self):
        known = self.settings()
        return SwiftHttp(known["ST_AUTH"].removesuffix("/auth/v1.0")).login(known["ST_USER"], known["ST_KEY"])

    def api(self):
        known = self.settings()
        return Client(known["SLUICE_URL"], Path(known["SLUICE_TOKEN_FILE"]).read_text().strip())

    def swift_files(self):
        return sorted(str(path) for path in self.cluster.rglob("*.conf") if "egg:sluice#" in path.read_text())


def _link(source, target):
    """The same file where both folders are on one file system, else a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def wheel(commit, folder):
    """The wheel of the clone at ``commit``."""
    archive = subprocess.run(["git", "archive", commit], cwd=CLONE, capture_output=True, check=True)
    tree, target = folder / f"tree-{commit}", folder / f"wheel-{commit}"
    tree.mkdir()
    subprocess.run(["tar", "-x"], cwd=tree, input=archive.stdout, check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "wheel", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", target, tree], check=True)
    (made,) = target.glob("*.whl")
    return str(made)


@pytest.fixture
def node():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    made = Node(folder)
    try:
        made.make()
        yield made
        made.down()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_node_is_upgraded_as_the_page_says(node, tmp_path):
    new = wheel("HEAD", tmp_path)
    node.pip("install", "--no-deps", wheel(FORMER, tmp_path))
    node.up()
    swift = node.swift()
    assert swift.request("PUT", "kept").status == 201
    with node.api() as api:
        policy = api.create_policy(POLICY, wait=30)["id"]
    put = swift.request("PUT", "kept/o", TEXT)
    assert put.status == 201
    node.down()

    # the order that deletes the files of both: daemons refuse to start before that, and the page describes the repair
    node.pip("install", "--no-deps", new)
    refused = node.run("sluice-agent", "--config", str(next(node.cluster.rglob("agent.conf"))), succeeds=False)
    assert all(said in refused for said in ("`sluice`", "`openstack-sluice`", "pip uninstall sluice"))
    node.pip("uninstall", "-y", "sluice")
    node.pip("install", "--force-reinstall", "--no-deps", new)

    files = node.swift_files()
    proxy = next(name for name in files if name.endswith("/proxy.conf"))
    assert "sluice" in node.run("python", "-P", "-c", LOAD, proxy, succeeds=False)
    shown = node.run("sluice-agent", "upgrade-swift-conf", "--write", *files)
    assert all(f"--- {name}\n" in shown for name in files)
    assert "-use = egg:sluice#proxy\n+use = egg:openstack-sluice#proxy\n" in shown
    assert not node.swift_files()
    node.run("python", "-P", "-c", LOAD, proxy)

    node.up()
    got = node.swift().request("GET", "kept/o")
    assert (got.status, got.body, got.headers["etag"]) == (200, TEXT, put.headers["etag"])
    with node.api() as api:
        assert [one["id"] for one in api.policies()] == [policy]
