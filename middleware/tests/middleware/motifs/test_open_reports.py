"""Opens of objects whose bytes are there are summed up and told."""

from sluice_middleware.motifs import open_reports
from sluice_middleware.motifs.daemon_client import DaemonAway
from sluice_middleware.motifs.open_reports import OpenReports


class Daemon:
    path = "/run/motifs.sock"

    def __init__(self):
        self.calls = []
        self.away = False

    def call(self, call):
        if self.away:
            raise DaemonAway("away")
        self.calls.append(call)
        return self

    def close(self):
        pass


def test_opens_of_a_second_are_one_call(monkeypatch):
    later = []
    monkeypatch.setattr(open_reports.green, "call_later", lambda seconds, function: later.append(function))
    monkeypatch.setattr(open_reports, "MOST", 3)
    daemon = Daemon()
    reports = OpenReports(daemon)
    for name in ("a", "a", "b", "a", "c", "d"):
        reports.note(name)
    assert len(later) == 1
    reports.send()
    assert [(one.kind, list(one.opens.items())) for one in daemon.calls] == [("opened", [("b", 1), ("a", 3), ("c", 1)])]
    reports.note("a")
    daemon.away = True
    reports.send()
    assert len(later) == 2


def test_a_proxy_without_a_daemon_tells_nobody(monkeypatch):
    monkeypatch.setattr(open_reports.green, "call_later", lambda *given: 1 / 0)
    daemon = Daemon()
    daemon.path = ""
    OpenReports(daemon).note("a")
