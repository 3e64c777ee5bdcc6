"""Changes of a configuration file that an operator maintains."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from sluice_core.options import OptionError


def edit_file(path: str | Path, edit: Callable[[str], str]) -> None:
    """Replace the file at ``path`` atomically by the result of ``edit`` on its text; owner, group and mode stay.

    :raises OptionError: when the file cannot be read or written
    """
    path = Path(os.path.realpath(path))
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        made = edit(path.read_text(encoding="utf-8"))
        with open(fresh, "x", encoding="utf-8") as file:
            shutil.copystat(path, fresh)
            _copy_owner(path, fresh)
            file.write(made)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except (OSError, UnicodeDecodeError) as error:
        fresh.unlink(missing_ok=True)
        raise OptionError(f"cannot write `{path}`: {error}") from error


def _copy_owner(path: Path, fresh: Path) -> None:
    """Give ``fresh`` the owner and group of ``path``; only root may give a file to another user."""
    there = path.stat()
    if (there.st_uid, there.st_gid) != (os.geteuid(), os.getegid()):
        os.chown(fresh, there.st_uid, there.st_gid)
