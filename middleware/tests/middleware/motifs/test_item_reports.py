"""Reads and changes by clients are summed up and reported."""

from sluice_middleware.motifs import daemon_client
from sluice_middleware.motifs.daemon_client import DaemonAway, ItemReports


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
    due = []
    monkeypatch.setattr(daemon_client.green, "each_second", due.append)
    monkeypatch.setattr(daemon_client, "MOST", 3)
    daemon = Daemon()
    reports = ItemReports(daemon)
    for name in ("a", "a", "b", "a", "c", "d"):
        reports.note_open(name)
    (send,) = due
    send()
    send()
    assert [(one.kind, list(one.opens.items())) for one in daemon.calls] == [("report", [("b", 1), ("a", 3), ("c", 1)])]
    reports.note_open("a")
    daemon.away = True
    send()
    assert (len(due), len(daemon.calls)) == (1, 1)


def test_what_clients_changed_is_told_once(monkeypatch):
    monkeypatch.setattr(daemon_client.green, "each_second", lambda function: None)
    monkeypatch.setattr(daemon_client, "MOST", 2)
    daemon = Daemon()
    reports = ItemReports(daemon)
    for name in ("b", "a", "b", "c"):
        reports.note_change(name)
    reports.note_open("a")
    reports.send()
    assert [(one.changed, dict(one.opens)) for one in daemon.calls] == [(("a", "b"), {"a": 1})]
    reports.note_change("d")
    reports.send()
    assert daemon.calls[1].changed == ("d",)


def test_a_proxy_without_a_daemon_tells_nobody(monkeypatch):
    monkeypatch.setattr(daemon_client.green, "each_second", lambda function: 1 / 0)
    daemon = Daemon()
    daemon.path = ""
    ItemReports(daemon).note_change("a")
    ItemReports(daemon).note_open("a")
