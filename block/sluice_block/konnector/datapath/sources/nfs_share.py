"""The NFS share of a volume: where it is mounted already, or a mount of its own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice_block.konnector.datapath import processes
from sluice_block.konnector.datapath.mounts import is_mounted, unmount
from sluice_block.konnector.datapath.sources.fields import text_field
from sluice_core.errors import CallerError


@dataclass(frozen=True, slots=True)
class NfsShare:
    """``place`` is where it is mounted when nobody else has done that."""

    place: Path

    def find(self, data: Mapping[str, Any], base: object) -> Path:
        """The volume's file.

        :param data: ``export``, ``name`` and ``options`` of a connection
        :param base: the folder in which Cinder and os-brick mount shares, under the MD5 of their names
        :raises CallerError: when something is missing
        :raises PeerError: when the share cannot be mounted
        """
        export, name = text_field(data, "export", "nfs"), text_field(data, "name", "nfs")
        if Path(name).name != name:
            raise CallerError(f"`name` is `{name}`, expected the name of a file")
        if isinstance(base, str) and base:
            digest = hashlib.md5(export.encode(), usedforsecurity=False).hexdigest()
            if is_mounted(Path(base) / digest):
                return Path(base) / digest / name
        if not is_mounted(self.place):
            self.place.mkdir(mode=0o700, exist_ok=True)
            options = [part for part in str(data.get("options") or "").split() if part != "-o"]
            given = ["-o", ",".join(options)] if options else []
            processes.run(["mount", "-t", "nfs", *given, "--", export, str(self.place)], f"`{export}` is not mounted")
        return self.place / name

    def unmount(self) -> None:
        """Undo a mount of its own.

        :raises PeerError: when somebody uses it
        """
        unmount(self.place)
        if self.place.exists():
            os.rmdir(self.place)
