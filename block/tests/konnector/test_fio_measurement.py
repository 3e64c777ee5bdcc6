"""Volumes measured by fio through the konnector's API."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from tests.support.block.konnector_client import KonnectorClient
from werkzeug.test import Client

from sluice_block.datapath import loop_devices
from sluice_block.datapath.processes import wait_until
from sluice_block.datapath.records import VolumeLimits
from sluice_block.konnector.api import KonnectorApi
from sluice_core.errors import PeerError
from sluice_core.process.logs import TextFormatter
from sluice_volumes.messages import FIGURES, StackStep

pytestmark = pytest.mark.service
LIMIT = 60.0


@pytest.fixture
def client(machine):
    return Client(KonnectorApi(machine.konnector, "node1", "192.0.2.7"))


def test_a_volume_is_written_all_over_and_then_measured(machine, client):
    volume = machine.attach()
    path = f"/volumes/{volume.attachment.volume}/measure"
    assert client.get(path).status_code == 404
    begun = client.post(path, json={"seconds": 1})
    assert (begun.status_code, begun.json["state"], begun.json["phase"]) == (202, "running", "fill")
    assert client.post(path, json={"seconds": 9}).json["state"] == "running"
    assert wait_until(lambda: client.get(path).json["state"] != "running", LIMIT)
    found = client.get(path).json
    assert (found["state"], found["reason"]) == ("measured", "")
    assert all(found[name] > 0 for name in FIGURES)
    source = volume.attachment.connection["data"]["device_path"]
    assert os.stat(source).st_blocks * 512 >= volume.attachment.size, "reads would have found holes"
    volume.detach()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"account": "AUTH_acme"}, "fio overwrites it"),
        ({"limits": VolumeLimits(max_bw=5e6)}, "`max_bw`"),
        ({"stack": (StackStep("nop"),)}, "`nop`"),
        ({"export": "nbd"}, "expected an attached block device"),
    ],
)
def test_what_is_somebodys_or_is_held_back_is_not_measured(machine, client, fields, said):
    volume = machine.attach(**fields)
    refused = client.post(f"/volumes/{volume.attachment.volume}/measure", json={"seconds": 1})
    assert refused.status_code == 409
    assert said in refused.json["error"]


def test_a_device_that_somebody_holds_is_not_measured(machine, client):
    volume = machine.attach()
    with open(volume.device(), "rb"):
        refused = client.post(f"/volumes/{volume.attachment.volume}/measure", json={"seconds": 1})
    assert (refused.status_code, "is in use" in refused.json["error"]) == (409, True)


@pytest.mark.parametrize("seconds", [0, 301, True, 1.5, None])
def test_seconds_that_make_no_sense_are_refused(machine, client, seconds):
    volume = machine.attach()
    refused = client.post(f"/volumes/{volume.attachment.volume}/measure", json={"seconds": seconds})
    assert (refused.status_code, "`seconds`" in refused.json["error"]) == (400, True)


def test_a_machine_without_fio_says_so(machine, client, monkeypatch):
    volume = machine.attach()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    refused = client.post(f"/volumes/{volume.attachment.volume}/measure", json={"seconds": 1})
    assert (refused.status_code, "apt-get install fio" in refused.json["error"]) == (409, True)


def fio_of(device):
    """The process id of the fio that has the device open; None without one."""
    held = [re.search(r"process (\d+) \(fio\)", one) for one in loop_devices.users(device)]
    return next((int(one[1]) for one in held if one), None)


def kill_fio(device):
    """Whether a fio had the device open, and was killed: a second call may find none."""
    found = fio_of(device)
    if found is not None:
        os.kill(found, signal.SIGKILL)
    return found is not None


def test_a_fio_that_fails_is_why_it_was_not_measured_and_it_may_be_tried_again(machine, client, caplog):
    caplog.handler.setFormatter(TextFormatter("%(context)s %(message)s"))
    volume = machine.attach()
    path = f"/volumes/{volume.attachment.volume}/measure"
    request = client.post(path, json={"seconds": 60}).headers["X-Openstack-Request-Id"]
    assert wait_until(lambda: kill_fio(volume.device()), LIMIT)
    assert wait_until(lambda: client.get(path).json["state"] != "running", LIMIT)
    found = client.get(path).json
    assert (found["state"], found["reason"][:6]) == ("failed", "fio, `")
    assert "read_bw" not in found
    assert f" [{request}] `{volume.device()}` is not measured: fio, `" in caplog.text
    assert wait_until(lambda: not loop_devices.users(volume.device()), LIMIT)
    assert client.post(path, json={"seconds": 1}).json["state"] == "running"
    assert wait_until(lambda: client.get(path).json["state"] == "measured", LIMIT)


def test_fio_ends_with_a_konnector_that_is_killed(machine):
    config, run = machine.folder / "konnector.conf", machine.folder / "service"
    folders = {"run_dir": run, "state_dir": machine.folder / "kept", "cache_dir": machine.folder / "built"}
    folders |= {"log_dir": machine.folder / "logs", "snapshot_dir": "", "agent_socket": ""}
    config.write_text("[konnector]\n" + "".join(f"{name} = {value}\n" for name, value in folders.items()))
    command = [sys.executable, "-c", "import sys; from sluice_block.konnector.cli import main; sys.exit(main())"]
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}

    client, wanted = KonnectorClient(run / "api.sock"), machine.wanted()

    def answers():
        with contextlib.suppress(PeerError):
            return client.list() is not None

    def start():
        process = subprocess.Popen([*command, "--config", str(config)], env=environment)
        assert wait_until(answers, LIMIT)
        return process

    first = start()
    try:
        device = client.attach(wanted.volume, {"project": "p1", "connection": wanted.connection})["device"]
        client.measure(wanted.volume, 60)
        assert wait_until(lambda: fio_of(device), LIMIT)
    finally:
        first.kill()
        first.wait()
    second = start()
    try:
        assert wait_until(lambda: not loop_devices.users(device), LIMIT)
        client.detach(wanted.volume)
    finally:
        second.terminate()
        assert second.wait(LIMIT) == 0
