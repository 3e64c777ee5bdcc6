"""The konnector's JSON API: its answers, and its refusals."""

import contextlib
import os
import socket
import stat
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from tests.support.block.konnector_client import KonnectorClient
from tests.support.block.verified_load import VerifiedLoad
from werkzeug.test import Client

from sluice_block.datapath.fuse_device import is_supported
from sluice_block.datapath.processes import wait_until
from sluice_block.konnector import cli
from sluice_block.konnector.api import KonnectorApi
from sluice_block.konnector.connector_properties import SINGLE_REQUESTS
from sluice_core.errors import CallerError, Conflict, NotFound, PeerError

pytestmark = pytest.mark.service
KEY = str(uuid.UUID(int=7))


def answers(run):
    """Whether it listens: its socket exists a moment before."""
    try:
        return KonnectorClient(run / "api.sock").list() is not None
    except PeerError:
        return False


@contextlib.contextmanager
def service(config, run):
    """``sluice-konnector`` in a process of its own, until SIGTERM."""
    command = [sys.executable, "-c", "import sys; from sluice_block.konnector.cli import main; sys.exit(main())"]
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    with subprocess.Popen([*command, "--config", str(config)], env=environment) as process:
        try:
            assert wait_until(lambda: answers(run), 20)
            yield
        finally:
            process.terminate()
            assert process.wait(20) == 0


@pytest.fixture
def client(machine):
    return Client(KonnectorApi(machine.konnector, "node1", "192.0.2.7"))


def body(volume, **more):
    data = volume.to_data()
    return {"project": data["project"], "connection": data["connection"], **more}


def size_of(device):
    """The size for a process that opens it now."""
    if device.startswith("nbd"):
        return int(subprocess.run(["nbdinfo", "--size", device], check=True, capture_output=True, text=True).stdout)
    with open(device, "rb") as file:
        return file.seek(0, os.SEEK_END)


def test_a_volume_is_attached_shown_changed_and_detached(machine, client):
    wanted = machine.wanted()
    path = f"/volumes/{wanted.volume}"
    made = client.put(path, json=body(wanted, name="data 1"))
    assert made.status_code == 201, made.text
    assert (made.json["state"], made.json["name"]) == ("attached", "data 1")
    assert stat.S_ISBLK(os.stat(made.json["device"]).st_mode)
    assert client.put(path, json=body(wanted, name="data 1")).status_code == 200
    assert client.get("/volumes").json == {"volumes": [client.get(path).json]}
    changed = client.put(f"{path}/filters", json={"stack": [{"keyword": "readahead"}]})
    assert changed.json["stack"] == [{"keyword": "readahead", "params": {}}]
    assert client.put(f"{path}/limits", json={"max_bw": 3e6}).json["limits"]["max_bw"] == 3e6
    with open(made.json["device"], "r+b", buffering=0) as device:
        device.write(bytes(4096))
        os.fsync(device.fileno())
    counted = client.get(f"{path}/counters").json
    assert counted["written_bytes"] == 4096
    assert counted["write_p50"] > 0
    assert client.get(f"{path}/locality").json == {"rbd": None}
    assert client.delete(path).status_code == 204
    assert client.get("/volumes").json == {"volumes": []}


def test_the_log_of_requests_is_switched_and_lies_where_the_answer_says(machine, client):
    wanted = machine.wanted()
    path = f"/volumes/{wanted.volume}"
    made = client.put(path, json=body(wanted)).json
    assert client.put(f"{path}/log", json={"on": True}).json["log"] is True
    with open(made["device"], "r+b", buffering=0) as device:
        device.seek(8192)
        device.write(bytes(4096))
        os.fsync(device.fileno())
    written = Path(made["log_file"]).read_text()
    assert "write 8192 4096 " in written
    assert client.put(f"{path}/log", json={"on": False}).json["log"] is False
    assert client.delete(path).status_code == 204
    assert Path(made["log_file"]).read_text().startswith(written)


def test_of_a_volume_that_has_grown_as_much_is_shown_as_is_said(machine, client):
    wanted = machine.wanted()
    path, source = f"/volumes/{wanted.volume}", wanted.connection["data"]["device_path"]
    made = client.put(path, json=body(wanted, export="nbd", size=1 << 20)).json
    assert made["size"] == 1 << 20
    os.truncate(source, 128 << 20)
    assert client.put(f"{path}/size", json={"size": 100 << 20}).json == {"size": 100 << 20, "reattach": False}
    assert client.put(f"{path}/size", json={}).json["size"] == 100 << 20
    # missing properties are not shown, and do not delay the answer
    assert client.put(f"{path}/size", json={"size": 200 << 20}).status_code == 503
    assert client.get(path).json["size"] == 100 << 20
    assert size_of(made["device"]) == 100 << 20


def test_while_somebody_is_connected_all_see_the_size_of_before(machine, client):
    wanted = machine.wanted()
    path = f"/volumes/{wanted.volume}"
    made = client.put(path, json=body(wanted, export="nbd")).json
    os.truncate(wanted.connection["data"]["device_path"], 2 * made["size"])
    with subprocess.Popen(
        ["qemu-io", "-f", "raw", made["device"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as user:
        user.stdin.write("length\n")
        user.stdin.flush()
        assert "64 MiB" in user.stdout.readline()
        assert client.put(f"{path}/size").json == {"size": made["size"], "reattach": True}
        user.communicate("read 0 512\n")
    assert client.put(f"{path}/size").json == {"size": 2 * made["size"], "reattach": False}
    assert size_of(made["device"]) == 2 * made["size"]


@pytest.mark.parametrize(("export", "shown"), [("nbd", True), ("block", False)])
def test_a_volume_that_has_grown_says_whether_its_size_is_shown(machine, client, export, shown):
    wanted = machine.wanted()
    path = f"/volumes/{wanted.volume}"
    before = client.put(path, json=body(wanted, export=export)).json
    os.truncate(wanted.connection["data"]["device_path"], 2 * before["size"])
    answer = client.put(f"{path}/size", json={}).json
    assert answer == {"size": before["size"] * (1 + shown), "reattach": not shown}
    assert client.get(path).json["size"] == answer["size"] == size_of(before["device"])
    assert client.delete(path).status_code == 204
    assert client.put(path, json=body(wanted, export=export)).json["size"] == 2 * before["size"]


def test_the_machine_is_described_as_cinder_wants_it(client, machine):
    found = client.get("/connector").json
    assert (found["host"], found["ip"]) == (socket.gethostname(), "192.0.2.7")
    assert (found["os_type"], found["multipath"]) == ("linux", False)
    single = [
        SINGLE_REQUESTS in client.get(f"/connector?{asked}").json
        for asked in (
            "",
            "export=nbd",
            "export=block",
            "export=block&filter=luks&filter=nop",
            "export=block&filter=mine",
        )
    ]
    direct = is_supported(machine.built)
    assert single == [False, False, direct, direct, False]
    shown = client.get("/health").json
    assert (shown["node"], shown["host"], shown["ip"]) == ("node1", found["host"], "192.0.2.7")


def test_secrets_of_a_connection_are_never_shown(machine, client):
    wanted = machine.wanted()
    wanted.connection["data"]["auth_password"] = "very secret"
    made = client.put(f"/volumes/{wanted.volume}", json=body(wanted))
    shown = made.text + client.get("/volumes").text
    assert made.status_code == 201
    assert "very secret" not in shown
    (kept,) = (machine.folder / "state").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "reason"),
    [
        ("GET", "/nothing", None, 404, "not found: `GET /nothing`"),
        ("POST", "/volumes", None, 405, "method not allowed"),
        ("GET", f"/volumes/{KEY}", None, 404, "is not attached here"),
        ("PUT", "/volumes/..%2fetc", "{}", 404, "not found"),
        ("PUT", "/volumes/data1", "{}", 400, "`data1` is not a volume's id, expected a UUID"),
        ("PUT", f"/volumes/{KEY}", "{", 400, "the body is not JSON"),
        ("PUT", f"/volumes/{KEY}", "[]", 400, "the body is not an object"),
        ("PUT", f"/volumes/{KEY}", "{}", 400, "`project` is missing"),
        ("PUT", f"/volumes/{KEY}", '{"proiect": "x"}', 400, "unknown field `proiect`"),
        ("PUT", f"/volumes/{KEY}", '{"project": "x", "connection": {"a": 1}, "export": "scsi"}', 400, "expected block"),
        ("PUT", f"/volumes/{KEY}", '{"project": "x", "connection": {"a": 1}, "stack": [1]}', 400, "has no fields"),
        (
            "PUT",
            f"/volumes/{KEY}",
            '{"project": "x", "connection": {"a": 1}, "stack": 1}',
            400,
            "is `1`, expected a list",
        ),
        ("PUT", f"/volumes/{KEY}", '{"project": "x", "connection": 5}', 400, "`connection` is `5`, expected an object"),
        ("PUT", f"/volumes/{KEY}", '{"secret": 5}', 400, "`secret`, expected a text"),
        (
            "PUT",
            f"/volumes/{KEY}",
            '{"project": "x", "connection": {"a": 1}, "secret": "a\\nb"}',
            400,
            "`secret` has characters that a passphrase cannot have",
        ),
        (
            "PUT",
            f"/volumes/{KEY}",
            '{"project": "x", "connection": {"a": 1}, "account": "a/b"}',
            400,
            "`account` is `a/b`, expected the name of a Swift account",
        ),
        (
            "PUT",
            f"/volumes/{KEY}",
            '{"project": "x", "connection": {"a": 1}, "limits": {"max_bw": "fast"}}',
            400,
            '`max_bw` is `"fast"`, expected a rate per second',
        ),
        (
            "PUT",
            f"/volumes/{KEY}",
            '{"project": "x", "connection": {"a": 1}, "limits": {"iops": 1}}',
            400,
            "unknown limit `iops`, expected read_bw",
        ),
        ("PUT", f"/volumes/{KEY}", '{"fresh": 1}', 400, "`fresh` is `1`, expected true or false"),
        ("PUT", f"/volumes/{KEY}/log", "{}", 400, "`on` is missing, expected true or false"),
        ("PUT", f"/volumes/{KEY}/confirmed", "{}", 400, "`attachment` is missing"),
        ("PUT", f"/volumes/{KEY}/confirmed", '{"attachment": "a1"}', 404, "is not attached here"),
        ("PUT", f"/volumes/{KEY}/revoked", "{}", 400, "`attachment` is missing"),
        ("PUT", f"/volumes/{KEY}/revoked", '{"attachment": "a1"}', 404, "is not attached here"),
        ("PUT", f"/volumes/{KEY}/size", '{"size": 5}', 400, "`size` is `5`, expected bytes, a multiple of 512"),
        ("PUT", f"/volumes/{KEY}/size", "{}", 404, "is not attached here"),
        ("PUT", f"/volumes/{KEY}/filters", "{}", 400, "`stack` is missing"),
        ("PUT", f"/volumes/{KEY}/limits", '{"max_bw": "3MBps"}', 400, '`max_bw` is `"3MBps"`, expected a number'),
        ("PUT", f"/volumes/{KEY}/limits", '{"max_bw": -1}', 400, "`max_bw` is `-1`, expected a rate per second"),
        ("PUT", f"/volumes/{KEY}/limits", '{"max_bw": NaN}', 400, "`max_bw` is `NaN`, expected a rate per second"),
        ("PUT", f"/volumes/{KEY}/limits", f'{{"max_bw": 1{"0" * 400}}}', 400, "`max_bw` is `1000"),
        ("PUT", f"/volumes/{KEY}/limits", '{"iops": 1}', 400, "unknown field `iops`, expected read_bw"),
        ("PUT", f"/volumes/{KEY}/limits", '{"max_bw": 1}', 404, "is not attached here"),
        ("GET", f"/volumes/{KEY}/counters", None, 404, "is not attached here"),
        ("GET", f"/volumes/{KEY}/locality", None, 404, "is not attached here"),
        pytest.param("PUT", f"/volumes/{KEY}", " " * (2 << 20), 413, "request entity too large", id="too large"),
    ],
)
def test_bad_requests_are_refused_with_the_reason(client, method, path, sent, status, reason):
    answer = client.open(path, method=method, data=sent)
    assert (answer.status_code, list(answer.json)) == (status, ["error"])
    assert reason in answer.json["error"]


def test_the_service_keeps_volumes_when_it_ends_and_others_out(machine):
    config = machine.folder / "konnector.conf"
    run = machine.folder / "service"
    folders = {"run_dir": run, "state_dir": machine.folder / "kept", "cache_dir": machine.folder / "built"}
    folders |= {"log_dir": machine.folder / "logs", "snapshot_dir": "", "agent_socket": ""}
    config.write_text("[konnector]\n" + "".join(f"{name} = {value}\n" for name, value in folders.items()))
    client = KonnectorClient(run / "api.sock")
    wanted = machine.wanted()

    with service(config, run):
        device = client.attach(wanted.volume, body(wanted))["device"]
    with VerifiedLoad(device) as load:
        load.wait_for(100)
        with service(config, run):
            assert client.show(wanted.volume)["device"] == device
            with pytest.raises(Conflict, match="in use"):
                client.detach(wanted.volume)
    with service(config, run):
        client.detach(wanted.volume)
        with pytest.raises(NotFound):
            client.show(wanted.volume)
        with pytest.raises(CallerError, match="expected a UUID"):
            client.show("x y")
    with pytest.raises(PeerError, match="no konnector answers"):
        client.list()
    assert stat.S_IMODE(run.stat().st_mode) == 0o700


def test_a_folder_that_others_enter_or_that_is_too_long_is_refused(machine, capsys):
    run = machine.folder / "open"
    run.mkdir(mode=0o755)
    for folder, reason in ((run, "can be entered by others, expected mode 0700"), (f"/{'x' * 60}", "61 bytes long")):
        config = machine.folder / "konnector.conf"
        config.write_text(f"[konnector]\nrun_dir = {folder}\n")
        assert cli.main(["--config", str(config)]) == 1
        assert reason in capsys.readouterr().err
