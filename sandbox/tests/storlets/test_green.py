"""In a Swift server all code waits in green threads: a storlet that computes must not stop other requests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

SCRIPT = '''
import sys
import warnings

warnings.simplefilter("ignore")
from swift.common.utils import monkey_patch

monkey_patch()
from pathlib import Path

from swift.common.concurrency import GreenPile, sleep, tpool

from sluice_filters.api import Hint
from sluice_sandbox.limits import Limits
from tests.support.sandbox.storlets import ACCOUNT, BareTeam, python_storlet, through

sign = Path(sys.argv[1])
WAIT = """
data = source.read()
while not os.path.exists(params["sign"]):
    time.sleep(0.01)
target.write(data)
"""
COPY = "while data := source.read(65536): target.write(data)"


def later():
    sleep(0.1)
    sign.touch()
    return b"done"


with BareTeam.open(Limits(patience=20.0)) as team:
    info = {"parameters": [{"name": "sign", "type": "str", "default": str(sign)}]}
    patient = team.add("patient", python_storlet(WAIT), reverse=True, info=info)
    copy = team.add("copy", python_storlet(COPY), reverse=True)
    data = bytes(range(256)) * 4000
    pile = GreenPile(10)
    pile.spawn(through, patient(), b"waited")  # cold: the container's start is waited for, too
    for _ in range(4):
        pile.spawn(through, copy(), data)
    pile.spawn(later)
    pile.spawn(tpool.execute, through, copy(), data)  # beside native filters that want a thread of their own
    assert list(pile) == [b"waited", *[data] * 4, b"done", data]
    import os  # as it is by now

    assert os.read.__module__ != "eventlet.green.os", "Storlets made more of this process green than Swift does"
print("green")
'''


def test_a_storlet_that_waits_stops_nobody(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    argv = [sys.executable, str(script), str(tmp_path / "sign")]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "green\n"), done.stderr[-3000:]
    assert Path(tmp_path / "sign").exists()


def test_loading_the_container_leaves_a_plain_process_plain():
    code = (
        "import select, socket, threading; before = select.select, socket.socket, threading.Thread.start\n"
        "import sluice_sandbox.storlets.container, os\n"
        "assert before == (select.select, socket.socket, threading.Thread.start)\n"
        "assert os.read.__module__ in (None, 'posix')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
