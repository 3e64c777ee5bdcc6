"""Options written into a configuration that people keep: comments, order and all else stay as they are."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from sluice_core.options import OptionError


def write_options(path: str | Path, section: str, values: Mapping[str, str]) -> None:
    """Set ``values`` in ``[section]`` of the ini file at ``path``, which is replaced at once.

    :raises OptionError: when that cannot be
    """
    path = Path(os.path.realpath(path))
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        made = changed(path.read_text(encoding="utf-8"), section, values)
        with open(fresh, "x", encoding="utf-8") as file:
            shutil.copystat(path, fresh)
            _give(fresh, path)
            file.write(made)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except (OSError, UnicodeDecodeError) as error:
        fresh.unlink(missing_ok=True)
        raise OptionError(f"cannot write `{path}`: {error}") from error


def changed(text: str, section: str, values: Mapping[str, str]) -> str:
    """``text`` with ``values`` in its ``[section]``, where the option is set or shown, else at the end of that."""
    lines = text.splitlines()
    first, last = _section(lines, section)
    for name, value in values.items():
        line = f"{name} = {value}"
        at = _line(lines, name, first, last)
        if at is None:
            while last > first and not lines[last - 1].strip():
                last -= 1
            lines.insert(last, line)
            last += 1
        else:
            lines[at] = line
    return "\n".join(lines) + "\n"


def _section(lines: list[str], section: str) -> tuple[int, int]:
    """The lines of a section, which is made when there is none: from, to."""
    heads = [at for at, line in enumerate(lines) if re.match(r"\[[^]]+\]", line)]
    for at in heads:
        if lines[at].startswith(f"[{section}]"):
            return at + 1, min((other for other in heads if other > at), default=len(lines))
    lines.append(f"[{section}]")
    return len(lines), len(lines)


def _line(lines: list[str], name: str, first: int, last: int) -> int | None:
    """Where the option is set; else where a sample shows it, commented out."""
    for pattern in (rf"{name}\s*[=:]", rf"#\s?{name}\s*[=:]"):
        for at in range(first, last):
            if re.match(pattern, lines[at]):
                return at
    return None


def _give(fresh: Path, path: Path) -> None:
    """The owner of ``path``, as far as we may."""
    there = path.stat()
    if (there.st_uid, there.st_gid) != (os.geteuid(), os.getegid()):
        os.chown(fresh, there.st_uid, there.st_gid)
