"""Who asks: what the rest of the API knows of it, whoever vouched for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self


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
