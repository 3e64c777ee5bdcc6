"""Mounts a folder with its motifs by options, and serves it until it is unmounted or the process is signalled."""

from __future__ import annotations

import gc
import logging
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyfuse3
import trio

from sluice_core.connections.service_manager import ServiceManager
from sluice_core.errors import CallerError, PeerError
from sluice_core.options import Option, OptionError, read_files
from sluice_core.process.logs import LOG_FORMAT
from sluice_motifs.api import TemplateContext
from sluice_motifs.space.keeper import SHARE
from sluice_motifs.templates import registry
from sluice_motifs_fs.motif_files import MotifFiles
from sluice_motifs_fs.operations.items import WAITING
from sluice_motifs_fs.operations.motifs import MotifOperations
from sluice_motifs_fs.storage.paths import SourceFolder

log = logging.getLogger(__name__)

#: New objects after which the garbage collector runs: those of some thousand requests.
_ALLOCATIONS: Final = 50_000

SECTION: Final = "motif-fs"
#: The options of a mount's configuration file; the command line has those of one mount.
OPTIONS: Final = (
    Option(
        "reexpansion_share",
        SHARE,
        "part of all seconds that a mount may take to make again what it contracted minutes before; "
        "one whose target would need more stays larger; inf: its target is kept whatever that costs",
    ),
    *registry.OPTIONS,
    LOG_FORMAT,
)
#: Files that are read again during a mount, which changes its working folder.
_FOLLOWED: Final = ("motif_password_file", "motif_key_manager_conf")


def read_settings(*paths: str | Path) -> dict[str, Any]:
    """The options of ``[motif-fs]`` in the files at ``paths``; later files win.

    :raises OptionError: when a file cannot be read or an option in it cannot be used
    """
    values = read_files(OPTIONS, paths, SECTION)
    if not values["reexpansion_share"] > 0:
        raise OptionError(f"option `reexpansion_share` is `{values['reexpansion_share']}`, expected more than 0")
    for name in _FOLLOWED:
        values[name] = values[name] and os.path.abspath(values[name])
    return values


@dataclass(frozen=True, slots=True)
class MountOptions:
    """The options of one mount.

    :param target_size: bytes of expanded items; None: no limit
    :param policy: keyword of the replacement policy
    :param allow_other: whether other users may use it
    :param share: of all seconds, that re-expansions may take: as of ``ThrashingGuard``
    :param context: the hosts and clusters that templates may reach
    """

    source: Path
    mount_point: Path
    target_size: int | None = None
    policy: str = "lru"
    allow_other: bool = False
    share: float = SHARE
    context: TemplateContext = field(default_factory=TemplateContext)


def serve(options: MountOptions, manager: ServiceManager) -> None:
    """Mount, and return when it is unmounted, or on SIGTERM or SIGINT.

    :param manager: told that it is mounted, and that requests are served
    :raises CallerError: when an option is wrong
    :raises PeerError: when it cannot be mounted, or the folder holds no extended attributes
    """
    source, mount_point = _folder(options.source), _folder(options.mount_point)
    os.chdir(source)
    os.umask(0)  # the kernel applies the umask of the creating process
    folder = SourceFolder(".")
    failures: dict[str, str] = {}
    templates = registry.load_templates(failures, options.context)
    for name, reason in failures.items():
        log.error("template `%s` is left out: %s", name, reason)
    files = MotifFiles(folder, templates, options.target_size, options.policy, options.share)
    count = files.start()
    operations = MotifOperations(files, str(mount_point))
    choice = {*pyfuse3.default_options, "fsname=sluice-motif-fs"}
    if options.allow_other:
        choice.add("allow_other")
    try:
        pyfuse3.init(operations, str(mount_point), choice)
    except RuntimeError as error:
        files.stop()
        raise PeerError(f"`{mount_point}` cannot be mounted: is FUSE 3 installed, and /dev/fuse there?") from error
    gc.collect()
    gc.freeze()  # requests create no cycles, and the present objects stay: collect seldom
    gc.set_threshold(_ALLOCATIONS)
    log.info("`%s` is mounted at `%s` with %d items", source, mount_point, count)
    manager.ready()
    try:
        trio.run(_main, manager)
    finally:
        pyfuse3.close(unmount=True)
        files.stop()


async def _main(manager: ServiceManager) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_end_on_signal)
        nursery.start_soon(_give_signs_of_life, manager)
        await pyfuse3.main(max_tasks=2 * WAITING)
        nursery.cancel_scope.cancel()


async def _give_signs_of_life(manager: ServiceManager) -> None:
    for seconds in manager.signs_of_life():
        await trio.sleep(seconds)


async def _end_on_signal() -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            pyfuse3.terminate()
            return


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise CallerError(f"`{path}` is no folder")
    return path.resolve()
