"""The ``systemctl`` of scratch roots."""

import os

import pytest
from tests.support.hosts import systemctl


@pytest.mark.parametrize(
    ("text", "number"),
    [(str(os.getpid()), os.getpid()), ("", 0), ("0", 0)],
    ids=["a process", "a file that is being written", "none"],
)
def test_the_number_of_a_process_that_runs(tmp_path, text, number):
    (tmp_path / "pid").write_text(text)
    assert systemctl.running(tmp_path / "pid") == number
    assert systemctl.running(tmp_path / "other") == 0
