"""The available templates, and the hosts that they may reach, by the options of the process that runs them.

Sluice's own are in one literal list, others come by the entry point group ``sluice.motif_templates``.  A template that
cannot be loaded is reported and left out.

Other clusters are in a file of their own, a section each, whose name is the one in motifs::

    [backup-site]
    auth_url = https://keystone.example/v3
    user = project:user
    password = identifier of the password
    container = sluice-copies

The file has no secrets: passwords are named, and stored in a password file or a key manager.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from sluice_code.plugins import load_plugins
from sluice_core.connections.swift_account import SwiftAccount
from sluice_core.connections.url_allowlist import BadUrl, UrlAllowlist, http_host
from sluice_core.describe import MOTIF, ActionInfo
from sluice_core.errors import CallerError
from sluice_core.options import Option, OptionError, read_options
from sluice_filters.encryption.keys.options import Passwords, open_passwords
from sluice_motifs.api import (
    PRESERVING,
    RELATIONS,
    RESOURCES,
    Remote,
    Template,
    TemplateContext,
    UploadedFilter,
    no_filter,
)
from sluice_motifs.templates.compressed import Compressed
from sluice_motifs.templates.concat import Concat
from sluice_motifs.templates.decompressed import Decompressed
from sluice_motifs.templates.derive import Derive
from sluice_motifs.templates.duplicate_of import DuplicateOf
from sluice_motifs.templates.remote_copy import RemoteCopy
from sluice_motifs.templates.tier import Tier
from sluice_motifs.templates.url import Url

GROUP: Final = "sluice.motif_templates"

BUILT_IN: Final[tuple[type[Template], ...]] = (
    Concat,
    DuplicateOf,
    Derive,
    Compressed,
    Decompressed,
    Url,
    RemoteCopy,
    Tier,
)
PREFIX: Final = "motif_"
OPTIONS: Final = (
    Option("motif_url_hosts", "", "hosts that the template url may call: names, addresses, networks between commas"),
    Option("motif_remotes", "", "file that names other Swifts for the template remote_copy; empty: none"),
    Option("motif_password_file", "", "file with the passwords of these; mode 0600"),
    Option("motif_key_manager_conf", "", "castellan configuration that names the passwords of these; mode 0600"),
)
_REMOTE: Final = (
    Option("auth_url", "", "URL of the token service: Swift's v1, or Keystone's /v3"),
    Option("user", "", "of Swift; of Keystone project:user, or domain id/project:user"),
    Option("password", "", "identifier of the password"),
    Option("container", "", "container of the copies; it must exist"),
)


def load_templates(
    failures: dict[str, str] | None = None, context: TemplateContext | None = None
) -> dict[str, type[Template]]:
    """Every usable template by its keyword, Sluice's own first.

    :param context: the configuration of external hosts; by default no host may be called
    :param failures: receives the reason of each plugin that was left out, by the entry point's name
    """
    found = load_plugins(GROUP, BUILT_IN, lambda one: one.info.keyword, unfit, failures)
    return found if context is None else {keyword: one.configured(context) for keyword, one in found.items()}


def unfit(plugin: object) -> str:
    """Return why a plugin cannot be used; empty when it can."""
    if not (isinstance(plugin, type) and issubclass(plugin, Template)):
        return f"`{plugin!r}` is not a subclass of Template"
    info = getattr(plugin, "info", None)
    if not isinstance(info, ActionInfo) or info.kind != MOTIF:
        return f"it has no `info` of the kind `{MOTIF}`"
    if info.keyword != info.keyword.lower():
        return f"keyword `{info.keyword}` is not in lower case"
    if plugin.relation not in RELATIONS or plugin.resource not in RESOURCES:
        return f"relation `{plugin.relation}` or resource `{plugin.resource}` is unknown"
    if plugin.relation == PRESERVING and not (plugin.exact and plugin.keeps_copy):
        return "a preserving template must be exact and keep a copy"
    return ""


def template_context(values: Mapping[str, Any], uploaded_filter: UploadedFilter = no_filter) -> TemplateContext:
    """Build the context from the values of :data:`OPTIONS`.

    :param uploaded_filter: as of ``TemplateContext``
    :raises OptionError: when they cannot be used
    """
    try:
        hosts = UrlAllowlist.from_option(values["motif_url_hosts"])
    except BadUrl as error:
        raise OptionError(f"option `motif_url_hosts`: {error}") from error
    try:
        passwords = open_passwords(values, PREFIX)
    except CallerError as error:
        raise OptionError(str(error)) from error
    path = values["motif_remotes"]
    return TemplateContext(hosts, _read_remotes(path, passwords) if path else {}, uploaded_filter)


def _read_remotes(path: str, passwords: Passwords) -> dict[str, Remote]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except (OSError, configparser.Error, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise OptionError(f"option `motif_remotes`: cannot read `{path}`: {reason}") from error
    return {name: _remote(dict(parser[name]), f"`{path}` [{name}]", passwords) for name in parser.sections()}


def _remote(given: Mapping[str, str], where: str, passwords: Passwords) -> Remote:
    values = read_options(_REMOTE, given, where)
    missing = [name for name, value in values.items() if not value]
    if missing:
        raise OptionError(f"{where}: option `{missing[0]}` is missing")
    try:
        http_host(values["auth_url"])
    except BadUrl as error:
        raise OptionError(f"{where}: option `auth_url`: {error}") from error
    password = partial(passwords, values["password"])
    return Remote(SwiftAccount(values["auth_url"], values["user"], password), values["container"])
