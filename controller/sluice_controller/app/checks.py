"""System checks of options, operations, Keystone and rules; ``sluice-api`` runs them before it serves."""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from keystoneauth1.exceptions import ClientException
from oslo_config import cfg

from sluice_controller.app.logs import FORMATS
from sluice_controller.app.policy_sample import declared_rules
from sluice_controller.config import KEYSTONE, STATIC, Config, split_source
from sluice_controller.identity import rules
from sluice_controller.identity.caller import read_token
from sluice_controller.identity.rules import BY_NAME, PREFIX
from sluice_core.options import OptionError
from sluice_core.store.redis_urls import RedisAddress
from sluice_volumes.cinder.service import CinderSettings

#: The names that a rule can have in ``role:…``.
_ROLE: Final = re.compile(r"[\w.@-]+")


def keystone_faults(config: Config) -> Iterator[CheckMessage]:
    """Errors of ``[keystone_authtoken]``; none of its values is quoted, since some are secret."""
    from sluice_controller.identity import keystone as adapter

    source = config.keystone_source
    if not source:
        yield Error("option `auth` is `keystone`, but there is no file with [keystone_authtoken]", id="sluice.E010")
        return
    try:
        modes = {path: stat.S_IMODE(os.stat(path).st_mode) for path in split_source(source)}
        conf = adapter.read_conf(source)
        section = conf[adapter.SECTION]
        given = {name: section[name] for name in section}
        lacking = [name for name in ("auth_type", "auth_url", *_user_of(given)) if not given.get(name)]
        if lacking:
            text = f"{source}: [{adapter.SECTION}] has no `{lacking[0]}`, expected a login of Sluice's user"
            yield Error(text, id="sluice.E011")
            return
        adapter.service_plugin(conf)
    except OSError as error:
        yield Error(f"`{error.filename or source}` cannot be read: {error.strerror}", id="sluice.E010")
        return
    except cfg.ConfigFileParseError as error:  # its text quotes the line, which may have the password
        yield Error(f"`{error.config_file}` is not an ini file", id="sluice.E010")
        return
    except (cfg.Error, ClientException) as error:
        yield Error(f"{source}: [{adapter.SECTION}] cannot be used: {_first_line(error)}", id="sluice.E011")
        return
    for path, mode in modes.items():
        if mode & 0o007 and f"[{adapter.SECTION}]" in Path(path).read_text(encoding="utf-8", errors="replace"):
            text = f"`{path}` has mode {mode:04o} and has the password of [{adapter.SECTION}]: every user may read it"
            yield Error(text, hint="chmod o-rwx FILE", id="sluice.E012")
    if section.memcached_servers and find_spec("memcache") is None:
        text = f"{source}: `memcached_servers` of [{adapter.SECTION}] needs the package `python-memcached`"
        yield Error(text, id="sluice.E013")
    if not config.reseller_prefix:
        text = "option `reseller_prefix` is empty, expected the value of Swift's keystoneauth, as `AUTH_`"
        yield Error(text, id="sluice.E014")


def rule_faults(config: Config) -> Iterator[CheckMessage]:
    """Errors of ``policy_file``, ``operator_roles`` and ``self_service``."""
    if config.policy_file:
        yield from policy_file_faults(config.policy_file)
    for role in filter(None, (one.strip() for one in config.operator_roles.split(","))):
        if not _ROLE.fullmatch(role):
            text = f"option `operator_roles` names `{role}`, expected names of roles, separated by commas"
            yield Error(text, hint="a role with another name can be used in the rule `operator`", id="sluice.E024")
    if config.self_service_words:
        from sluice_controller.catalog.vocabulary import build_catalogue  # loads every filter

        known = build_catalogue().actions
        for word in sorted(config.self_service_words - known.keys()):
            text = f"option `self_service` names `{word}`, which is not a keyword here{_near(word, known)}"
            yield Error(text, hint="a filter that is registered has a field of this name", id="sluice.E017")


def policy_file_faults(path: str) -> Iterator[CheckMessage]:
    """Errors of a file of rules: it is unreadable, has a name of no rule, or a rule that cannot be resolved."""
    declared_rules()
    try:
        enforcer = rules.enforcer(path)
        whole = enforcer.check_rules()
    except OSError as error:
        yield Error(f"option `policy_file`: `{path}` cannot be read: {error.strerror}", id="sluice.E015")
        return
    except (ValueError, cfg.Error) as error:
        yield Error(f"option `policy_file`: `{path}` cannot be used: {_first_line(error)}", id="sluice.E015")
        return
    known = enforcer.registered_rules
    for name in sorted(enforcer.file_rules.keys() - known.keys()):
        if name.startswith(PREFIX):
            text = f"option `policy_file`: `{path}` has a rule `{name}`, which no operation uses{_near(name, known)}"
            yield Error(text, id="sluice.E016")
    if not whole:
        text = f"option `policy_file`: a rule in `{path}` refers to a missing rule, or to itself"
        yield Error(text, id="sluice.E016")


def _user_of(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The options that a login by password needs; other plugins check their own."""
    if given.get("auth_type") not in ("password", "v3password"):
        return ()
    return ("user_id" if given.get("user_id") else "username", "password")


def _near(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), 1)
    return f", did you mean `{near[0]}`" if near else ""


def _first_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return text[:1].lower() + text[1:]


LEVELS = ("debug", "info", "warning", "error")


@register("sluice")
def check_options(**_: Any) -> list[CheckMessage]:
    """The errors of ``settings.SLUICE``."""
    return list(faults(settings.SLUICE))


@register("operations")
def check_operations(**_: Any) -> list[CheckMessage]:
    """Errors of operations whose rule is not declared."""
    from sluice_controller.api.permissions import OPEN
    from sluice_controller.api.routes import load_operations

    return [
        Error(f"`{one.method.upper()} /{one.path}` names `{rule}`, which is not a rule", id="sluice.E020")
        for one in load_operations()
        for rule in (one.rule, *one.further)
        if rule != OPEN and rule not in BY_NAME
    ]


def faults(config: Config) -> Iterator[CheckMessage]:
    """One error for each option that is not valid; ids begin with ``sluice.E001``."""
    yield from auth_faults(config)
    yield from bind_faults(config.bind, loopback=config.auth != KEYSTONE)
    for name in ("redis_url", "history_redis_url"):
        url = getattr(config, name)
        try:
            if url or name == "redis_url":
                RedisAddress(url)
        except OptionError as error:
            yield Error(f"option `{name}`: {error}", id="sluice.E004")
    if config.history_url and urlsplit(config.history_url).scheme not in ("http", "https"):
        yield Error("option `history_url` is not a URL of a Prometheus, expected http://host:port", id="sluice.E023")
    for name, low, high in (("workers", 1, 64), ("threads", 2, 64), ("text_limit", 1, config.body_limit)):
        value = getattr(config, name)
        if not low <= value <= high:
            yield Error(f"option `{name}` is `{value}`, expected {low} to {high}", id="sluice.E005")
    for name, choices, number in (("log_level", LEVELS, "E006"), ("log_format", FORMATS, "E021")):
        value = getattr(config, name)
        if value not in choices:
            text = f"option `{name}` is `{value}`, expected one of {', '.join(choices)}"
            yield Error(text, id=f"sluice.{number}")
    if config.node_timeout <= 0:
        yield Error(f"option `node_timeout` is `{config.node_timeout}`, expected more than 0", id="sluice.E007")
    if not config.redis_prefix:
        yield Error("option `redis_prefix` is empty, expected a word", id="sluice.E008")
    try:
        CinderSettings.from_options(asdict(config))
    except OptionError as error:
        yield Error(str(error), id="sluice.E022")
    yield from rule_faults(config)


def auth_faults(config: Config) -> Iterator[CheckMessage]:
    """Errors of the options of authentication."""
    if config.auth == KEYSTONE:
        yield from keystone_faults(config)
    elif config.auth == STATIC:
        try:
            read_token(config.token_file)
        except OptionError as error:
            yield Error(str(error), hint="umask 077; openssl rand -hex 32 > FILE", id="sluice.E001")
    else:
        yield Error(f"option `auth` is `{config.auth}`, expected `{KEYSTONE}` or `{STATIC}`", id="sluice.E009")


def bind_faults(bind: str, loopback: bool) -> Iterator[CheckMessage]:
    """Errors of the address to listen on."""
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        yield Error(f"option `bind` is `{bind}`, expected address:port", id="sluice.E002")
    elif loopback and not is_loopback(host):
        yield Error(
            f"option `bind` is `{bind}`, expected a loopback address: a static token in plain HTTP "
            "would be read by the whole network",
            hint="auth = keystone; a static token is for development on one machine",
            id="sluice.E003",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to ``host``."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
