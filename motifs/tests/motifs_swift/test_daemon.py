import pytest

from sluice_core.errors import PeerError
from sluice_middleware.swift import green
from sluice_motifs_swift.daemon import Daemon


class Service:
    def __init__(self, told, fails=False):
        self.told = told
        self.fails = fails

    def start(self):
        if self.fails:
            raise PeerError("no")
        self.told.append("start")

    def stop(self):
        self.told.append("stop")


def test_it_runs_until_it_is_stopped():
    told = []
    daemon = Daemon([Service(told)])
    running = green.start_green(daemon.run)
    green.yield_control()
    assert told == ["start"]
    daemon.stop()
    daemon.stop()  # a second signal
    running.wait()
    assert told == ["start", "stop"]


def test_a_signal_may_come_first():
    told = []
    daemon = Daemon([Service(told)])
    daemon.stop()
    daemon.run()
    assert told == ["start", "stop"]


def test_what_started_is_stopped_when_another_service_does_not():
    told = []
    with pytest.raises(PeerError):
        Daemon([Service(told), Service(told, fails=True)]).run()
    assert told == ["start", "stop"]
