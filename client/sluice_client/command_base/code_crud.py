"""The commands that every kind of uploaded code has, made from the resource that it is the code of.

They are used like those of ``standard``: a class of two lines, and a docstring, which is the command's help.
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
    several,
)
from sluice_client.command_base.crud import Standard
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


def bring(command: SluiceCommand, uploads: Uploads, name: str, path: str, wait: float = 0.0, main: str = "") -> Data:
    """Upload the file at ``path``; a terminal sees how far it is."""
    with Path(path).open("rb") as file:
        if not command.app.stderr.isatty():
            return uploads.upload(name, file, wait, main=main)
        progress = Progress(file, command.app.stderr)
        try:
            # all that is asked of a body is that it can be read, rewound and measured
            return uploads.upload(name, cast(IO[bytes], progress), wait, main=main)
        finally:
            progress.end()


class _Coded(Standard):
    """A command about the code of a resource."""

    @property
    def code(self) -> Uploads:
        """Where it is."""
        return self.client.uploads(self.resource.path)


class UploadIt(_Coded, ShowCommand):
    """Brings code, or another revision of it."""

    #: what can be said of code beside where it is
    options: ClassVar[tuple[Argument, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.columns, cls.arguments = cls.resource.shown, (cls.resource.argument(), _FILE, *cls.options, WAIT)

    def fetch(self, given: Namespace) -> Data:
        """The thing with its code."""
        return bring(self, self.code, self.key(given), given.code, given.wait, getattr(given, "main", ""))


class DownloadIt(_Coded, SluiceCommand):
    """Writes the code of the newest revision into a file."""

    def __init_subclass__(cls) -> None:
        cls.arguments = (cls.resource.argument(), _TO)

    def take_action(self, parsed_args: Namespace) -> int:
        """Called by cliff."""
        code = self.code.download(self.key(parsed_args))
        Path(parsed_args.file).write_bytes(code)
        self.app.stdout.write(f"{len(code)} bytes are in {parsed_args.file}\n")
        return 0


class RollBackIt(_Coded, ShowCommand):
    """Goes back to an earlier revision."""

    def __init_subclass__(cls) -> None:
        cls.columns, cls.arguments = cls.resource.shown, (cls.resource.argument(), _REVISION, WAIT)

    def fetch(self, given: Namespace) -> Data:
        """The thing with its earlier code."""
        return self.code.roll_back(self.key(given), given.revision, given.wait)


class StartThem(_Coded, EachCommand):
    """Lets some run."""

    def __init_subclass__(cls) -> None:
        cls.names = cls.resource.key
        cls.arguments = (several(cls.resource.key, f"the {cls.resource.noun}"), WAIT)

    def each(self, name: str, given: Namespace) -> tuple[str, Any]:
        """Start one."""
        return f"{self.resource.noun} {name} is started", self.code.start(name, given.wait)


class StopThem(_Coded, EachCommand):
    """Lets some run no more."""

    #: whether it can be insisted on
    forcible: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        cls.names = cls.resource.key
        forced = (_FORCE,) if cls.forcible else ()
        cls.arguments = (several(cls.resource.key, f"the {cls.resource.noun}"), *forced, WAIT)

    def each(self, name: str, given: Namespace) -> tuple[str, Any]:
        """Stop one."""
        stopped = self.code.stop(name, given.wait, force=getattr(given, "force", False))
        return f"{self.resource.noun} {name} is stopped", stopped


class ListInstances(_Coded, ListCommand):
    """Lists where one runs."""

    instances: ClassVar[tuple[Column, ...]]

    def __init_subclass__(cls) -> None:
        cls.columns, cls.arguments = cls.instances, (cls.resource.argument(),)

    def fetch(self, given: Namespace) -> Iterable[Data]:
        """All of them."""
        return self.code.instances(self.key(given))
