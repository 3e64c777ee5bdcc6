"""The upload, download, rollback, start, stop and instances commands of a resource with uploaded code.

They are used like those of ``crud``: a class of two lines, and a docstring, which is the command's help.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Final, TextIO, cast

from sluice_client.command_base.arguments import WAIT, Argument
from sluice_client.command_base.command import ListCommand, SluiceCommand
from sluice_client.command_base.crud import Arguments, EachResource, ResourceCommand, ShowResource, given_values
from sluice_client.resources.columns import Data
from sluice_client.rest.uploads import Uploads

_WIDTH: Final = 30
MAIN: Final = Argument("--main", "the class to run, where the code has several", {"default": "", "metavar": "CLASS"})
_FILE: Final = Argument("code", "the code", {"metavar": "FILE"})
_TO: Final = Argument("file", "where to write it", {"metavar": "FILE"})
_REVISION: Final = Argument(
    "--revision", "one of the earlier revisions, by default the one before", {"type": int, "metavar": "NUMBER"}
)


class Progress:
    """A file that shows on ``terminal`` how much of it has been read since its beginning.

    The first reading computes the digest and is not the upload, so nothing is shown before the first rewind.
    """

    def __init__(self, file: IO[bytes], terminal: TextIO) -> None:
        self._file = file
        self._terminal = terminal
        self._size = os.fstat(file.fileno()).st_size
        self._shown = ""
        self._begun = False

    def __len__(self) -> int:
        """Called for ``Content-Length``."""
        return self._size

    def __bool__(self) -> bool:
        """An empty file is a body, too."""
        return True

    def __iter__(self) -> Progress:
        """Called to check whether the object can be streamed."""
        return self

    def __next__(self) -> bytes:
        piece = self.read(1 << 16)
        if not piece:
            raise StopIteration
        return piece

    def tell(self) -> int:
        """Return the offset of the next read."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Rewind; later reads are the upload."""
        self._begun = True
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """Called by the HTTP library that sends it."""
        piece = self._file.read(size)
        if self._begun:
            self._show()
        return piece

    def end(self) -> None:
        """End the line, if there is one."""
        if self._shown:
            self._terminal.write("\n")
            self._terminal.flush()

    def _show(self) -> None:
        done = self._file.tell()
        share = done / self._size if self._size else 1.0
        line = f"\r[{'#' * int(share * _WIDTH):{_WIDTH}}] {share:4.0%} of {self._size} bytes"
        if line != self._shown:
            self._shown = line
            self._terminal.write(line)
            self._terminal.flush()


def upload_file(
    command: SluiceCommand, uploads: Uploads, name: str, path: str, wait: float = 0.0, main: str = ""
) -> Data:
    """Upload the file at ``path``; a terminal shows the progress."""
    with Path(path).open("rb") as file:
        if not command.app.stderr.isatty():
            return uploads.upload(name, file, wait, main=main)
        progress = Progress(file, command.app.stderr)
        try:
            # requests needs only read, rewind and length of a body
            return uploads.upload(name, cast(IO[bytes], progress), wait, main=main)
        finally:
            progress.end()


class CodeCommand(ResourceCommand):
    """A command for the uploaded code of a resource."""

    @property
    def code(self) -> Uploads:
        """The uploads of the resource."""
        return self.client.uploads(self.resource.path)


class UploadCode(CodeCommand, ShowResource):
    """Uploads code, or another revision of it."""

    arguments = (WAIT,)

    @classmethod
    def key_arguments(cls) -> Arguments:
        """The item, and the file."""
        return (*super().key_arguments(), _FILE)

    @classmethod
    def options(cls) -> Arguments:
        """The options of upload."""
        return cls.resource.upload_options

    def fetch(self, args: Namespace) -> Data:
        """The item with its code."""
        options = given_values(self.resource.upload_options, args)
        return upload_file(self, self.code, self.key(args), args.code, args.wait, **options)


class DownloadCode(CodeCommand):
    """Writes the code of the newest revision into a file."""

    arguments = (_TO,)

    def take_action(self, parsed_args: Namespace) -> int:
        """Called by cliff."""
        code = self.code.download(self.key(parsed_args))
        Path(parsed_args.file).write_bytes(code)
        self.app.stdout.write(f"{len(code)} bytes are in {parsed_args.file}\n")
        return 0


class RollBackCode(CodeCommand, ShowResource):
    """Rolls back to an earlier revision."""

    arguments = (_REVISION, WAIT)

    def fetch(self, args: Namespace) -> Data:
        """The item with its restored code."""
        return self.code.roll_back(self.key(args), args.revision, args.wait)


class StartCode(CodeCommand, EachResource):
    """Starts items."""

    arguments = (WAIT,)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Start one item."""
        return f"{self.resource.noun} {name} is started", self.code.start(name, args.wait)


class StopCode(CodeCommand, EachResource):
    """Stops items."""

    arguments = (WAIT,)

    @classmethod
    def options(cls) -> Arguments:
        """The options of stop."""
        return cls.resource.stop_options

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Stop one item."""
        options = given_values(self.resource.stop_options, args)
        return f"{self.resource.noun} {name} is stopped", self.code.stop(name, args.wait, **options)


class ListInstances(CodeCommand, ListCommand):
    """Lists the instances of an item, in columns that each class names."""

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The instances."""
        return self.code.instances(self.key(args))
