"""gunicorn around the API.

Only the master reads the command line; workers get the configuration file's path from the
environment and see no arguments.  The application is loaded after the fork, so that no connection
is ever shared between processes.  There is no control socket: the default one would be shared by
all gunicorns of a user.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final

from gunicorn.app.base import BaseApplication

from sluice_controller.config import CONFIG_VARIABLE, Config

#: Seconds that requests under way get when the server is stopped.
GRACE: Final = 5
SETTINGS_MODULE: Final = "sluice_controller.settings"


class Server(BaseApplication):
    """One API with the processes and threads of ``config``."""

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(prog="sluice-api")

    def load_config(self) -> None:
        """Called by gunicorn when it starts, and on SIGHUP."""
        for name, value in gunicorn_settings(self._config).items():
            self.cfg.set(name, value)

    def load(self) -> Callable[..., Any]:
        """Called by gunicorn in each worker."""
        return load_application(self._config)


def gunicorn_settings(config: Config) -> dict[str, Any]:
    """Everything that differs from gunicorn's defaults, or that its environment could change."""
    return {
        "bind": config.bind,
        "workers": config.workers,
        "threads": config.threads,
        "worker_class": "gthread",
        "timeout": 60,
        "graceful_timeout": GRACE,
        "preload_app": False,
        "control_socket_disable": True,
        "loglevel": config.log_level,
        "proc_name": "sluice-api",
        "forwarded_allow_ips": "",
        "post_fork": hide_arguments,
    }


def hide_arguments(server: Any, worker: Any) -> None:
    """Called by gunicorn in each worker first: what is imported there finds no arguments of ours."""
    sys.argv = ["sluice-api"]


def load_application(config: Config) -> Callable[..., Any]:
    """The WSGI application with ``config``; once per process."""
    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS_MODULE
    os.environ[CONFIG_VARIABLE] = config.source
    from django.core.wsgi import get_wsgi_application  # after the settings are named

    application: Callable[..., Any] = get_wsgi_application()
    return application
