"""The files of this clone that git has, as they are now, without those of builds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

_CLONE: Final = Path(__file__).resolve().parents[2]


def copy_committed_files(folder: Path, without: tuple[str, ...] = ()) -> None:
    """Copy them into ``folder``; those whose names begin with one of ``without`` are left out."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=_CLONE, capture_output=True, check=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (_CLONE / name).is_file() and not name.startswith(without):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(_CLONE / name, folder / name)
