"""Receives an upload over HTTP: streams it to a file, counts and hashes it, and keeps nothing unless all is right."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Final

from sluice_core.errors import CallerError

_CHUNK: Final = 1 << 16
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class DigestMismatch(CallerError):
    """What came is not what was announced."""

    status = 422


class CodeTooLarge(CallerError):
    """More code than this cluster takes."""

    status = 413


@contextmanager
def receive_upload(
    source: IO[bytes], size: int, announced: str, limit: int, what: str = "code"
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """SHA-256 and pieces of ``size`` bytes, which are all there and have the ``announced`` digest (empty: any).

    :raises CallerError: 413, 422, or 400 for a digest that is none, a body that ends early or an empty one
    """
    if announced and not _DIGEST.fullmatch(announced):
        raise CallerError(f"the announced digest is `{announced}`, expected SHA-256 in lower case hexadecimal")
    if size > limit:
        raise CodeTooLarge(f"the {what} has {size} bytes, expected at most {limit}")
    digest = hashlib.sha256()
    with tempfile.TemporaryFile() as kept:
        remaining = size
        while remaining:
            piece = source.read(min(_CHUNK, remaining))
            if not piece:
                raise CallerError(f"the body ended {remaining} bytes early")
            digest.update(piece)
            kept.write(piece)
            remaining -= len(piece)
        found = digest.hexdigest()
        if announced and announced != found:
            raise DigestMismatch(f"the {what} has SHA-256 `{found}`, announced was `{announced}`")
        if size == 0:
            raise CallerError(f"the body is empty, expected the {what}")
        kept.seek(0)
        yield found, iter(partial(kept.read, _CHUNK), b"")
