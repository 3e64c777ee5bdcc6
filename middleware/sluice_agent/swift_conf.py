"""``sluice-agent upgrade-swift-conf``: Swift's configuration after the distribution was renamed.

Up to 0.1 the distribution was called ``sluice``, and Swift's files name its entry points as ``egg:sluice#proxy``.  Once
``openstack-sluice`` is installed in its place, Swift finds no such distribution and does not start.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from sluice_agent.edit_file import edit_file
from sluice_core.options import OptionError

#: Swift's folder of configuration files.
SWIFT: Final = Path("/etc/swift")
_FORMER: Final = "egg:sluice#"
_NOW: Final = "egg:openstack-sluice#"


def main(argv: Sequence[str]) -> int:
    """Show what changes in Swift's files, and with ``--write`` change them.

    :returns: 0 when no file names the former distribution any more, 1 when one does, 2 when a file cannot be used
    """
    parser = argparse.ArgumentParser(
        prog="sluice-agent upgrade-swift-conf",
        description="replace `egg:sluice#` by `egg:openstack-sluice#` in Swift's configuration; shows the difference",
        epilog="Stop Swift on this node first, and start it afterwards. Without --write nothing is changed.",
    )
    parser.add_argument("--write", action="store_true", help="change the files, keeping owner and mode")
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help=f"default: every *.conf in {SWIFT} and its folders"
    )
    args = parser.parse_args(argv)
    try:
        changes = 0
        for path in args.files or _swift_files(SWIFT):
            difference = list(_difference(path))
            changes += bool(difference)
            sys.stdout.writelines(difference)
            if difference and args.write:
                edit_file(path, _renamed)
    except OptionError as error:
        print(f"sluice-agent upgrade-swift-conf: {error}", file=sys.stderr)
        return 2
    if not changes:
        print("no file names the former distribution `sluice`")
    elif not args.write:
        print(f"{changes} file(s) to change; --write changes them", file=sys.stderr)
        return 1
    return 0


def _swift_files(folder: Path) -> list[Path]:
    """:raises OptionError: where there is no configuration of Swift"""
    files = sorted(path for path in folder.rglob("*.conf") if path.is_file())
    if not files:
        raise OptionError(f"no `*.conf` in `{folder}` or its folders, expected Swift's; name the files")
    return files


def _renamed(text: str) -> str:
    return text.replace(_FORMER, _NOW)


def _difference(path: Path) -> Iterator[str]:
    """Lines of a unified difference, none where nothing changes.

    :raises OptionError: where the file cannot be read
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read `{path}`: {error}") from error
    before, after = text.splitlines(keepends=True), _renamed(text).splitlines(keepends=True)
    return difflib.unified_diff(before, after, str(path), str(path), n=1)
