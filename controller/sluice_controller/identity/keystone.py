"""The adapter to Keystone: its middleware in front of Django, and the session of Sluice's service user.

keystonemiddleware validates tokens, caches the results, and removes every identity header that a client sent.  It
lets requests without a valid token pass (``delay_auth_decision``), since ``/health`` needs none and the API's errors
are JSON with a request id.  By default it would also report an unreachable Keystone as an invalid token, and clients
would log in again.  :class:`KeystoneMiddleware` therefore marks such a request; a view that needs an identity then
answers 503 with Retry-After, and cached tokens still work.

The identity comes from Keystone's answer, not from the headers that the middleware derives from it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from keystoneauth1 import exceptions as ksa
from keystoneauth1 import loading, session
from keystonemiddleware import auth_token  # type: ignore[import-untyped]
from oslo_config import cfg

from sluice_controller.config import split_source
from sluice_controller.identity.caller import AWAY, CHALLENGE, IDENTITY, Identity

log = logging.getLogger(__name__)

SECTION: Final = "keystone_authtoken"
#: Shorter waits than keystonemiddleware's defaults, which are too long for an API; the file may override them.
DEFAULTS: Final = {
    "token_cache_time": 60,
    "http_connect_timeout": 5,
    "http_request_max_retries": 1,
    "service_type": "sluice",
}


class KeystoneUnreachable(Exception):
    """Keystone does not answer, or its answer is not valid."""


class KeystoneMiddleware(auth_token.AuthProtocol):
    """keystonemiddleware's ``auth_token`` around the WSGI application ``app``.

    :param is_admin: returns whether an identity is an administrator
    """

    def __init__(self, app: Callable[..., Any], conf: cfg.ConfigOpts, is_admin: Callable[[Identity], bool]) -> None:
        super().__init__(app, {"oslo_config_config": conf, "delay_auth_decision": True})
        self._is_admin = is_admin
        self._challenge = f'Keystone uri="{conf[SECTION].www_authenticate_uri or auth_url(conf)}"'

    def fetch_token(self, token: str, **kwargs: Any) -> Any:
        """Called by keystonemiddleware for each token.

        :raises KeystoneUnreachable: when Keystone could not be asked, instead of reporting an invalid token
        """
        try:
            return super().fetch_token(token, **kwargs)
        except ksa.ClientException as error:
            raise KeystoneUnreachable(type(error).__name__) from error
        except auth_token.InvalidToken as error:
            cause = error.__context__
            if isinstance(cause, ksa.ClientException | auth_token.ServiceError) and not isinstance(cause, ksa.NotFound):
                raise KeystoneUnreachable(type(cause).__name__) from error
            raise

    def process_request(self, request: Any) -> Any:
        """Called by keystonemiddleware for each request, before the application."""
        request.environ[CHALLENGE] = self._challenge
        try:
            answer = super().process_request(request)
        except KeystoneUnreachable as error:
            log.debug("a token could not be validated: %s", error)
            request.user_token_valid = False
            request.environ[AWAY] = "keystone is unreachable, so the token cannot be checked"
            return None
        if request.user_token_valid and request.headers.get("X-Service-Identity-Status", "Confirmed") == "Confirmed":
            request.environ[IDENTITY] = self._identity(request.token_auth.user)
        return answer

    def process_response(self, response: Any) -> Any:
        """Called by keystonemiddleware with the application's answer, which has its challenge already."""
        return response

    def _identity(self, user: Any) -> Identity:
        identity = Identity.from_user(
            user.user_id, user.username, user.project_id or "", user.project_name or "", user.role_names
        )
        if not self._is_admin(identity):
            return identity
        return Identity(
            identity.name, identity.user_id, identity.project_id, identity.project_name, identity.roles, is_admin=True
        )


def read_conf(source: str) -> cfg.ConfigOpts:
    """The options of ``[keystone_authtoken]`` in the files of ``source``, as in PATH, with Sluice's defaults.

    :raises oslo_config.cfg.Error: when one cannot be read
    :raises keystoneauth1.exceptions.ClientException: when the login plugin does not exist
    """
    conf = cfg.ConfigOpts()
    conf([], project="sluice", default_config_files=split_source(source), default_config_dirs=[])
    for group, options in auth_token.list_opts():
        conf.register_opts(options, group=group)
    for name, value in DEFAULTS.items():
        conf.set_default(name, value, group=SECTION)
    loading.register_auth_conf_options(conf, SECTION)
    conf.register_opts(loading.get_auth_plugin_conf_options(conf[SECTION].auth_type or "password"), group=SECTION)
    return conf


def auth_url(conf: cfg.ConfigOpts) -> str:
    """The URL of Keystone."""
    return str(conf[SECTION].auth_url or "")


def service_plugin(conf: cfg.ConfigOpts, **changes: str | None) -> Any:
    """The login plugin of the service user; ``changes`` override the options of the file.

    :raises keystoneauth1.exceptions.ClientException: when an option is missing
    """
    found: Any = loading.get_plugin_loader(conf[SECTION].auth_type or "password")
    return found.load_from_options_getter(
        lambda option: changes[option.dest] if option.dest in changes else conf[SECTION][option.dest]
    )


def system_session(conf: cfg.ConfigOpts) -> session.Session:
    """A session of the service user with system scope, which may read all projects."""
    nothing = dict.fromkeys(
        ("project_id", "project_name", "project_domain_id", "project_domain_name", "default_domain_id")
    )
    plugin = service_plugin(conf, **nothing, system_scope="all")
    return open_session(conf, conf[SECTION].http_connect_timeout, plugin)


def open_session(conf: cfg.ConfigOpts, timeout: float, plugin: Any = None) -> session.Session:
    """A session with the TLS options of the section; each request has ``timeout`` seconds.

    :param plugin: the login plugin; None for requests without a token
    """
    section = conf[SECTION]
    return loading.session.Session().load_from_options(
        auth=plugin,
        cert=section.certfile,
        key=section.keyfile,
        cacert=section.cafile,
        insecure=section.insecure,
        timeout=timeout,
    )
