"""The command of the motif daemon starts with green threads in all modules."""

import subprocess
import sys

#: Prints the sample configuration, and fails when the lock of all pools is one of the operating system.
LOCK = """
from sluice_motifs_swift.cli import main
assert main(["--sample-config"]) == 0
from concurrent.futures import thread
from eventlet.lock import Lock
assert isinstance(thread._global_shutdown_lock, Lock), "a pool of threads may stop the process"
"""


def test_the_lock_of_all_pools_of_threads_is_green():
    environment = {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run([sys.executable, "-c", LOCK], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "[motifs]" in ended.stdout
