"""Messages to a service manager, received on a real datagram socket in its place."""

import asyncio
import os
import socket
import uuid

import pytest

from sluice_core.connections.service_manager import ServiceManager


@pytest.fixture(params=["a path", "an abstract name"])
def manager(request, tmp_path):
    """The socket of a manager, and its address."""
    address = str(tmp_path / "notify") if request.param == "a path" else f"@sluice-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(address.replace("@", "\0", 1))
        made.settimeout(5)
        yield made, address


def heard(made):
    return made.recv(100).decode()


def test_a_manager_hears_that_a_process_serves_once(manager):
    made, address = manager
    told = ServiceManager.from_environment({"NOTIFY_SOCKET": address})
    told.ready()
    told.ready()
    told.stopping()
    assert [heard(made), heard(made)] == ["READY=1", "STOPPING=1"]


def test_signs_of_life_come_twice_in_the_time_that_the_manager_waits(manager):
    made, address = manager
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            raise StopIteration

    told = ServiceManager.from_environment({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "3000000"})
    with pytest.raises(StopIteration):
        told.keep_alive(pause)
    assert pauses == [1.5, 1.5]
    assert [heard(made), heard(made)] == ["WATCHDOG=1"] * 2


def test_other_loops_wait_as_they_do_between_signs_of_life(manager):
    made, address = manager
    told = ServiceManager.from_environment({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "3000000"})
    signs = told.signs_of_life()
    assert (next(signs), heard(made)) == (1.5, "WATCHDOG=1")
    assert (next(signs), heard(made)) == (1.5, "WATCHDOG=1")
    assert list(ServiceManager().signs_of_life()) == []


def test_a_loop_gives_signs_of_life_beside_its_work(manager):
    made, address = manager
    told = ServiceManager.from_environment({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "20000"})

    async def work():
        watched = asyncio.create_task(told.keep_loop_alive())
        await asyncio.to_thread(lambda: [heard(made) for _ in range(3)])
        watched.cancel()

    asyncio.run(work())


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WATCHDOG_USEC": "3000000"},
        {"NOTIFY_SOCKET": "@nobody"},
        {"NOTIFY_SOCKET": "@nobody", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid() + 1)},
    ],
)
def test_nobody_waits_for_signs_of_life_that_were_not_asked_for(environment):
    ServiceManager.from_environment(environment).keep_alive(lambda seconds: pytest.fail("somebody waits"))


def test_children_do_not_speak_in_the_name_of_the_process():
    environment = {"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": str(os.getpid()), "PATH": "/bin"}
    ServiceManager.from_environment(environment)
    assert environment == {"PATH": "/bin"}


def test_a_manager_that_is_gone_stops_nobody(tmp_path, caplog):
    ServiceManager(str(tmp_path / "none")).ready()
    assert "did not receive `READY=1`" in caplog.text
