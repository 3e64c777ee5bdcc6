"""The caller of a request, in the form for the rest of the API, for both kinds of authentication.

The static admin token of a development machine (``auth = token``) is in a file that only its owner may read:
the token allows to change how all objects are stored.
"""

from __future__ import annotations

import hmac
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, Self

from sluice_core.options import OptionError


@dataclass(frozen=True, slots=True)
class Identity:
    """A user of Keystone within the scope of a token, or the holder of the static token.

    ``name`` is used in the log of changes: ``user@project``, or the user alone without a project.  ``project_id`` is
    empty for a token that is scoped to no project.  ``is_admin`` is the result of the rule ``admin``.
    """

    name: str
    user_id: str = ""
    project_id: str = ""
    project_name: str = ""
    roles: frozenset[str] = frozenset()
    is_admin: bool = False

    is_authenticated: ClassVar[bool] = True

    @classmethod
    def from_user(
        cls, user_id: str, user_name: str, project_id: str = "", project_name: str = "", roles: Iterable[str] = ()
    ) -> Self:
        """The identity of a user of Keystone; the rules decide whether it is an administrator."""
        scope = project_name or project_id
        name = f"{user_name or user_id}@{scope}" if scope else user_name or user_id
        # The name is used in logs and messages, where a line break would forge a further line.
        shown = "".join(one if one.isprintable() else "?" for one in name)
        return cls(shown, user_id, project_id, project_name, frozenset(roles))

    def credentials(self) -> dict[str, Any]:
        """The values for rules.  Unknown ones are missing: an empty project must not equal an empty project."""
        known = {"user_id": self.user_id, "project_id": self.project_id, "project_name": self.project_name}
        return {name: value for name, value in known.items() if value} | {"roles": sorted(self.roles)}


# Values that the middleware before Django puts into a request's environment; a client's headers are ``HTTP_…`` there.
#: The :class:`Identity` of a valid token.
IDENTITY: Final = "sluice.identity"
#: The reason why Keystone could not check a token.
AWAY: Final = "sluice.keystone_away"
#: The challenge of a 401.
CHALLENGE: Final = "sluice.challenge"

#: The holder of the static token.
ADMIN: Final = Identity("admin", roles=frozenset({"admin", "manager", "member", "reader"}), is_admin=True)
#: The least number of characters of the static token; shorter ones can be guessed.
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
        raise OptionError(f"token file `{path}` has mode {mode:04o}, expected 0600: other users may read it")
    if not SHORTEST <= len(token) <= 4096:
        raise OptionError(f"token file `{path}` holds {len(token)} characters, expected {SHORTEST} to 4096")
    return token


@lru_cache(maxsize=8)
def known_token(path: str) -> bytes:
    """The token of a running worker, read once."""
    return read_token(path)


def token_matches(given: str, expected: bytes) -> bool:
    """Whether ``given`` is the token, in a time that does not depend on how much of it is right."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected)
