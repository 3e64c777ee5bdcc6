"""The options of the environment ``storlet`` in a host's configuration, all beginning with ``storlets_``.

Setting ``storlets_engine`` enables it; all other options have defaults.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sluice_code.code_store import CodeStore
from sluice_core.errors import CallerError
from sluice_sandbox.docker import image
from sluice_sandbox.files import cache_folder, state_folder
from sluice_sandbox.limits import Limits
from sluice_sandbox.storlets import library as storlets_library

if TYPE_CHECKING:
    from sluice_sandbox.storlets.team import StorletTeam

PREFIX: Final = "storlets_"
#: Name → type and help, as the documentation shows them.
OPTIONS: Final[Mapping[str, tuple[type, str]]] = {
    "engine": (str, "URL of the Docker engine, such as unix:///var/lib/sluice/engine/docker.sock"),
    "image": (str, "name of the image (that of `sluice-sandbox image build`)"),
    "folder": (str, "sockets and code of the containers, not shared with other nodes (/var/lib/sluice/storlets)"),
    "cache": (str, "where the Java library is, if it was built"),
    "node": (str, "this node's name, when several share an engine (the host's name)"),
    "uid": (int, "user that runs the storlets (default: the user of this process, or nobody if that is root)"),
    "runs": (int, "runs of one filter for one tenant at once (16)"),
    "cpus": (float, "processors of one container (1.0)"),
    "temporary": (int, "bytes of /tmp in a container (64 MiB)"),
    "memory": (int, "bytes of memory of one container (256 MiB)"),
    "patience": (float, "seconds that a storlet may do nothing (10)"),
    "idle": (float, "seconds without work after which a container ends (300)"),
    "growth": (float, "how many times what it takes a storlet may give (20)"),
    "processes": (int, "processes of one run (8)"),
}
_LIMITS: Final = frozenset(one.name for one in fields(Limits))
_HERE: Final = frozenset({"folder", "cache", "engine"})


def storlet_team(options: Mapping[str, str], store: CodeStore) -> StorletTeam | None:
    """Return the team that ``options`` describe; None when they name no engine.

    :raises CallerError: for values of a wrong type, all at once
    :raises PeerError: when Storlets is not installed
    """
    given = _given(options)
    if "engine" not in given:
        return None
    from sluice_sandbox.storlets.container import ContainerSettings  # these need Storlets, and docker's client
    from sluice_sandbox.storlets.team import StorletTeam

    folder = Path(given.get("folder", state_folder() / "storlets"))
    jars = sorted(Path(given.get("cache", cache_folder())).glob("java-*"))
    library = storlets_library.prepare(folder, jars[-1] if jars else None)
    rest = {name: value for name, value in given.items() if name not in _LIMITS | _HERE}
    place: dict[str, Any] = {"image": image.PYTHON.name(), "node": socket.gethostname(), **rest}
    limits = Limits(**{name: value for name, value in given.items() if name in _LIMITS})
    settings = ContainerSettings(engine=given["engine"], folder=folder, library=library, **place)
    return StorletTeam(settings, store, limits)


def _given(options: Mapping[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    faults = []
    for name, (kind, _) in OPTIONS.items():
        text = options.get(PREFIX + name)
        if not text:
            continue
        try:
            given[name] = kind(text)
        except ValueError:
            faults.append(f"option `{PREFIX}{name}` is `{text}`, expected a number")
    if faults:
        raise CallerError("; ".join(faults))
    return given
