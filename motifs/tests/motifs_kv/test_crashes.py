"""A process that is killed at any moment leaves every value whole or contracted, and no partial write."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_motifs.testing.shim_suite import ShiftedCopy, shifted
from sluice_motifs_kv.database import Database

WRITER = Path(__file__).with_name("killed_writer.py")
KILLS = 12

pytestmark = pytest.mark.service


def content(number):
    """The writer's content."""
    return b"%d " % number * (number % 50 + 1)


def write_and_kill(path, first, writes):
    """The number of the last write that was reported before the writer was killed, after ``writes`` or more."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(WRITER), str(path), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as writer:
        for _ in range(writes):
            assert writer.stdout.readline(), "the writer ended by itself"
        writer.kill()
        rest = writer.stdout.read().split()
    return int(rest[-1]) if rest and rest[-1].isdigit() else first + writes - 1


def test_a_killed_process_leaves_all_values_whole_or_contracted(tmp_path):
    drawn = random.Random(1)
    last = 0
    contracted = 0
    for _ in range(KILLS):
        last = write_and_kill(tmp_path / "db", last + 1, drawn.randrange(1, 60))
        with Database(tmp_path / "db", [ShiftedCopy]) as database:
            source = database.get(b"source")
            assert source in (content(last), content(last + 1))
            assert database.get(b"twin") == source
            copies = list(database.iterator(prefix=b"copy", include_value=False))
            contracted += sum(database.contracted(key) for key in copies)
            assert [database.get(key) for key in copies] == [shifted(source)] * len(copies)
            assert dict(database.iterator(prefix=b"copy")) == dict.fromkeys(copies, shifted(source))
            if source == content(last + 1):
                last += 1
    assert contracted
