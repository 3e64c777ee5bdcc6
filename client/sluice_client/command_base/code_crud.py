"""The upload, download, rollback, start, stop and instances commands of a resource with uploaded code.

They are used like those of ``crud``: a class of two lines, and a docstring, which is the command's help.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, ClassVar, Final, cast

from sluice_client.command_base.command import (
    WAIT,
    Argument,
    EachCommand,
    ListCommand,
    ShowCommand,
    SluiceCommand,
    names_argument,
)
from sluice_client.command_base.crud import ResourceCommand
from sluice_client.command_base.progress import Progress
from sluice_client.resources.columns import Column, Data
from sluice_client.rest.uploads import Uploads

MAIN: Final = Argument("--main", "the class to run, where the code has several", {"default": "", "metavar": "CLASS"})
_FILE: Final = Argument("code", "the code", {"metavar": "FILE"})
_TO: Final = Argument("file", "where to write it", {"metavar": "FILE"})
_REVISION: Final = Argument(
    "--revision", "one of the earlier revisions, by default the one before", {"type": int, "metavar": "NUMBER"}
)
_FORCE: Final = Argument("--force", "even while policies use it", {"action": "store_true"})


def upload_file(
    command: SluiceCommand, uploads: Uploads, name: str, path: str, wait: float = 0.0, main: str = ""
) -> Data:
    """Upload the file at ``path``; a terminal shows the progress."""
    with Path(path).open("rb") as file:
        if not command.app.stderr.isatty():
            return uploads.upload(name, file, wait, main=main)
        progress = Progress(file, command.app.stderr)
        try:
            # requests only reads, rewinds and measures a body
            return uploads.upload(name, cast(IO[bytes], progress), wait, main=main)
        finally:
            progress.end()


class CodeCommand(ResourceCommand):
    """A command for the uploaded code of a resource."""

    @property
    def code(self) -> Uploads:
        """The uploads of the resource."""
        return self.client.uploads(self.resource.path)


class UploadCode(CodeCommand, ShowCommand):
    """Uploads code, or another revision of it."""

    #: further options
    options: ClassVar[tuple[Argument, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.columns, cls.arguments = cls.resource.shown, (cls.resource.argument(), _FILE, *cls.options, WAIT)

    def fetch(self, args: Namespace) -> Data:
        """The item with its code."""
        return upload_file(self, self.code, self.key(args), args.code, args.wait, getattr(args, "main", ""))


class DownloadCode(CodeCommand, SluiceCommand):
    """Writes the code of the newest revision into a file."""

    def __init_subclass__(cls) -> None:
        cls.arguments = (cls.resource.argument(), _TO)

    def take_action(self, parsed_args: Namespace) -> int:
        """Called by cliff."""
        code = self.code.download(self.key(parsed_args))
        Path(parsed_args.file).write_bytes(code)
        self.app.stdout.write(f"{len(code)} bytes are in {parsed_args.file}\n")
        return 0


class RollBackCode(CodeCommand, ShowCommand):
    """Restores an earlier revision."""

    def __init_subclass__(cls) -> None:
        cls.columns, cls.arguments = cls.resource.shown, (cls.resource.argument(), _REVISION, WAIT)

    def fetch(self, args: Namespace) -> Data:
        """The item with its earlier code."""
        return self.code.roll_back(self.key(args), args.revision, args.wait)


class StartCode(CodeCommand, EachCommand):
    """Starts items."""

    def __init_subclass__(cls) -> None:
        cls.names = cls.resource.key
        cls.arguments = (names_argument(cls.resource.key, f"the {cls.resource.noun}"), WAIT)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Start one item."""
        return f"{self.resource.noun} {name} is started", self.code.start(name, args.wait)


class StopCode(CodeCommand, EachCommand):
    """Stops items."""

    #: whether it has ``--force``
    forcible: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        cls.names = cls.resource.key
        forced = (_FORCE,) if cls.forcible else ()
        cls.arguments = (names_argument(cls.resource.key, f"the {cls.resource.noun}"), *forced, WAIT)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Stop one item."""
        stopped = self.code.stop(name, args.wait, force=getattr(args, "force", False))
        return f"{self.resource.noun} {name} is stopped", stopped


class ListInstances(CodeCommand, ListCommand):
    """Lists the instances of an item."""

    instances: ClassVar[tuple[Column, ...]]

    def __init_subclass__(cls) -> None:
        cls.columns, cls.arguments = cls.instances, (cls.resource.argument(),)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The instances."""
        return self.code.instances(self.key(args))
