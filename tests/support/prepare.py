"""``python -m tests.support.prepare``: builds in advance what tests otherwise build on their first use.

The environments of Keystone, Cinder, Horizon and Tempest and the root file system of containers take minutes the first
time, and are kept in the cache folder (``$SLUICE_CACHE``). Builds that fail here are named; the tests that need them
fail with the same reason.
"""

from __future__ import annotations

import functools
import sys

from sluice_aio.errors import LaunchError
from sluice_aio.keystone import venv
from sluice_core.errors import SluiceError
from sluice_sandbox.docker import image
from sluice_sandbox.files import cache_folder


def say(line: str) -> None:
    """Progress, on the standard error stream."""
    print(f"prepare: {line}", file=sys.stderr, flush=True)


def main() -> None:
    services = [
        functools.partial(venv.python, say, service=name) for name in ("keystone", "cinder", "horizon", "tempest")
    ]
    for make in (*services, lambda: image.root_file_system(image.PYTHON, cache_folder(), say)):
        try:
            make()
        except (LaunchError, SluiceError) as error:
            say(str(error))


if __name__ == "__main__":
    main()
