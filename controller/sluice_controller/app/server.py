"""gunicorn around the API.

Only the master reads the command line; workers get the configuration file's path from the
environment and see no arguments.  The application is loaded after the fork, so that no connection
is ever shared between processes.  There is no control socket: the default one would be shared by
all gunicorns of a user.

The first worker whose application is loaded reports to the service manager that the API serves.  The
master's loop, which replaces workers that hang, sends the watchdog's signals.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import Any, Final

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from werkzeug.middleware.proxy_fix import ProxyFix

from sluice_controller.app.logs import logging_settings
from sluice_controller.config import CONFIG_VARIABLE, KEYSTONE, Config
from sluice_core.connections.service_manager import ServiceManager

_GIVEN = "HTTP_AUTHORIZATION"
_TOKEN = "HTTP_X_AUTH_TOKEN"  # noqa: S105 - the name of a header


class BearerToken:
    """``Authorization: Bearer TOKEN`` means the same as ``X-Auth-Token: TOKEN``, which wins if both are given.

    Every version of Prometheus can read the first one from a file, other headers only since 2.55.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Called by the server for each request."""
        scheme, _, token = environ.get(_GIVEN, "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            environ.setdefault(_TOKEN, token.strip())
        return self._app(environ, start_response)


#: The folder of prometheus_client's counters of several processes; read at its import, after the fork.
MULTIPROCESS: Final = "PROMETHEUS_MULTIPROC_DIR"
#: Seconds that running requests get when the server is stopped.
GRACE: Final = 5
SETTINGS_MODULE: Final = "sluice_controller.app.settings"
#: Longest request line in bytes: three names of Swift's lengths, all of it percent-encoded, and a query.
LONGEST_LINE: Final = 8190


class Server(BaseApplication):
    """One API with the processes and threads of ``config``."""

    def __init__(self, config: Config) -> None:
        self._config = config
        # Taken from the environment, since gunicorn itself would report that it serves before it has a worker.
        self._manager = ServiceManager.from_environment()
        super().__init__(prog="sluice-api")

    def load_config(self) -> None:
        """Called by gunicorn when it starts, and on SIGHUP."""
        for name, value in gunicorn_settings(self._config).items():
            self.cfg.set(name, value)
        self.cfg.set("post_worker_init", lambda worker: self._manager.ready())

    def load(self) -> Callable[..., Any]:
        """Called by gunicorn in each worker."""
        return load_application(self._config)

    def run(self) -> None:
        """Serve until SIGTERM."""
        WatchedArbiter(self, self._manager).run()


class WatchedArbiter(Arbiter):
    """gunicorn's master, whose loop sends the watchdog's signals."""

    def __init__(self, app: Server, manager: ServiceManager) -> None:
        self._manager = manager
        super().__init__(app)

    def murder_workers(self) -> None:
        """Called by gunicorn each second."""
        super().murder_workers()
        self._manager.alive()


def gunicorn_settings(config: Config) -> dict[str, Any]:
    """The settings that differ from gunicorn's defaults, and those that the environment could change."""
    return {
        "bind": config.bind,
        "workers": config.workers,
        "threads": config.threads,
        "worker_class": "sluice_controller.app.gunicorn_worker.Worker",
        "limit_request_line": LONGEST_LINE,
        "timeout": 60,
        "graceful_timeout": GRACE,
        "preload_app": False,
        "control_socket_disable": True,
        "loglevel": config.log_level,
        "proc_name": "sluice-api",
        "forwarded_allow_ips": "",
        "logconfig_dict": logging_settings(config.log_format, config.log_level),
        "on_starting": create_counter_folder,
        "post_fork": hide_arguments,
        "child_exit": keep_counters_of_worker,
        "on_exit": remove_counter_folder,
    }


def create_counter_folder(server: Any) -> None:
    """Called by gunicorn in the master before it forks: create the folder for the counters of all workers."""
    os.environ[MULTIPROCESS] = tempfile.mkdtemp(prefix="sluice-api-")


def keep_counters_of_worker(server: Any, worker: Any) -> None:
    """Called by gunicorn in the master when a worker has ended; keep its counters."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)


def remove_counter_folder(server: Any) -> None:
    """Called by gunicorn in the master at its end."""
    shutil.rmtree(os.environ.pop(MULTIPROCESS, ""), ignore_errors=True)


def hide_arguments(server: Any, worker: Any) -> None:
    """Called by gunicorn first in each worker: imported modules must not parse the arguments of `sluice-api`."""
    sys.argv = ["sluice-api"]


def load_application(config: Config) -> Callable[..., Any]:
    """The WSGI application with ``config``; once per process."""
    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS_MODULE
    os.environ[CONFIG_VARIABLE] = config.source
    from django.core.wsgi import get_wsgi_application  # after the settings are named

    application: Callable[..., Any] = get_wsgi_application()
    refuse_faulty_operations()  # this also loads the rules of all operations
    report_takeovers()
    if config.auth == KEYSTONE:
        from sluice_controller.api.permissions import load_rules
        from sluice_controller.identity.keystone import KeystoneMiddleware, read_conf

        application = KeystoneMiddleware(
            application,
            read_conf(config.keystone_source),
            load_rules(config.policy_file, config.operator_roles).is_admin,
        )
    application = BearerToken(application)
    if config.enable_proxy_headers_parsing:
        application = ProxyFix(application, x_host=1, x_prefix=1)
    return application


def refuse_faulty_operations() -> None:
    """Refuse to start with an operation whose rule is not declared, which would refuse every request.

    :raises ImproperlyConfigured: with its name; gunicorn ends if a worker does not start
    """
    from django.core.checks import run_checks
    from django.core.exceptions import ImproperlyConfigured

    found = run_checks(tags=["operations"])
    if found:
        raise ImproperlyConfigured("; ".join(str(one.msg) for one in found))


def report_takeovers() -> None:
    """Log the registered names that built-ins of this version have, too."""
    from sluice_controller.catalog.backend import current_backend
    from sluice_controller.registry import takeovers

    takeovers.report_takeovers(current_backend())
