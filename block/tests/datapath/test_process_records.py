"""Ending recorded processes."""

import signal
import subprocess

import pytest

from sluice_block.datapath.processes import ProcessRecord

pytestmark = pytest.mark.service


@pytest.mark.parametrize(
    ("patience", "expected"),
    [(0, [signal.SIGKILL]), (10, [signal.SIGTERM])],
)
def test_a_process_is_asked_to_end_only_when_it_may_take_some_time_for_it(monkeypatch, patience, expected):
    sent, send = [], signal.pidfd_send_signal
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda fd, number: (sent.append(number), send(fd, number)))
    with subprocess.Popen(["sleep", "60"]) as process:
        ProcessRecord.of(process.pid).end(patience)
        process.returncode = 0  # it was reaped
    assert sent == expected
