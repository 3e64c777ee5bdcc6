"""``python horizon_program.py <folder> <port> <source roots as JSON>``: a whole Horizon, for one machine.

Run by the Python of Horizon's own virtual environment, in which Sluice is not installed; so this file imports
nothing of Sluice.  The folder holds the package ``local`` with the settings, and gets the output of ``collectstatic``
and ``compress``; Horizon's packages are not changed.  After making the output it restarts itself, because
``compress`` changes the templates in memory.

One worker process with threads: sessions are in its memory.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
THREADS = 8
#: Exists when the style sheets and scripts are complete.
READY = "made"


def configure(folder: Path, roots: list[str]) -> None:
    """Make ``openstack_dashboard.settings`` import this ``local`` before its own, and the panels."""
    sys.path[0:0] = [str(folder), *roots]
    os.environ["DJANGO_SETTINGS_MODULE"] = "openstack_dashboard.settings"


def make_static(folder: Path, static: Path) -> None:
    """Make the style sheets and scripts; remove those of other versions."""
    import django
    from django.core.management import call_command

    for old in folder.glob("static-*"):
        shutil.rmtree(old)
    django.setup()
    call_command("collectstatic", interactive=False, link=True, verbosity=0)
    call_command("compress", force=True, verbosity=0)
    (static / READY).touch()


def serve(static: Path, port: int) -> None:
    """Serve until a signal arrives."""
    from gunicorn.app.base import BaseApplication

    class Server(BaseApplication):  # type: ignore[misc, unused-ignore]
        """Horizon and its static files behind gunicorn."""

        def load_config(self) -> None:
            """Called once at the start."""
            options = {
                "bind": f"{HOST}:{port}",
                "workers": 1,
                "worker_class": "gthread",
                "threads": THREADS,
                "keepalive": 5,
                "control_socket_disable": True,
                "proc_name": "horizon",
            }
            for name, value in options.items():
                self.cfg.set(name, value)

        def load(self) -> Any:
            """Called in the worker."""
            from django.urls import get_resolver
            from openstack_dashboard.wsgi import application
            from whitenoise import WhiteNoise

            # discover dashboards and panels before there are threads: Horizon does it without a lock
            get_resolver()._populate()
            return WhiteNoise(application, root=str(static), prefix="static")

    sys.argv = ["horizon"]
    Server().run()


def main(folder: Path, port: int, roots: list[str]) -> None:
    """Make missing files, then serve until a signal arrives."""
    arguments = [sys.executable, *sys.orig_argv[1:]]
    os.umask(0o077)
    configure(folder, roots)
    from django.conf import settings

    static = Path(settings.STATIC_ROOT)
    if not (static / READY).exists():
        make_static(folder, static)
        os.execv(sys.executable, arguments)  # noqa: S606 - this program again
    serve(static, port)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]), json.loads(sys.argv[3]))
