"""The distribution that operators install: one wheel, from which each role runs in an environment of its own.

The wheel is built by `python -m build` from what git has of this clone. Each role is installed by its extra, with the
tested versions; then its programs say their version and their help, and start where they need no other server.
"""

from __future__ import annotations

import contextlib
import email
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from packaging.requirements import Requirement

from sluice_aio.base.ports import HOST, free_port

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).parent / "uv"
NAME = "openstack-sluice"
#: Role → programs that it brings, each of which has --version and --help.
ROLES = {
    "dsl": ("sluice-dsl",),
    "client": ("sluice",),
    "openstack": ("sluice", "openstack"),
    "filters": ("sluice-keys",),
    "motifs-kv": (),
    "motifs-fs": ("sluice-motif-fs",),
    "swift": ("sluice-diskfile", "sluice-motifs", "sluice-rewriter"),
    "sandbox": ("sluice-sandbox",),
    "agent": ("sluice-agent",),
    "actors": ("sluice-actors",),
    "controller": ("sluice-api",),
    "block": ("sluice-konnector",),
    "aio": ("sluice-aio",),
}
#: Programs that print a sample of their configuration.
DAEMONS = ("sluice-actors", "sluice-agent", "sluice-api", "sluice-konnector", "sluice-motifs", "sluice-rewriter")
#: What is documentation, and no part of a package.
_NOT_INSTALLED = (".md",)
#: Seconds for a program to say what it was asked.
_PATIENCE = 60


def run(*command, **options):
    """What a program prints; it must end with status 0."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=600, check=False, **options
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def clean_clone(tmp_path_factory):
    """What git has of this clone, and nothing that is left of earlier builds."""
    folder = tmp_path_factory.mktemp("clean")
    names = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return folder


@pytest.fixture(scope="module")
def wheel(clean_clone, tmp_path_factory):
    """The wheel, built from the source distribution."""
    out = tmp_path_factory.mktemp("dist")
    path = os.pathsep.join((str(UV.parent), os.environ["PATH"]))  # by uv, which keeps what it fetched
    run(
        sys.executable,
        "-m",
        "build",
        "--installer",
        "uv",
        "--outdir",
        out,
        clean_clone,
        env={**os.environ, "PATH": path},
    )
    (found,) = out.glob("*.whl")
    (source,) = out.glob("*.tar.gz")
    assert found.name.startswith("openstack_sluice-")
    assert source.name.startswith("openstack_sluice-")
    return found


@dataclass
class Role:
    """An environment with one role."""

    name: str
    folder: Path

    def program(self, name):
        return self.folder / "bin" / name

    def run(self, name, *words):
        """What a program prints, outside of the clone, with no path but its own environment's."""
        env = {"PATH": f"{self.folder / 'bin'}:{os.defpath}", "HOME": str(self.folder), "LANG": "C.UTF-8"}
        return run(self.program(name), *words, cwd=self.folder, env=env)

    @contextlib.contextmanager
    def running(self, name, *words):
        """A program that runs, with the file of its log; it must end in order when it is told to."""
        log = self.folder / f"{name}.log"
        with (
            log.open("wb") as out,
            subprocess.Popen(
                [self.program(name), *words], cwd=self.folder, stdout=out, stderr=out, stdin=subprocess.DEVNULL
            ) as process,
        ):
            try:
                yield process, log
                process.send_signal(signal.SIGTERM)
                assert process.wait(_PATIENCE) == 0, log.read_text()
            finally:
                process.kill()


@pytest.fixture(scope="module")
def role(request, wheel, tmp_path_factory):
    """A fresh environment into which the wheel is installed with one extra."""
    folder = tmp_path_factory.mktemp(request.param) / "env"
    run(UV, "venv", "--quiet", "--python", sys.executable, folder)
    wanted = f"{NAME}[{request.param}] @ {wheel.as_uri()}"
    constraints = ROOT / "constraints.txt"
    run(UV, "pip", "install", "--quiet", "--python", folder / "bin" / "python", "--constraint", constraints, wanted)
    yield Role(request.param, folder)
    shutil.rmtree(folder)


def test_the_wheel_has_every_package_and_data_file_of_the_clone(wheel, clean_clone):
    expected = {
        path.relative_to(room.parent).as_posix()
        for room in clean_clone.glob("*/sluice_*/")
        for path in room.rglob("*")
        if path.is_file() and path.suffix not in _NOT_INSTALLED
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("sluice_")}
    assert names == expected


def test_the_wheel_requires_nothing_under_the_former_name(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    assert metadata["Name"] == NAME
    required = [Requirement(text).name for text in metadata.get_all("Requires-Dist")]
    assert "sluice" not in required
    assert "msgpack" in required
    assert NAME in required, "extras name each other under our own name"


@pytest.mark.parametrize("role", ROLES, indirect=True)
def test_what_a_role_brings_runs_from_the_wheel(role, wheel):
    version = wheel.name.split("-")[1]
    for name in ROLES[role.name]:
        said = role.run(name, "--version")
        assert name == "openstack" or said == f"{name} {version}\n"
        assert "usage" in role.run(name, "--help").lower()
        if name in DAEMONS:
            assert "#log_format = text" in role.run(name, "--sample-config")
    if role.name in _STARTS:
        _STARTS[role.name](role)


def _explain(role):
    assert "compression" in role.run("sluice-dsl", "explain", "FOR TENANT acme DO SET compression")


def _show_command(role):
    assert "policy" in role.run("openstack", "sluice", "policy", "create", "--help")


def _make_keys(role):
    file = role.folder / "keys"
    role.run("sluice-keys", "--file", file, "init", "first")
    assert role.run("sluice-keys", "--file", file, "list").startswith("first ")


def _load_filters_of_swift(role):
    program = (
        "from importlib.metadata import entry_points as points\n"
        "for group in ('paste.filter_factory', 'paste.app_factory', 'swift.diskfile'):\n"
        "    print(*(one.load().__name__ for one in points(group=group) if one.dist.name == 'openstack-sluice'))\n"
    )
    assert "DiskFileManager" in role.run("python", "-c", program)
    for name in ("sluice-object-replicator", "sluice-object-reconstructor"):
        assert "Usage" in role.run(name, "--help")


def _mount(role):
    source, mounted = role.folder / "source", role.folder / "mounted"
    source.mkdir()
    mounted.mkdir()
    (source / "a").write_text("words")
    with role.running("sluice-motif-fs", "mount", source, mounted) as (process, log):
        _wait(lambda: mounted.is_mount(), process, log)
        assert (mounted / "a").read_text() == "words"
    assert not mounted.is_mount()


def _run_agent(role):
    config = role.folder / "agent.conf"
    config.write_text(
        f"[agent]\nnode = n1\nredis_url = redis://{HOST}:{free_port()}/0\namqp_url =\nlog_format = json\n"
        f"socket = {role.folder}/agent.sock\nsnapshot_dir = {role.folder}/snapshot\ncode_dir = {role.folder}/code\n"
    )
    with role.running("sluice-agent", "--config-file", config) as (process, log):
        _wait(lambda: '"agent of node `n1` starts"' in log.read_text(), process, log)
        _wait((role.folder / "agent.sock").exists, process, log)


def _serve_api(role):
    port = free_port()
    token = role.folder / "token"
    token.touch(mode=0o600)
    token.write_text("a-token-of-this-test")
    config = role.folder / "api.conf"
    config.write_text(
        f"[api]\nbind = {HOST}:{port}\nauth = token\ntoken_file = {token}\nredis_url = redis://{HOST}:{free_port()}/0\n"
    )

    def status(path):
        with contextlib.suppress(requests.ConnectionError):
            return requests.get(f"http://{HOST}:{port}{path}", timeout=_PATIENCE).status_code
        return 0

    with role.running("sluice-api", "--config-file", config) as (process, log):
        _wait(lambda: status("/") == 200, process, log)
        assert status("/health") == 503, "without a Redis"


_STARTS = {
    "dsl": _explain,
    "openstack": _show_command,
    "filters": _make_keys,
    "motifs-fs": _mount,
    "swift": _load_filters_of_swift,
    "agent": _run_agent,
    "controller": _serve_api,
}


def _wait(question, process, log):
    deadline = time.monotonic() + _PATIENCE
    while not question():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
