"""Who asks: the holder of the admin token, or nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from django.conf import settings
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from sluice_controller.tokens import known_token, matches


@dataclass(frozen=True, slots=True)
class Identity:
    """What the rest of the API knows of whoever asks."""

    name: str
    is_authenticated: ClassVar[bool] = True


ADMIN = Identity("admin")


class TokenAuthentication(BaseAuthentication):
    """``X-Auth-Token`` against the token of ``token_file``."""

    def authenticate(self, request: Request) -> tuple[Identity, None] | None:
        """Called by REST framework for each request; None lets the permission answer 401."""
        given = request.headers.get("X-Auth-Token")
        if given is None:
            return None
        if not matches(given, known_token(settings.SLUICE.token_file)):
            raise AuthenticationFailed("`X-Auth-Token` is not the admin token")
        return ADMIN, None

    def authenticate_header(self, request: Request) -> str:
        """The challenge of a 401."""
        return 'X-Auth-Token realm="sluice"'
