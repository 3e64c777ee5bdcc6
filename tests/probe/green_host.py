"""A host with green threads, as Swift's servers: run by the probe of the fast environments.

Prints how many streams passed through green threads and through real ones, and whether other threads ran meanwhile.
"""

import sys
import tempfile
from pathlib import Path

from swift.common.concurrency import monkey_patch, sleep, spawn, tpool

monkey_patch(all=False, socket=True, select=True, thread=True)

from tests.support.sandbox.process import uploaded  # noqa: E402

from sluice_code.code_store import CodeStore  # noqa: E402
from sluice_filters.api import Hint  # noqa: E402  patched first, as in Swift
from sluice_sandbox.limits import Limits  # noqa: E402
from sluice_sandbox.process.session import ProcessTeam  # noqa: E402

SLOW = b"""
import time
class Slow:
    def __init__(self, params, direction): pass
    def feed(self, data):
        time.sleep(0.2)
        return data
    def finish(self): return b""
"""


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as code:
        store = CodeStore(Path(code))
        slow = uploaded(store, ProcessTeam(store, folder, Limits(patience=30)), SLOW, "slow", "Slow")

        def once() -> bytes:
            stream = slow().reader(Hint(account="AUTH_green"))
            return stream.feed(b"x") + stream.finish()

        turns = []
        other = spawn(lambda: [turns.append(sleep(0.001)) for _ in range(1000)])
        green = [spawn(once) for _ in range(5)]
        print(sum(one.wait() == b"x" for one in green))
        meanwhile = len(turns)
        print(sum(tpool.execute(once) == b"x" for _ in range(5)))
        # five times 0.2 s: had the filters blocked the host, the other thread had run once or twice for each
        print(meanwhile > 20)
        other.kill()


main(Path(sys.argv[1]))
