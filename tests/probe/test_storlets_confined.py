"""What code in a tenant's container can reach: each trial is a storlet that tries, and reports."""

import json
import os
import socket

import pytest
from tests.support.sandbox.docker import Bench
from tests.support.sandbox.storlets import python_storlet, through

from sluice_filters.api import Hint

REPORT = """
    import json
    source.read()
    report = {}
    def attempt(name, action):
        try:
            report[name] = repr(action())
        except Exception as error:
            report[name] = type(error).__name__
"""
WRITE = "\n    target.write(json.dumps(report).encode())\n"


@pytest.fixture(scope="module")
def bench():
    with Bench.open() as opened:
        yield opened


@pytest.fixture(scope="module")
def trial(bench):
    """Run lines in a container; return their report."""
    team = bench.team()

    def run(lines, account="AUTH_test"):
        body = REPORT + "".join(f"\n    {line}" for line in lines) + WRITE
        upload = bench.upload("trial", python_storlet(body), "storlet.Storlet", info={"on_put": True})
        return json.loads(through(bench.filters(team, [upload])["trial"](), b"x", account))

    run.team = team
    return run


def test_there_is_no_network(trial):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        report = trial(
            [
                f"attempt('host', lambda: socket.create_connection(('127.0.0.1', {port}), 2))",
                "attempt('elsewhere', lambda: socket.create_connection(('192.0.2.1', 80), 2))",
                "attempt('name', lambda: socket.getaddrinfo('deb.debian.org', 80))",
                "attempt('raw', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))",
                "report['interfaces'] = [name for _, name in socket.if_nameindex()]",
            ]
        )
    assert report.pop("interfaces") == ["lo"]
    assert report == {
        "host": "ConnectionRefusedError",
        "elsewhere": "OSError",
        "name": "gaierror",
        "raw": "PermissionError",
    }


def test_there_are_no_privileges(trial, bench):
    report = trial(
        [
            "report['status'] = dict(line.split(':\\t', 1) for line in open('/proc/self/status') if ':\\t' in line)",
            "report['ids'] = [os.getuid(), os.geteuid(), os.getgid(), os.getgroups()]",
            "attempt('setuid', lambda: os.setuid(0))",
            "attempt('chroot', lambda: os.chroot('/tmp'))",
            "attempt('nice', lambda: os.nice(-5))",
            "import ctypes; libc = ctypes.CDLL(None, use_errno=True)",
            "report['mount'] = libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
            "report['namespaces'] = libc.unshare(0x10000000)",
        ]
    )
    status = {name: value.strip() for name, value in report.pop("status").items()}
    user = trial.team.place.user()
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert user != 0
    assert report.pop("ids") == [user, user, user, [user]]
    assert report == {
        "setuid": "PermissionError",
        "chroot": "PermissionError",
        "nice": "PermissionError",
        "mount": -1,
        "namespaces": -1,
    }


def test_nothing_can_be_written_but_a_small_tmp(trial):
    places = [
        "/",
        "/etc",
        "/usr/local/lib/storlets/python",
        "/var/lib/storlets",
        "/dev",
        "/dev/shm",  # noqa: S108  # of the container
        "/proc/sys/kernel",
    ]
    report = trial(
        [
            f"for place in {places!r}: attempt(place, lambda: open(place + '/x', 'w').write('x'))",
            "attempt('own code', lambda: open(params['storlet_execution_path'] + '/storlet.py', 'w'))",
            "attempt('tmp', lambda: open('/tmp/x', 'w').write('x'))",
            "attempt('much', lambda: [open('/tmp/y', 'ab').write(bytes(1 << 20)) for _ in range(200)])",
            "attempt('run', lambda: (os.chmod('/tmp/x', 0o755), os.execv('/tmp/x', ['x'])))",
            "attempt('sysrq', lambda: open('/proc/sysrq-trigger', 'w').write('b'))",
            "attempt('memory', lambda: open('/dev/mem', 'rb').read(1))",
        ]
    )
    allowed = {"tmp": "1", "/dev/shm": "1"}  # noqa: S108
    assert {name: report.pop(name) for name in allowed} == allowed
    refusals = ("OSError", "PermissionError", "FileNotFoundError")
    assert {name: value for name, value in report.items() if value not in refusals} == {}


def test_files_and_processes_of_the_host_are_not_there(trial, bench, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    report = trial(
        [
            f"attempt('file', lambda: open({str(secret)!r}).read())",
            f"attempt('store', lambda: os.listdir({str(bench.store.folder)!r}))",
            "attempt('engine', lambda: os.listdir('/var/run/docker.sock'))",
            "report['root'] = sorted(os.listdir('/'))",
            "report['pids'] = sorted(int(name) for name in os.listdir('/proc') if name.isdigit())",
            "report['words'] = [open(f'/proc/{pid}/cmdline').read() for pid in report['pids']]",
            "report['environ'] = sorted(os.environ)",
            "attempt('first', lambda: open('/proc/1/environ').read())",
            "attempt('kernel', lambda: open('/proc/kcore', 'rb').read(1))",
            "attempt('kill', lambda: os.kill(" + str(os.getpid()) + ", 0))",
        ]
    )
    assert "work" not in report["root"]
    assert max(report["pids"]) < 10_000
    assert all("storlets" in words or "pytest" not in words for words in report["words"])
    assert not [name for name in report["environ"] if "DOCKER" in name or "SLUICE" in name]
    for name, refusals in {
        "file": ("FileNotFoundError",),
        "store": ("FileNotFoundError",),
        "engine": ("FileNotFoundError",),
        "kernel": ("PermissionError", "FileNotFoundError", "b''"),
        "kill": ("ProcessLookupError",),
    }.items():
        assert report[name] in refusals, (name, report[name])


def test_other_tenants_are_not_there(trial, bench):
    code = "attempt('leave', lambda: open('/tmp/left', 'w').write('data of a tenant'))"
    assert trial([code], "AUTH_a") == {"leave": "16"}
    lines = [
        "attempt('tmp', lambda: open('/tmp/left').read())",
        "report['code'] = os.listdir('/var/lib/storlets')",
        "report['sockets'] = os.listdir('/mnt/channels')",
        "attempt('up', lambda: os.listdir('/mnt/channels/..'))",
        "report['names'] = [open(f'/proc/{pid}/cmdline').read() for pid in os.listdir('/proc') if pid.isdigit()]",
    ]
    seen = trial(lines, "AUTH_b")
    assert seen["tmp"] == "FileNotFoundError"
    assert len(seen["code"]) == 1
    assert sorted(seen["sockets"]) == sorted([*seen["code"], "factory_pipe"])
    assert seen["up"] == "['channels']"
    assert len(seen["names"]) <= 5


def test_a_link_to_another_tenants_socket_is_not_followed(trial, bench):
    """A tenant's code owns the folder of its sockets; it must not redirect its requests into another container."""
    victim = trial.team.container("AUTH_victim")
    lines = [
        "name = params['storlet_execution_path'].rpartition('/')[2]",
        "report['victim'] = os.path.exists('/tmp/victim')",
        "if not report['victim']:",
        "    os.unlink('/mnt/channels/' + name)",
        f"    os.symlink('../{victim.sockets.name}/' + name, '/mnt/channels/' + name)",
    ]
    assert trial(["attempt('mark', lambda: open('/tmp/victim', 'w').close())"], "AUTH_victim") == {"mark": "None"}
    assert trial(lines, "AUTH_victim") == {"victim": True}
    for _ in range(2):
        assert trial(lines, "AUTH_thief") == {"victim": False}
        folder = trial.team.container("AUTH_thief").sockets
        assert [name for name in os.listdir(folder) if os.path.exists(os.path.join(folder, name))]


def test_the_engine_made_of_the_settings_what_they_say(trial):
    trial(["attempt('here', os.getpid)"])
    container = trial.team.container("AUTH_test")
    with container._engine() as client:
        facts = client.containers.get(container.name).attrs
    host = facts["HostConfig"]
    limits, place = trial.team.limits, trial.team.place
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert not host["Privileged"]
    assert host["ReadonlyRootfs"]
    assert host["Memory"] == host["MemorySwap"] == limits.memory
    assert host["NanoCpus"] == int(place.cpus * 1e9)
    assert 0 < host["PidsLimit"] <= place.runs * limits.processes
    assert host["Init"]
    assert not host["Devices"]
    assert {(one["Target"], one.get("ReadOnly", False)) for one in host["Mounts"]} == {
        ("/mnt/channels", False),
        ("/var/lib/storlets", True),
        ("/usr/local/lib/storlets", True),
    }
    assert Hint(account="AUTH_test").account == facts["Config"]["Labels"]["sluice.account"]
