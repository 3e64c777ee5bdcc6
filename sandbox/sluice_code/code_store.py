"""Uploaded code on one node: a folder of immutable files named by their SHA-256.

Code is verified when it is added and whenever it is read, so the code that runs is the registered code, whatever
happened to the folder.  A file whose bytes do not match its name is removed; it can only be fetched again.  The folder
belongs to the process that fills it (0755, files 0444); readers need no write permission.

Native code is used only after a trial on this node (``sluice_code.native_trial``).  An empty file beside the
code, its *mark*, records a passed trial.  A mark is independent of the process that made it: a restarted node continues
with the code that it could run before.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from sluice_core.errors import CallerError, NotFound, PeerError

#: Larger code is refused: nodes keep it in memory.
MAX_CODE: Final = 64 * 1024 * 1024
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class BadUpload(CallerError):
    """Uploaded code, or its registration, that cannot be used."""


class WrongDigest(CallerError):
    """The bytes are not those that were registered."""


class CodeStore:
    """The code files of one node."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def add(self, source: bytes | Iterable[bytes], sha256: str) -> Path:
        """Store the code in ``source`` under its name, as a whole or not at all.

        :raises WrongDigest: when it is not the code of that name; nothing is stored
        """
        path = self.path(sha256)
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        digest = hashlib.sha256()
        handle, name = tempfile.mkstemp(prefix=".new-", dir=self.folder)
        try:
            with os.fdopen(handle, "wb") as file:
                for piece in (source,) if isinstance(source, bytes) else source:
                    digest.update(piece)
                    file.write(piece)
                    if file.tell() > MAX_CODE:
                        raise BadUpload(f"code of more than {MAX_CODE} bytes")
                if digest.hexdigest() != sha256:
                    raise WrongDigest(f"code has SHA-256 `{digest.hexdigest()}`, expected `{sha256}`")
                os.fchmod(file.fileno(), 0o444)
                file.flush()
                os.fsync(file.fileno())
            Path(name).rename(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        return path

    def path(self, sha256: str) -> Path:
        """The path of the code of that name, whether or not it exists.

        :raises BadUpload: when it is not a SHA-256 in lower case hexadecimal
        """
        if not _DIGEST.fullmatch(sha256):
            raise BadUpload(f"`{sha256}` is no SHA-256")
        return self.folder / sha256

    def has(self, sha256: str) -> bool:
        """Whether the code is stored here; it may still be damaged."""
        path = self.path(sha256)
        try:
            return path.is_file()
        except OSError:
            return False

    def mark_proven(self, sha256: str, kind: str, main: str = "") -> None:
        """Record that the class ``main`` of this code passed its trial here, as code of that kind.

        :raises OSError: when the mark cannot be written
        """
        self._mark(sha256, kind, main).touch(mode=0o444)

    def unmark_proven(self, sha256: str, kind: str, main: str = "") -> None:
        """Remove the mark: the node's software changed, and the trial fails now."""
        self._mark(sha256, kind, main).unlink(missing_ok=True)

    def is_proven(self, sha256: str, kind: str, main: str = "") -> bool:
        """Whether this code is stored here and passed its trial."""
        return self.has(sha256) and self._mark(sha256, kind, main).exists()

    def _mark(self, sha256: str, kind: str, main: str) -> Path:
        words = hashlib.sha256(f"{kind}/{main}".encode()).hexdigest()[:16]  # a class may have any name
        return self.path(sha256).with_name(f"{sha256}.proven-{words}")

    def read(self, sha256: str) -> bytes:
        """Return the code of that name, verified.

        :raises NotFound: when it is not here
        :raises WrongDigest: when the file has other content; it is removed
        :raises PeerError: when it cannot be read
        """
        path = self.path(sha256)
        try:
            code = path.read_bytes()
        except FileNotFoundError as error:
            raise NotFound(f"code `{sha256}` is not on this node") from error
        except OSError as error:
            raise PeerError(f"code `{sha256}` cannot be read on this node: {error.strerror}") from error
        actual = hashlib.sha256(code).hexdigest()
        if actual != sha256:
            path.unlink(missing_ok=True)
            raise WrongDigest(f"code `{sha256}` has SHA-256 `{actual}` on this node, and was removed")
        return code
