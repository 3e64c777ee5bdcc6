"""``sluice-konnector --config FILE``: the service on each machine that uses volumes."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cheroot import wsgi

from sluice_block.konnector.api import KonnectorApi
from sluice_block.konnector.konnector import Konnector
from sluice_block.konnector.settings import OPTIONS, SECTION
from sluice_block.konnector.supervisor import Supervisor
from sluice_block.stack.build import build
from sluice_core.errors import SluiceError
from sluice_core.options import OptionError, read_file, sample_section

log = logging.getLogger("sluice_block.konnector")

#: Bytes of the folder of sockets: behind it come a volume's id and a socket's name.
_LONGEST: Final = 107 - len("/00000000-0000-0000-0000-000000000000/stack-9999.sock")


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; volumes stay attached. 0 when it left in order."""
    parser = argparse.ArgumentParser(
        prog="sluice-konnector",
        description="attaches volumes to this machine through their filters, see docs/volumes.md",
    )
    parser.add_argument("--config", metavar="FILE", help="the configuration, an ini file with a section [konnector]")
    parser.add_argument("--sample-config", action="store_true", help="print all options with their defaults")
    given = parser.parse_args(argv)
    if given.sample_config:
        print(sample_section(SECTION, OPTIONS))
        return 0
    if given.config is None:
        parser.error("--config FILE is needed, see --sample-config")
    try:
        values = read_file(OPTIONS, given.config, SECTION)
        _start_logging(values["log_level"])
        serve(values)
    except SluiceError as error:
        print(f"sluice-konnector: {error}", file=sys.stderr)
        return 1
    return 0


def serve(values: dict[str, Any]) -> None:
    """
    :param values: of :data:`OPTIONS`
    :raises SluiceError: when it cannot start
    """
    run = Path(values["run_dir"])
    _make_folder(run)
    konnector = Konnector(Path(values["state_dir"]), run, build(Path(values["cache_dir"])))
    konnector.adopt()
    supervisor = Supervisor(konnector)
    server = wsgi.Server(str(run / "api.sock"), KonnectorApi(konnector), server_name="sluice-konnector")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=server.stop).start())
    server.prepare()
    supervisor.start()
    log.info("konnector serves at `%s`, with %d volumes", run / "api.sock", len(konnector.volumes()))
    server.serve()
    supervisor.stop()


def _make_folder(run: Path) -> None:
    """The socket may be opened by whoever reaches it (cheroot), so its folder keeps others out."""
    if len(os.fsencode(run)) > _LONGEST:
        raise OptionError(
            f"option `run_dir`: `{run}` is {len(os.fsencode(run))} bytes long, expected {_LONGEST} at most: "
            "a unix socket's path has 107"
        )
    try:
        run.mkdir(mode=0o700, parents=True, exist_ok=True)
        if run.stat().st_mode & 0o077 or run.stat().st_uid != os.geteuid():
            raise OptionError(f"option `run_dir`: `{run}` can be entered by others, expected mode 0700")
    except OSError as error:
        raise OptionError(f"option `run_dir`: {error}") from error


def _start_logging(level: str) -> None:
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise OptionError(f"option `log_level` is `{level}`, expected debug, info, warning or error")
    logging.basicConfig(level=number, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
