"""What the configuration of a node gives to templates that reach outside of the storage.

It is bound to the classes of templates once, when they are loaded (``templates.registry``), so that a motif holds
nothing but a keyword and parameters, and whoever makes a template needs to know neither hosts nor secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sluice_core.connections.url_allowlist import UrlAllowlist


@dataclass(frozen=True, slots=True)
class Remote:
    """A container of another Swift, and how to log in there.

    :param password: asked for at each login, so that it is kept nowhere; raises ``SluiceError`` when it cannot be had
    :param project: of Keystone; empty for Swift's own ``/auth/v1.0``, where ``username`` is ``account:user``
    """

    name: str
    auth_url: str
    username: str
    container: str
    password: Callable[[], str] = field(repr=False)
    project: str = ""
    user_domain: str = "default"
    project_domain: str = "default"
    region: str = ""


@dataclass(frozen=True, slots=True)
class TemplateContext:
    """
    :param hosts: those that may be called over HTTP
    :param remotes: by name
    """

    hosts: UrlAllowlist = field(default_factory=UrlAllowlist)
    remotes: Mapping[str, Remote] = field(default_factory=dict)
