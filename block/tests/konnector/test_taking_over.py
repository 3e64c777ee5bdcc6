"""A konnector that takes volumes over does not attach those that may have been attached to another machine."""

import contextlib
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.block.verified_load import VerifiedLoad
from werkzeug.test import Client

from sluice_block.datapath.processes import wait_until
from sluice_block.datapath.records import ATTACHED, ATTACHING, NBD, WAITING, VolumeLimits
from sluice_block.konnector.api import KonnectorApi
from sluice_core.errors import Conflict, NotFound
from sluice_volumes.messages import StackStep

pytestmark = pytest.mark.service
PAGE = Path(__file__).parents[3] / "docs" / "admin" / "volumes" / "konnector.md"


def kill(process):
    os.kill(process.pid, 9)
    assert process.wait(10)


def halt(volume):
    """End the processes of a volume, as a shutdown of its machine does."""
    volume.export.end()
    for process in filter(None, (volume.stack.process(), volume.source.process())):
        kill(process)
    shutil.rmtree(volume.folder)


def source(volume):
    return Path(volume.attachment.connection["data"]["device_path"])


def is_open(file):
    """Whether some process has the file open."""

    def shows(descriptor):
        with contextlib.suppress(OSError):  # it ended, or is not in this container
            return os.path.samefile(descriptor, file)
        return False

    return any(map(shows, Path("/proc").glob("[0-9]*/fd/*")))


@pytest.fixture
def rebooted(machine):
    """A volume of Cinder on a machine that was rebooted."""
    halt(machine.attach(attachment="a1"))
    machine.start()
    (volume,) = machine.konnector.volumes()
    return volume


def test_after_a_reboot_a_volume_waits_until_its_attachment_is_confirmed(machine, rebooted):
    key = rebooted.attachment.volume
    for _ in range(2):
        assert (rebooted.state, rebooted.device()) == (WAITING, "")
        assert rebooted.to_data()["state"] == WAITING
        assert "before the control plane has said" in rebooted.to_data()["fault"]
        assert not is_open(source(rebooted))
        machine.konnector.check()
    with pytest.raises(NotFound, match="not attached here by attachment `a2`"):
        machine.konnector.confirm(key, "a2")
    machine.konnector.confirm(key, "a1")
    machine.konnector.check()
    assert (rebooted.state, rebooted.fault) == (ATTACHED, "")
    with VerifiedLoad(rebooted.device()) as load:
        load.wait_for(100)


def test_an_administrator_confirms_it_by_the_commands_of_the_page(machine, rebooted):
    client = Client(KonnectorApi(machine.konnector, "node1", "192.0.2.7"))
    (listed,) = client.get("/volumes").json["volumes"]
    given = {"$VOLUME": listed["volume"], "$ATTACHMENT": listed["attachment"], '\\"': '"'}
    (command,) = re.findall(r'-X PUT http://konnector(/volumes/\S+/confirmed -d ".*)"$', PAGE.read_text(), re.MULTILINE)
    for shown, written in given.items():
        command = command.replace(shown, written)
    path, data = command.split(' -d "')
    answer = client.put(path, data=data, content_type="application/x-www-form-urlencoded")  # curl's
    assert answer.status_code == 200, answer.text
    machine.konnector.check()
    assert rebooted.state == ATTACHED


def test_a_volume_that_is_confirmed_waits_until_its_source_is_there(machine, rebooted):
    file, away = source(rebooted), machine.folder / "away"
    file.rename(away)
    machine.konnector.confirm(rebooted.attachment.volume, "a1")
    for _ in range(2):
        machine.konnector.check()
        assert (rebooted.state, rebooted.fault) == (WAITING, "it is not attached again yet, the log says why")
    away.rename(file)
    machine.konnector.check()
    assert rebooted.state == ATTACHED


def test_a_volume_whose_attachment_has_ended_is_forgotten_untouched(machine, rebooted):
    before = source(rebooted).stat()
    assert machine.konnector.revoke(rebooted.attachment.volume, "a1")
    machine.konnector.check()
    assert source(rebooted).stat().st_atime_ns == before.st_atime_ns
    assert machine.leftovers() == []


def test_a_volume_that_waits_is_detached_like_others(machine, rebooted):
    machine.konnector.detach(rebooted.attachment.volume)
    assert not is_open(source(rebooted))
    assert machine.leftovers() == []


def test_nothing_that_would_start_it_is_done_to_a_volume_that_waits(machine, rebooted):
    key = rebooted.attachment.volume
    for call in (
        lambda: machine.konnector.replace_stack(key, (StackStep("readahead"),)),
        lambda: machine.konnector.measure(key, 1),
        rebooted.locality,
    ):
        with pytest.raises(Conflict, match="waiting"):
            call()
    with pytest.raises(NotFound, match="no stack"):
        machine.konnector.set_limits(key, VolumeLimits(max_bw=1e6))
    assert not is_open(source(rebooted))


def test_whoever_orders_the_same_attachment_again_has_confirmed_it(machine, rebooted):
    again, fresh = machine.konnector.attach(rebooted.attachment)
    assert (again, fresh, again.state) == (rebooted, False, ATTACHED)


def test_an_attach_by_another_attachment_is_refused(machine, rebooted):
    with pytest.raises(Conflict, match="with another attachment"):
        machine.konnector.attach(replace(rebooted.attachment, attachment="a2"))
    assert rebooted.state == WAITING


@pytest.fixture
def export(machine):
    """The connection of an NBD export, which serves one attachment."""
    image, address = machine.folder / "served.img", machine.folder / "served.sock"
    image.write_bytes(bytes(1 << 20))
    with subprocess.Popen(["nbdkit", "--foreground", "--unix", address, "file", image]) as server:
        assert wait_until(address.exists, 10)
        yield {"driver_volume_type": "nbd", "data": {"uri": f"nbd+unix:///?socket={address}"}}
        for volume in machine.konnector.volumes():  # while its server runs
            machine.konnector.detach(volume.attachment.volume)
        server.kill()


def test_a_volume_whose_export_ends_with_its_attachment_is_attached_at_once(machine, export):
    halt(machine.attach(attachment="a1", connection=export))
    machine.start()
    (after,) = machine.konnector.volumes()
    assert (after.state, after.is_unconfirmed()) == (ATTACHED, True)
    with open(after.device(), "rb") as device:
        assert device.read(4096) == bytes(4096)


def test_a_volume_that_is_not_of_cinder_is_attached_at_once(machine):
    halt(machine.attach())
    machine.start()
    (after,) = machine.konnector.volumes()
    assert (after.state, after.is_unconfirmed()) == (ATTACHED, False)


def test_an_attach_that_a_crash_cut_waits_and_is_finished(machine):
    volume = machine.attach(attachment="a1")
    halt(volume)
    volume.keep(replace(volume.attachment, state=ATTACHING))
    machine.start()
    (after,) = machine.konnector.volumes()
    assert after.state == WAITING
    machine.konnector.confirm(after.attachment.volume, "a1")
    machine.konnector.check()
    assert after.state == ATTACHED


def test_what_runs_goes_on_and_nothing_of_it_is_started_before_it_is_confirmed(machine):
    volume = machine.attach(attachment="a1")
    with VerifiedLoad(volume.device()) as load:
        load.wait_for(100)
        machine.start()
        (after,) = machine.konnector.volumes()
        machine.konnector.check()
        load.wait_for(100)
        assert (after.state, after.is_unconfirmed()) == (ATTACHED, True)
        kill(after.stack.process())
        for _ in range(3):
            machine.konnector.check()
            assert (after.state, after.stack.process()) == (WAITING, None)
        machine.konnector.confirm(after.attachment.volume, "a1")
        machine.konnector.check()
        load.wait_for(100)  # its users have waited
    assert (after.state, after.is_unconfirmed()) == (ATTACHED, False)


def test_what_runs_is_ended_when_its_attachment_has_ended(machine):
    volume = machine.attach(attachment="a1", export=NBD)
    machine.start()
    assert machine.konnector.revoke(volume.attachment.volume, "a1")
    assert not is_open(source(volume))
    assert machine.leftovers() == []


def test_a_front_that_ended_under_its_users_is_broken_once_confirmed(machine):
    volume = machine.attach(attachment="a1")
    with open(volume.device(), "rb"):
        kill(volume.export.process())
        machine.start()
        (after,) = machine.konnector.volumes()
        assert after.state == WAITING
        machine.konnector.attach(after.attachment)
        assert after.state == "broken"
