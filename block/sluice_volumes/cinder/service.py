"""The cluster's Cinder: with the rights of the service user, and with those of callers.

:meth:`CinderService.as_caller` is for requests that Cinder shall decide by its own rules.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from keystoneauth1 import token_endpoint
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from sluice_core.errors import PeerError
from sluice_core.options import Option, OptionError
from sluice_volumes.cinder.adapter import SERVICE, Cinder

#: Options of the processes that use Cinder; an empty ``cinder_auth_url`` disables it.
OPTIONS: Final = (
    Option("cinder_auth_url", "", "Keystone's /v3, where the service user of volumes logs in; empty: no volumes"),
    Option(
        "cinder_user",
        "",
        "that user, as project:user or domain id/project:user; it needs the role `admin`, since it sees all volumes",
    ),
    Option("cinder_password_file", "", "file with that user's password; mode 0600"),
    Option("cinder_region", "", "region of Cinder in Keystone's catalogue; empty: any"),
    Option("cinder_url", "", "Cinder's URL without a project, as http://cinder:8776/v3; empty: Keystone's catalogue"),
    Option("konnector_ca_file", "", "certificates that those of konnectors are signed by; empty: those of the system"),
)
_DOMAIN: Final = "default"


@dataclass(frozen=True, slots=True)
class CinderSettings:
    """The service user of volumes, and the addresses of Keystone and Cinder."""

    auth_url: str
    user: str
    project: str
    password: str = field(repr=False)
    domain: str = _DOMAIN
    region: str = ""
    url: str = ""
    konnector_ca_file: str = ""

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self | None:
        """Return the settings in the values of :data:`OPTIONS`; None when none are configured.

        :raises OptionError: when the password cannot be read, or the user has another form
        """
        if not values["cinder_auth_url"]:
            return None
        name = values["cinder_user"]
        domain, slash, rest = name.rpartition("/")
        project, colon, user = rest.partition(":")
        if not (project and colon and user) or (slash and not domain):
            raise OptionError(f"option `cinder_user`: `{name}`, expected project:user or domain id/project:user")
        path = values["cinder_password_file"]
        try:
            password = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"option `cinder_password_file`: cannot read `{path}`: {error}") from error
        return cls(
            values["cinder_auth_url"], user, project, password, domain or _DOMAIN, values["cinder_region"],
            values["cinder_url"].rstrip("/"), values["konnector_ca_file"],
        )  # fmt: skip


def service_session(settings: CinderSettings, timeout: float) -> Session:
    """Return a session of the service user; it logs in at its first use.

    :param timeout: seconds for an answer
    """
    auth = v3.Password(
        auth_url=settings.auth_url,
        username=settings.user,
        password=settings.password,
        project_name=settings.project,
        user_domain_id=settings.domain,
        project_domain_id=settings.domain,
    )
    return Session(auth=auth, timeout=timeout)


#: Seconds for an answer; Cinder makes an export while an attachment is created.
TIMEOUT: Final = 30.0


class CinderService(Cinder):
    """Cinder with the rights of the service user; the constructor does not connect."""

    def __init__(self, settings: CinderSettings, timeout: float = TIMEOUT) -> None:
        self._settings = settings
        self._timeout = timeout
        self._lock = threading.Lock()
        self._root = settings.url
        options = {"region_name": settings.region} if settings.region else {}
        if settings.url:
            options["endpoint_override"] = f"{settings.url}/%(project_id)s"
        super().__init__(service_session(settings, timeout), **options)

    def as_caller(self, token: str, project: str) -> Cinder:
        """Return Cinder with the rights of a caller.

        :param project: the id of the project that the token is for
        :raises PeerError: when Keystone's catalogue has no Cinder
        """
        url = f"{self._url()}/{project}"
        return Cinder(Session(auth=token_endpoint.Token(url, token), timeout=self._timeout), endpoint_override=url)

    def _url(self) -> str:
        """Return Cinder's URL without a project."""
        with self._lock:
            if not self._root:
                with self._asking("looking for cinder"):
                    endpoint = self._session.get_endpoint(
                        service_type=SERVICE, region_name=self._settings.region or None
                    )
                    own = self._session.get_project_id()
                if not endpoint:
                    self._session.invalidate()  # the catalogue came with the token
                    raise PeerError("keystone's catalogue names no cinder (`volumev3`) to our service user")
                self._root = endpoint.rstrip("/").removesuffix(f"/{own}")
            return self._root
