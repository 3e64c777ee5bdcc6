"""The configuration of Horizon: its settings, and the place of this clone's panels."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sluice_aio.base.files import ensure_secret
from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import HOST
from sluice_aio.errors import LaunchError

_PROGRAM: Final = Path(__file__).with_name("horizon_program.py")
_CLONE: Final = Path(__file__).resolve().parents[3]
_PLUGIN: Final = _CLONE / "horizon_plugin"
#: Source roots that Horizon imports from: the panels, and their client.
ROOTS: Final = (_PLUGIN, _CLONE / "client")
#: The sources of the compressed style sheets and scripts, besides Horizon itself.
_SOURCES: Final = (".css", ".html", ".js", ".py", ".scss")

#: As if the plugin's files were copied to Horizon's folders; the second folder of enabled files is the launcher's.
_PANELS: Final = """\
import sluice_dashboard as _sluice_dashboard
from openstack_dashboard.local import enabled as _enabled

_plugin = _pathlib.Path(_sluice_dashboard.__file__).parent
_enabled.__path__.extend([str(_plugin / "enabled"), _given["enabled"]])
for _snippet in sorted((_plugin / "local_settings.d").glob("_*.py")):
    exec(_snippet.read_text(encoding="utf-8"))
"""
#: ``openstack_dashboard.settings`` imports this; missing settings have Horizon's own default.
_SETTINGS: Final = """\
# all names without `_` become Horizon's settings
import pathlib as _pathlib

_given = {given!r}
{panels}
DEBUG = False
WEBROOT = "/"
ALLOWED_HOSTS = [_given["host"]]
SECRET_KEY = _pathlib.Path(_given["secret"]).read_text(encoding="ascii")
OPENSTACK_HOST = _given["host"]
OPENSTACK_KEYSTONE_URL = _given["keystone"]
OPENSTACK_KEYSTONE_DEFAULT_ROLE = "member"
# shorter than a token lives, so that it is the session that ends when nobody clicks
SESSION_TIMEOUT = 1800
SESSION_ENGINE = "django.contrib.sessions.backends.cache"
CACHES = {{
    "default": {{
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {{"MAX_ENTRIES": 10000}},
    }}
}}
# what is compressed offline has the colours of the first; all others build on `default`
_themes = dict.fromkeys([_given["theme"], "default"])
AVAILABLE_THEMES = [(_name, _name.title(), "themes/" + _name) for _name in _themes]
SELECTABLE_THEMES = AVAILABLE_THEMES[:1]
DEFAULT_THEME = _given["theme"]
STATIC_ROOT = _given["static"]
COMPRESS_OFFLINE = True
LOGGING = {{
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {{"line": {{"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}}}},
    "handlers": {{"console": {{"class": "logging.StreamHandler", "formatter": "line"}}}},
    "root": {{"handlers": ["console"], "level": "INFO"}},
}}
"""

#: Without Nova, Horizon's own first page is empty.
_ENABLED: Final = '''\
"""Whoever logs in sees our pages first."""


def _home(user):
    from django.urls import reverse

    dashboard = "sluice" if user.is_superuser else "sluice_project"
    return reverse(f"horizon:{dashboard}:overview:index")


FEATURE = "sluice_home"
UPDATE_HORIZON_CONFIG = {"user_home": _home}
'''


def folder(layout: Layout) -> Path:
    """Its settings, its style sheets and scripts."""
    return layout.data / "horizon"


def write_horizon(layout: Layout, panels: bool = True, theme: str = "default") -> None:
    """Write the settings, and the secret that signs sessions, which is generated at the first call.

    :param panels: whether it has those of this clone; otherwise those installed in its environment
    :param theme: one that Horizon ships: ``default`` or ``material``
    :raises LaunchError: outside of a clone
    """
    if not _PLUGIN.is_dir():
        raise LaunchError(f"`{_PLUGIN}` is not there: Horizon is started out of a clone")
    home = folder(layout)
    enabled = home / "enabled"
    for made in (home / "local", enabled):
        made.mkdir(parents=True, exist_ok=True)
    ensure_secret(home / "secret", secrets.token_urlsafe(48).encode())
    given = {
        "host": HOST,
        "keystone": layout.keystone_url,
        "secret": str(home / "secret"),
        "enabled": str(enabled),
        "static": str(home / f"static-{theme}-{_digest()}"),
        "theme": theme,
    }
    (home / "local" / "__init__.py").touch()
    (home / "local" / "local_settings.py").write_text(
        _SETTINGS.format(given=given, panels=_PANELS if panels else ""), encoding="utf-8"
    )
    (enabled / "_9990_sluice_home.py").write_text(_ENABLED, encoding="utf-8")


def command(layout: Layout, python: Path, roots: Sequence[Path] = ROOTS) -> list[str]:
    """Its command line.

    :param python: of Horizon's environment
    :param roots: additional source roots
    """
    given = [str(folder(layout)), str(layout.ports["horizon"]), json.dumps([str(root) for root in roots])]
    # isolated: files of the present folder and of this environment must not be imported
    return [str(python), "-I", str(_PROGRAM), *given]


def _digest() -> str:
    """A value that changes with every source of the compressed files."""
    seen = hashlib.sha256((_CLONE / "devstack" / "horizon-constraints.txt").read_bytes())
    seen.update((_PANELS + _SETTINGS).encode())
    for path in sorted(_PLUGIN.rglob("*")):
        if path.suffix in _SOURCES and path.is_file():
            seen.update(str(path.relative_to(_PLUGIN)).encode())
            seen.update(path.read_bytes())
    return seen.hexdigest()[:12]
