"""``sluice-objectd CONFIG``: the homes of objects on a storage node, under Swift's own WSGI server.

It takes the command line of Swift's servers.  The configuration has ``[app:object-home]`` and ``workers = 0``.
"""

from __future__ import annotations

import sys
from typing import Final

from sluice_core.errors import SluiceError
from sluice_core.process.distributions import refuse_two_distributions
from sluice_middleware.swift.daemon_api import parse_options, run_wsgi

_APP: Final = "object-home"


def main() -> int:
    """Run until a signal arrives; the exit status."""
    try:
        refuse_two_distributions()
    except SluiceError as error:
        print(f"sluice-objectd: {error}", file=sys.stderr)
        return 1
    config, options = parse_options()
    return int(run_wsgi(config, _APP, **options) or 0)
