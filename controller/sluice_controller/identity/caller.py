"""Who asks: what the rest of the API knows of it, whoever vouched for it.

The static admin token of a development machine (``auth = token``) lies in a file that must be readable by its owner
alone: whoever holds the token can change how all objects are stored.
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

    ``name`` stands in the audit: ``user@project``, or the user alone without a project.  ``project_id`` is empty for
    a token that is scoped to no project.  ``is_admin`` says whether the rule ``admin`` holds.
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
        """The identity of a user of Keystone; whether it is an administrator is the rules' to say."""
        scope = project_name or project_id
        name = f"{user_name or user_id}@{scope}" if scope else user_name or user_id
        # it goes into logs and messages, where a line break would begin a line that nobody wrote
        shown = "".join(one if one.isprintable() else "?" for one in name)
        return cls(shown, user_id, project_id, project_name, frozenset(roles))

    def credentials(self) -> dict[str, Any]:
        """As rules see it.  What is not known is not there: an empty project must not equal an empty project."""
        known = {"user_id": self.user_id, "project_id": self.project_id, "project_name": self.project_name}
        return {name: value for name, value in known.items() if value} | {"roles": sorted(self.roles)}


# What the middleware before Django leaves in a request's environment; what clients send arrives as ``HTTP_…``.
#: The :class:`Identity` of a valid token.
IDENTITY: Final = "sluice.identity"
#: Why Keystone could not be asked, when it could not.
AWAY: Final = "sluice.keystone_away"
#: The challenge of a 401.
CHALLENGE: Final = "sluice.challenge"

#: The holder of the static token.
ADMIN: Final = Identity("admin", roles=frozenset({"admin", "manager", "member", "reader"}), is_admin=True)
#: Characters of the static token; shorter ones are guessed.
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
