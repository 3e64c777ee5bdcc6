"""Files of a mount that are made over the network, as its configuration allows.

Tests docs/admin/motif-file-system.md.
"""

import hashlib
import json
import os
import time

import pytest
from tests.support.controller.swift_code_store import fake_code_swift
from tests.support.http_source import http_source, page, silent

CONTENT = b"a line of a log\n" * 50_000


@pytest.fixture
def source():
    with http_source() as server:
        server.answers["log"] = page(CONTENT)
        yield server


def configured(unmounted, **options):
    """Mount with a configuration of these options."""
    lines = [f"{name} = {value}" for name, value in options.items()]
    path = unmounted.source.parent / "motif-fs.conf"
    path.write_text("\n".join(["[motif-fs]", *lines, ""]))
    return unmounted.start("--config", str(path))


def wait_until(happened):
    end = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_file_is_made_again_from_a_url(unmounted, source):
    mount = configured(unmounted, motif_url_hosts="127.0.0.1")
    (mount.path / "log").write_bytes(CONTENT)
    mount.attach("log", "url", source=source.url("log"))
    mount.run("space", mount.path, "--target-size", "0")
    wait_until(lambda: mount.state("log") == "contracted")
    assert source.methods() == ["GET"], "bytes go after they were made once"
    assert (mount.path / "log").read_bytes() == CONTENT
    assert source.methods()[1] == "GET"


def test_other_hosts_than_those_listed_are_not_called(unmounted, source):
    mount = unmounted.start()
    (mount.path / "log").write_bytes(CONTENT)
    said = mount.run("attach", mount.path / "log", "url", f"source={source.url('log')}")
    assert said.returncode == 1
    assert "127.0.0.1" in said.stderr
    assert source.requests == []


def test_a_source_that_fails_leaves_the_file_contracted(unmounted, source):
    mount = configured(unmounted, motif_url_hosts="127.0.0.1")
    (mount.path / "log").write_bytes(CONTENT)
    mount.attach("log", "url", source=source.url("log"))
    mount.contract("log")
    source.answers["log"] = page(b"sorry", status="503 Service Unavailable")
    with pytest.raises(OSError, match="Input/output error"):
        (mount.path / "log").read_bytes()
    assert (mount.state("log"), (mount.path / "log").stat().st_size) == ("contracted", len(CONTENT))
    source.answers["log"] = page(CONTENT)
    assert (mount.path / "log").read_bytes() == CONTENT


def test_a_mount_ends_although_a_source_that_fills_it_is_silent(unmounted, source):
    mount = configured(unmounted, motif_url_hosts="127.0.0.1")
    (mount.path / "log").write_bytes(CONTENT)
    mount.attach("log", "url", source=source.url("log"))
    mount.run("space", mount.path, "--target-size", "0")
    wait_until(lambda: mount.state("log") == "contracted")
    source.answers["log"] = silent(source)
    mount.run("space", mount.path, "--target-size", "1GB")
    wait_until(lambda: "GET" in source.methods())
    assert mount.stop() == 0
    assert not mount.mounted()


def test_bytes_go_to_another_swift_and_come_back(unmounted, monkeypatch):
    with fake_code_swift() as swift:
        folder = unmounted.source.parent
        (folder / "remotes").write_text(
            f"[cold]\nauth_url = http://127.0.0.1:{swift.server_port}/auth/v1.0\nuser = s:s\n"
            "password = cold-password\ncontainer = copies\n"
        )
        (folder / "passwords").touch(mode=0o600)
        (folder / "passwords").write_text(json.dumps({"passwords": {"cold-password": "k"}}))
        monkeypatch.chdir(folder)
        mount = configured(unmounted, motif_remotes="remotes", motif_password_file="passwords")
        (mount.path / "log").write_bytes(CONTENT)
        mount.attach("log", "remote_copy", remote="cold")
        mount.contract("log")
        assert swift.objects[f"/v1/AUTH_s/copies/{hashlib.sha256(CONTENT).hexdigest()}"] == CONTENT
        assert os.stat(mount.source / "log").st_size == 0
        assert (mount.path / "log").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"motif_url_host": "x"}, "motif_url_host"),
        ({"reexpansion_share": "0"}, "option `reexpansion_share` is `0.0`, expected more than 0"),
        ({"reexpansion_share": "nan"}, "option `reexpansion_share` is `nan`, expected more than 0"),
        ({"motif_remotes": "missing"}, "option `motif_remotes`: cannot read `missing`"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(unmounted, options, reason):
    with pytest.raises(AssertionError, match=reason):
        configured(unmounted, **options)
