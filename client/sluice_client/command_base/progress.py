"""How far an upload is, for whoever sits in front of it."""

from __future__ import annotations

import os
from typing import IO, Final, TextIO

_WIDTH: Final = 30


class Progress:
    """A file that shows on ``terminal`` how much of it was read since its beginning.

    Reading for the digest comes first and is not the upload, so nothing is shown before it was rewound once.
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
        """Called by whoever asks whether this can be streamed."""
        return self

    def __next__(self) -> bytes:
        piece = self.read(1 << 16)
        if not piece:
            raise StopIteration
        return piece

    def tell(self) -> int:
        """Where the next read begins."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Begin anew; from then on reading is uploading."""
        self._begun = True
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """Called by whoever sends it."""
        piece = self._file.read(size)
        if self._begun:
            self._show()
        return piece

    def end(self) -> None:
        """Leave the line behind, if there is one."""
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
