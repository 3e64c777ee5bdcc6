"""``sluice-keys``: create and change the key file of encryption; never shows a secret."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sluice_core.errors import CallerError
from sluice_core.process.command_line import add_version
from sluice_filters.encryption.keys.key_file import SECRET_SIZE, parse_ring, read_private, render_ring
from sluice_filters.encryption.keys.ring import KeySourceError, Ring
from sluice_filters.encryption.sealing import derive_key_check
from sluice_filters.key_ring import is_key_id

DEFAULT_PATH: Final = "/etc/sluice/keys.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status: 0 done, 1 refused."""
    options = _parser().parse_args(argv)
    options.file = options.file.resolve()  # a symbolic link stays one
    command: Callable[[argparse.Namespace], None] = options.run
    try:
        command(options)
    except KeySourceError as error:
        reason = f"`{options.file}`: {error}"
    except CallerError as error:
        reason = str(error)
    except OSError as error:
        reason = f"`{error.filename or options.file}`: {error.strerror or error}"
    else:
        return 0
    print(f"sluice-keys: {reason}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sluice-keys", description="Make and keep the key file of encryption.")
    add_version(parser)
    parser.add_argument(
        "--file", type=Path, default=Path(DEFAULT_PATH), help=f"the key file, by default {DEFAULT_PATH}"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    today = datetime.now(UTC).date().isoformat()

    init = commands.add_parser("init", help="make a key file with one key, which is active")
    init.add_argument("id", nargs="?", default=today, help="identifier of the key, by default the date")
    init.set_defaults(run=_init)

    add = commands.add_parser("add", help="add a new key: the first half of a rotation")
    add.add_argument("id", nargs="?", default=today, help="identifier of the key, by default the date")
    add.add_argument("--activate", action="store_true", help="new objects get it at once (one node only)")
    add.set_defaults(run=_add)

    show = commands.add_parser("list", help="show identifiers and checks; equal checks are equal keys")
    show.set_defaults(run=_list)

    activate = commands.add_parser("activate", help="let new objects get a key: the second half of a rotation")
    activate.add_argument("id")
    activate.set_defaults(run=_activate)

    remove = commands.add_parser("remove", help="remove a key that no object needs any more")
    remove.add_argument("id")
    remove.add_argument("--yes", action="store_true", help="no object under this key is wanted again")
    remove.set_defaults(run=_remove)
    return parser


def _init(options: argparse.Namespace) -> None:
    with _locked(options.file):
        if options.file.exists():
            raise CallerError(f"`{options.file}` is there already: expected `add`")
        _write(options.file, _with_new(Ring(), options.id, activate=True))
    print(f"`{options.file}` with active key `{options.id}`; copy it to every node that is to read or write")


def _add(options: argparse.Namespace) -> None:
    _change(options.file, lambda ring: _with_new(ring, options.id, options.activate))
    print(f"key `{options.id}` is in `{options.file}`" + (" and active" if options.activate else ""))


def _list(options: argparse.Namespace) -> None:
    ring = parse_ring(read_private(options.file))
    for key_id, secret in sorted(ring.secrets.items()):
        print(f"{key_id}  check {derive_key_check(secret).hex()}" + ("  active" if key_id == ring.active else ""))


def _activate(options: argparse.Namespace) -> None:
    _change(options.file, lambda ring: Ring(_known(ring, options.id), ring.secrets))
    print(f"key `{options.id}` is active: new objects get it within a second")


def _remove(options: argparse.Namespace) -> None:
    def without(ring: Ring) -> Ring:
        if _known(ring, options.id) == ring.active:
            raise CallerError(f"key `{options.id}` is active: activate another one first")
        if not options.yes:
            raise CallerError(
                f"objects encrypted under `{options.id}` become unreadable for ever: expected `--yes` when none is left"
            )
        return Ring(ring.active, {key_id: one for key_id, one in ring.secrets.items() if key_id != options.id})

    _change(options.file, without)
    print(f"key `{options.id}` is removed: objects encrypted under it cannot be read any more")


def _with_new(ring: Ring, key_id: str, activate: bool) -> Ring:
    if not is_key_id(key_id):
        raise CallerError(f"`{key_id}` is no identifier: expected up to 64 letters, digits, `.`, `_` or `-`")
    if key_id in ring.secrets:
        raise CallerError(f"key `{key_id}` is there already")
    return Ring(key_id if activate else ring.active, {**ring.secrets, key_id: os.urandom(SECRET_SIZE)})


def _known(ring: Ring, key_id: str) -> str:
    if key_id not in ring.secrets:
        raise CallerError(f"no key `{key_id}`, expected one of {', '.join(sorted(ring.secrets)) or 'none'}")
    return key_id


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock the folder against other runs of this command."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _change(path: Path, change: Callable[[Ring], Ring]) -> None:
    """Apply ``change`` to the ring in ``path``."""
    with _locked(path):
        _write(path, change(parse_ring(read_private(path))))


def _write(path: Path, ring: Ring) -> None:
    """Write ``ring`` to ``path`` as a whole or not at all, with mode 0600 and the former owner."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp gives mode 0600
    try:
        with open(handle, "wb") as file:
            file.write(render_ring(ring))
            file.flush()
            if path.exists() and os.geteuid() == 0:
                owner = path.stat()
                os.fchown(handle, owner.st_uid, owner.st_gid)
            os.fsync(handle)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


if __name__ == "__main__":
    sys.exit(main())
