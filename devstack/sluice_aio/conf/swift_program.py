"""``python -m sluice_aio.conf.swift_program <folder> <program> <arguments>``: a Swift program with this swift.conf.

Swift reads storage policies and constraints from /etc/swift/swift.conf when some of its modules
are imported.  The option ``swift_dir`` moves only the rings, and comes too late for these.  So the
folder must be set after the import of ``swift.common.utils`` and before any other import of Swift, which
no program of Swift allows.  The rest is Swift's own, except the daemons that Sluice replaces:
they run if their configuration names an agent.

A server that reloads itself (SIGUSR1) would start without this program: not supported here.
"""

from __future__ import annotations

import configparser
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any, Final

#: Modules that read swift.conf at their import.
_TOO_EARLY: Final = ("swift.common.storage_policy", "swift.common.constraints")
#: Swift's daemon → Sluice's replacement.
_OURS: Final = {
    "swift-object-reconstructor": "sluice-object-reconstructor",
    "swift-object-replicator": "sluice-object-replicator",
}


def main(argv: Sequence[str] | None = None) -> Any:
    """Run the program; return its result, usually None."""
    folder, program, *arguments = sys.argv[1:] if argv is None else argv
    if program in _OURS and _names_agent(arguments):
        program = _OURS[program]
    points = entry_points(group="console_scripts", name=program)
    if not points:
        raise SystemExit(f"`{program}` is no installed program")
    from swift.common import utils

    early = [name for name in _TOO_EARLY if name in sys.modules]
    if early:
        raise SystemExit(f"`{early[0]}` was imported before swift.conf was found")
    utils.set_swift_dir(folder)
    sys.argv = [program, *arguments]
    (point,) = points
    return point.load()()


def _names_agent(arguments: Sequence[str]) -> bool:
    """Whether the configuration, the first argument, belongs to a node with Sluice."""
    parser = configparser.RawConfigParser()
    parser.read(arguments[:1])
    return "sluice_agent_socket" in parser.defaults()


if __name__ == "__main__":
    sys.exit(main())
