"""What the middleware before Django leaves in a request's environment.

Clients cannot: what they send arrives as ``HTTP_…``.
"""

from __future__ import annotations

from typing import Final

#: The :class:`sluice_controller.identity.caller.Identity` of a valid token.
IDENTITY: Final = "sluice.identity"
#: Why Keystone could not be asked, when it could not.
AWAY: Final = "sluice.keystone_away"
#: The challenge of a 401.
CHALLENGE: Final = "sluice.challenge"
