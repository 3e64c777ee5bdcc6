"""Waiting for several descriptors, in plain threads and in green ones."""

import os
import subprocess
import sys

import pytest

from sluice_sandbox.waiting import pause, wait

#: A green thread waits for two descriptors that become ready at once, then for a queue: only the queue may wake it.
GREEN = """
import os
from swift.common.utils import monkey_patch
monkey_patch()
from swift.common.concurrency import queue, sleep, spawn
from sluice_sandbox.waiting import wait

assert not hasattr(__import__("select"), "poll")
answers = []
channel = queue.LightQueue()
first, second = os.pipe(), os.pipe()

def waiter():
    answers.append(wait([first[0], second[0]], [], 5))
    answers.append(channel.get())

def both():
    os.write(first[1], b"x")
    os.write(second[1], b"x")

thread = spawn(waiter)
sleep(0.05)
both()
sleep(0.05)
channel.put("the right answer")
thread.wait()
assert answers == [True, "the right answer"], answers
assert not wait([os.pipe()[0], os.pipe()[0]], [], 0.01)
left, right = os.pipe()
assert wait([left], [right], 1)
print("green")
"""


def test_wait_returns_when_one_descriptor_is_ready_or_at_the_timeout():
    first, second = os.pipe(), os.pipe()
    try:
        assert not wait([first[0], second[0]], [], 0)
        os.write(second[1], b"x")
        assert wait([first[0], second[0]], [], 5)
        assert wait([first[0]], [first[1]], 5)
        assert not wait([first[0]], [], 0.001)
        pause(0)
    finally:
        for descriptor in (*first, *second):
            os.close(descriptor)


def test_a_descriptor_that_is_closed_is_an_error_where_several_are_waited_for():
    first, second = os.pipe()
    os.close(first)
    os.close(second)
    assert wait([first], [], 0)  # ready, since reading it returns an error


@pytest.mark.filterwarnings("ignore")
def test_a_green_thread_is_woken_once_when_several_are_ready_together():
    done = subprocess.run([sys.executable, "-c", GREEN], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "green\n"), done.stderr[-3000:]
