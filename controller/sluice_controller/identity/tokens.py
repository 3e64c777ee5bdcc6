"""The static admin token of a development machine (``auth = token``).

The file must be readable by its owner alone: whoever holds the token can change how all objects are stored.
"""

from __future__ import annotations

import hmac
import os
import stat
from functools import lru_cache

from sluice_core.options import OptionError

#: Shorter ones are guessed.
SHORTEST = 16


def read_token(path: str) -> bytes:
    """The token in the file at ``path``.

    :raises OptionError: when the file is missing, readable by others, empty or too short
    """
    try:
        with open(path, "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            token = file.read(4097).strip()
    except OSError as error:
        raise OptionError(f"token file `{path}` cannot be read: {error.strerror}") from error
    if mode & 0o077:
        raise OptionError(f"token file `{path}` has mode {mode:04o}, expected 0600: others may read it")
    if not SHORTEST <= len(token) <= 4096:
        raise OptionError(f"token file `{path}` holds {len(token)} characters, expected {SHORTEST} to 4096")
    return token


@lru_cache(maxsize=8)
def known_token(path: str) -> bytes:
    """The token of a running worker, read once."""
    return read_token(path)


def token_matches(given: str, expected: bytes) -> bool:
    """Whether ``given`` is the token, in a time that does not say how much of it is right."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected)
