"""What the guide takes for granted on a host with Horizon: /opt/horizon with settings, the unit that serves it."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Final

from tests.support.hosts.lab import Host, write_file

from sluice_aio.keystone import venv

_SETTINGS: Final = """\
DEBUG = False
WEBROOT = "/"
ALLOWED_HOSTS = ["controller"]
SECRET_KEY = "{secret}"
OPENSTACK_HOST = "controller"
OPENSTACK_KEYSTONE_URL = "http://controller:5000/v3"
OPENSTACK_KEYSTONE_DEFAULT_ROLE = "member"
SESSION_ENGINE = "django.contrib.sessions.backends.cache"
CACHES = {{"default": {{"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}}}
AVAILABLE_THEMES = [("default", "Default", "themes/default")]
SELECTABLE_THEMES = AVAILABLE_THEMES
STATIC_ROOT = "/var/lib/horizon/static"
COMPRESS_OFFLINE = True
"""
#: Sessions are in the memory of its only worker.
_UNIT: Final = """\
[Service]
Environment=DJANGO_SETTINGS_MODULE=openstack_dashboard.settings
ExecStart=/opt/horizon/bin/python -m gunicorn --bind controller:8000 --threads 4 openstack_dashboard.wsgi
"""
_LOCAL: Final = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/openstack_dashboard/local"


def environment() -> Path:
    """The folder of Horizon's virtual environment."""
    return venv.python(service="horizon").parents[1]


def write_horizon(host: Host) -> None:
    """The unit ``horizon`` and the settings of a host that is not started yet."""
    write_file(host, "/etc/systemd/system/horizon.service", _UNIT)
    write_file(host, "/etc/openstack-dashboard/local_settings.py", _SETTINGS.format(secret=secrets.token_hex(20)))


def add_environment(host: Host) -> None:
    """/opt/horizon of a host that runs, with its settings; what is installed into it stays in memory."""
    host.show(environment(), "/opt/horizon")
    host.run("cp", "/etc/openstack-dashboard/local_settings.py", f"/opt/horizon/{_LOCAL}/local_settings.py")
    host.run("mkdir", "-p", "/var/lib/horizon")
