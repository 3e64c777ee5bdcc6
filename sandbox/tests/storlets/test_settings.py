"""The image's recipe, the library, the engine's command line, options: tests without Docker."""

import dataclasses
import os
import tarfile

import pytest

from sluice_code.code_store import CodeStore
from sluice_core.errors import CallerError, PeerError
from sluice_sandbox import cli
from sluice_sandbox.docker import image
from sluice_sandbox.docker.engine import DockerEngine
from sluice_sandbox.files import cache_folder
from sluice_sandbox.storlets import library
from sluice_sandbox.storlets.options import OPTIONS, storlet_team


def test_an_image_is_called_by_what_is_in_it_and_not_by_where_that_came_from():
    one = image.PYTHON
    assert one.name() == image.ImageRecipe().name()
    assert dataclasses.replace(one, mirror="http://elsewhere/debian").name() == one.name()
    others = [image.JAVA, dataclasses.replace(one, suite="trixie"), dataclasses.replace(one, revision=2)]
    assert len({other.name() for other in (one, *others)}) == 4


def test_a_cached_root_file_system_is_not_made_again(tmp_path):
    tarball = tmp_path / f"rootfs-{image.PYTHON.digest()[:16]}.tar"
    tarball.write_bytes(b"cached")
    said = []
    assert image.root_file_system(image.PYTHON, tmp_path, said.append) == tarball
    assert said == []


def test_what_is_packed_holds_the_folders_for_mounts_and_none_of_the_rest(tmp_path):
    root = tmp_path / "root"
    for name in ("usr/bin/python3", "var/cache/apt/archives/x.deb", "usr/share/doc/x/copyright", "proc/1/status"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("")
    image._pack(root, tmp_path / "tar")
    with tarfile.open(tmp_path / "tar") as archive:
        names = archive.getnames()
    assert len(names) == len(set(names))
    assert "./usr/bin/python3" in names
    assert {"./proc", "./tmp", "./mnt/channels", "./var/lib/storlets", "./usr/local/lib/storlets"} <= set(names)
    assert not [name for name in names if "deb" in name or "copyright" in name or "status" in name]


def test_the_library_holds_the_agent_and_nothing_for_hosts(tmp_path):
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "SDaemon.jar").write_bytes(b"jar")
    plain, java = library.prepare(tmp_path / "c"), library.prepare(tmp_path / "c", jars)
    assert plain != java
    assert library.prepare(tmp_path / "c") == plain
    assert (java / "java/SDaemon.jar").exists()
    found = {str(path.relative_to(plain)) for path in plain.rglob("*.py")}
    assert "python/storlets/agent/daemon/server.py" in found
    assert "python/sluice_sandbox/storlets/factory.py" in found
    assert not [name for name in found if "gateway" in name or "swift" in name or "container" in name]
    assert os.stat(plain).st_mode & 0o777 == 0o755


def test_the_engine_has_no_network_and_keeps_everything_in_its_folder(tmp_path):
    argv = DockerEngine(tmp_path).argv()
    for option in ("--bridge=none", "--iptables=false", "--ip-forward=false", f"--host=unix://{tmp_path}/docker.sock"):
        assert option in argv
    paths = [word.partition("=")[2] for word in argv if word.startswith(("--data-root", "--exec-root", "--pidfile"))]
    assert len(paths) == 3
    assert all(path.startswith(str(tmp_path)) for path in paths)


def test_an_engine_in_too_deep_a_folder_is_refused_before_it_fails(tmp_path):
    with pytest.raises(CallerError, match="too long for the engine's sockets"):
        DockerEngine(tmp_path / ("d" * 100)).start()


def test_an_engine_that_never_started_can_be_asked_and_stopped(tmp_path):
    engine = DockerEngine(tmp_path)
    assert not engine.running
    assert not engine.answers()
    engine.stop()


def test_an_engine_that_cannot_start_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(DockerEngine, "argv", lambda self: ["/nowhere/dockerd"])
    with pytest.raises(PeerError, match="cannot start `/nowhere/dockerd`: no such file"):
        DockerEngine(tmp_path / "a").start()
    monkeypatch.setattr(DockerEngine, "argv", lambda self: ["/bin/sh", "-c", "echo out of luck; exit 1"])
    with pytest.raises(PeerError, match="ended instead of serving: out of luck"), DockerEngine(tmp_path / "b"):
        pass


def test_the_cache_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("SLUICE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert str(cache_folder()) == "/somewhere/sluice"


def test_without_an_engine_there_is_no_team(tmp_path):
    assert storlet_team({"key_file": "/x"}, CodeStore(tmp_path)) is None


def test_a_team_is_made_of_options(tmp_path):
    options = {
        "storlets_engine": "unix:///x",
        "storlets_folder": str(tmp_path / "s"),
        "storlets_cache": str(tmp_path),
        "storlets_node": "n",
        "storlets_runs": "3",
        "storlets_memory": "1000000",
        "storlets_patience": "2.5",
    }
    team = storlet_team(options, CodeStore(tmp_path))
    assert (team.place.engine, team.place.node, team.place.runs) == ("unix:///x", "n", 3)
    assert (team.limits.memory, team.limits.patience) == (1000000, 2.5)
    assert team.place.image == image.PYTHON.name()
    assert team.place.library.parent == tmp_path / "s"


def test_wrong_options_are_refused_all_at_once(tmp_path):
    with pytest.raises(CallerError, match=r"option `storlets_runs` is `many`.*option `storlets_idle` is `long`"):
        storlet_team({"storlets_idle": "long", "storlets_runs": "many"}, CodeStore(tmp_path))
    assert all(help_text for _, help_text in OPTIONS.values())


def test_the_command_line_says_what_is_not_there(tmp_path, capsys):
    state = ["--state", str(tmp_path), "--cache", str(tmp_path)]
    assert cli.main([*state, "engine", "status"]) == 1
    assert "does not serve, no process" in capsys.readouterr().out
    assert cli.main([*state, "engine", "down"]) == 0
    assert cli.main([*state, "image", "list"]) == 1
    assert f"sluice-sandbox: engine at `unix://{tmp_path}/engine/docker.sock`" in capsys.readouterr().err
