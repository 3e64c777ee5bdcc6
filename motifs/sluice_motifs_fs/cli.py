"""``sluice-motif-fs``: mounts a folder whose files may have motifs, and manages these in a mount."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from sluice_core.connections.service_manager import ServiceManager
from sluice_core.errors import CallerError, SluiceError
from sluice_core.process.command_line import add_config_files, add_version
from sluice_core.process.distributions import refuse_two_distributions
from sluice_core.process.logs import start_logging
from sluice_motifs.replacement.registry import BUILT_IN
from sluice_motifs_fs.storage.attributes import CONTRACTED, EXPANDED, MOTIF, REASON, SPACE, STATE

#: The text for a mount without a target size.
_NO_LIMIT: Final = "none"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; return the exit status: 0 done, 1 refused."""
    options = parser().parse_args(argv)
    run: Callable[[argparse.Namespace], None] = options.run
    try:
        run(options)
    except SluiceError as error:
        reason = str(error)
    except OSError as error:
        reason = f"`{error.filename}`: {_reason(error)}" if error.filename else f"{error.strerror}"
    except KeyboardInterrupt:
        return 1
    else:
        return 0
    print(f"sluice-motif-fs: {reason}", file=sys.stderr)
    return 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="sluice-motif-fs", description="files whose bytes motifs can make again")
    add_version(made)
    commands = made.add_subparsers(dest="command", required=True)

    mount = commands.add_parser("mount", help="mount a folder, and serve it until it is unmounted or SIGTERM comes")
    mount.add_argument("source", type=Path, help="the folder; do not change it but through the mount")
    mount.add_argument("mount_point", type=Path, help="the folder to mount it on; may be the source itself")
    mount.add_argument("--target-size", type=_size, metavar="BYTES", help="bytes of expanded items, as 10GB; no limit")
    policies = [policy.keyword for policy in BUILT_IN]
    mount.add_argument("--policy", choices=policies, default="lru", help="which items are contracted first (lru)")
    mount.add_argument("--allow-other", action="store_true", help="let other users use the mount")
    add_config_files(mount, "what templates may reach, in its section [motif-fs]")
    mount.set_defaults(run=_mount)

    space = commands.add_parser("space", help="show the space of a mount, or change its target size and policy")
    space.add_argument("mount_point", type=Path)
    space.add_argument("--target-size", type=_target, metavar="BYTES", help="bytes of expanded items; none: no limit")
    space.add_argument("--policy", choices=policies, help="which items are contracted first")
    space.set_defaults(run=_space)

    attach = commands.add_parser("attach", help="attach a motif to a file of a mount")
    attach.add_argument("file", type=Path)
    attach.add_argument("template", help="its keyword")
    attach.add_argument(
        "params", nargs="*", metavar="NAME=VALUE", help="files by their paths from the top of the mount"
    )
    attach.set_defaults(run=_attach)

    for name, run, text in (
        ("detach", _detach, "expand a file and detach its motifs"),
        ("contract", _contract, "contract files"),
        ("expand", _expand, "make the bytes of files"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("files", type=Path, nargs="+")
        command.set_defaults(run=run)

    listed = commands.add_parser("list", help="show the files with motifs in a folder")
    listed.add_argument("folder", type=Path)
    listed.set_defaults(run=_list)
    return made


def _size(text: str) -> int:
    units = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
    number = text.upper().removesuffix("B")
    unit = number[-1:] if number[-1:] in units else ""
    try:
        size = int(number.removesuffix(unit)) * units[unit]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"`{text}` is no size, expected bytes, as 4096 or 10GB") from error
    if size < 0:
        raise argparse.ArgumentTypeError(f"`{text}` is negative, expected at least 0 bytes")
    return size


def _target(text: str) -> int | str:
    return _NO_LIMIT if text == _NO_LIMIT else _size(text)


def _mount(options: argparse.Namespace) -> None:
    # the other commands need no FUSE, and no external host
    from sluice_motifs.templates.registry import template_context
    from sluice_motifs_fs import mount
    from sluice_motifs_fs.mount import MountOptions, serve

    refuse_two_distributions()
    values = mount.read_settings(*options.config or ())
    start_logging("info", values["log_format"], "%(asctime)s %(levelname)s %(message)s")
    serve(
        MountOptions(
            options.source,
            options.mount_point,
            options.target_size,
            options.policy,
            options.allow_other,
            values["reexpansion_share"],
            template_context(values),
        ),
        ServiceManager.from_environment(),
    )


def _space(options: argparse.Namespace) -> None:
    changed: dict[str, object] = {}
    if options.target_size is not None:
        changed["target_size"] = None if options.target_size == _NO_LIMIT else options.target_size
    if options.policy is not None:
        changed["policy"] = options.policy
    if changed:
        os.setxattr(options.mount_point, SPACE, json.dumps(changed).encode())
    for name, value in json.loads(os.getxattr(options.mount_point, SPACE)).items():
        print(f"{name}\t{'' if value is None else value}".rstrip())


def _attach(options: argparse.Namespace) -> None:
    params = {}
    for text in options.params:
        name, equals, value = text.partition("=")
        if not equals:
            raise CallerError(f"`{text}` is no parameter, expected NAME=VALUE")
        params[name] = value
    described = json.dumps({"template": options.template, "params": params})
    os.setxattr(options.file, MOTIF, described.encode())


def _detach(options: argparse.Namespace) -> None:
    for file in options.files:
        os.removexattr(file, MOTIF)


def _contract(options: argparse.Namespace) -> None:
    for file in options.files:
        os.setxattr(file, STATE, CONTRACTED.encode())


def _expand(options: argparse.Namespace) -> None:
    for file in options.files:
        os.setxattr(file, STATE, EXPANDED.encode())


def _list(options: argparse.Namespace) -> None:
    for folder, _, names in os.walk(options.folder):
        for path in sorted(Path(folder) / name for name in names):
            for motif in _motifs(path):
                params = " ".join(f"{name}={value}" for name, value in motif["params"].items())
                state = os.getxattr(path, STATE).decode()
                print(f"{path}\t{state}\t{path.stat().st_size}\t{motif['template']} {params}".rstrip())


def _motifs(path: Path) -> Iterator[dict[str, dict[str, object]]]:
    try:
        yield from json.loads(os.getxattr(path, MOTIF, follow_symlinks=False))
    except OSError:
        return


def _reason(error: OSError) -> str:
    """Return the reason of a mount's refusal; else the meaning of the error."""
    try:
        return os.getxattr(error.filename, REASON).decode("utf-8", "replace")
    except OSError:
        return error.strerror or f"{error}"
