"""What clients read and changed is summed up and told."""

from sluice_middleware.motifs import item_reports
from sluice_middleware.motifs.daemon_client import DaemonAway
from sluice_middleware.motifs.item_reports import ItemReports


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
    monkeypatch.setattr(item_reports.green, "call_later", lambda seconds, function: later.append(function))
    monkeypatch.setattr(item_reports, "MOST", 3)
    daemon = Daemon()
    reports = ItemReports(daemon)
    for name in ("a", "a", "b", "a", "c", "d"):
        reports.note_open(name)
    assert len(later) == 1
    reports.send()
    assert [(one.kind, list(one.opens.items())) for one in daemon.calls] == [("report", [("b", 1), ("a", 3), ("c", 1)])]
    reports.note_open("a")
    daemon.away = True
    reports.send()
    assert len(later) == 2


def test_what_clients_changed_is_told_once(monkeypatch):
    later = []
    monkeypatch.setattr(item_reports.green, "call_later", lambda seconds, function: later.append(function))
    monkeypatch.setattr(item_reports, "MOST", 2)
    daemon = Daemon()
    reports = ItemReports(daemon)
    for name in ("b", "a", "b", "c"):
        reports.note_change(name)
    reports.note_open("a")
    assert len(later) == 1
    reports.send()
    assert [(one.changed, dict(one.opens)) for one in daemon.calls] == [(("a", "b"), {"a": 1})]
    reports.note_change("d")
    assert len(later) == 2


def test_a_proxy_without_a_daemon_tells_nobody(monkeypatch):
    monkeypatch.setattr(item_reports.green, "call_later", lambda *given: 1 / 0)
    daemon = Daemon()
    daemon.path = ""
    ItemReports(daemon).note_change("a")
    ItemReports(daemon).note_open("a")
