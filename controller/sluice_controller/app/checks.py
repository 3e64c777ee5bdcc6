"""System checks of the options and of the views; ``sluice-api`` runs them before it serves."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from sluice_controller.app import identity_checks
from sluice_controller.app.logs import FORMATS
from sluice_controller.config import KEYSTONE, STATIC, Config
from sluice_controller.identity.caller import read_token
from sluice_controller.identity.rules import BY_NAME
from sluice_core.options import OptionError
from sluice_core.store.redis_urls import RedisAddress
from sluice_volumes.cinder.options import CinderSettings

LEVELS = ("debug", "info", "warning", "error")


@register("sluice")
def check_options(**_: Any) -> list[CheckMessage]:
    """The errors of ``settings.SLUICE``."""
    return list(faults(settings.SLUICE))


@register("operations")
def check_operations(**_: Any) -> list[CheckMessage]:
    """The operations whose rule nobody declares."""
    from sluice_controller.api.permissions import OPEN
    from sluice_controller.api.routes import load_operations

    return [
        Error(f"`{one.method.upper()} /{one.path}` names `{rule}`, which is no rule", id="sluice.E020")
        for one in load_operations()
        for rule in (one.rule, *one.further)
        if rule != OPEN and rule not in BY_NAME
    ]


def faults(config: Config) -> Iterator[CheckMessage]:
    """One error per option that cannot work; ids are ``sluice.E001`` and on."""
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
        yield Error("option `history_url` is no URL of a Prometheus, expected http://host:port", id="sluice.E023")
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
    yield from identity_checks.rule_faults(config)


def auth_faults(config: Config) -> Iterator[CheckMessage]:
    """Errors of the options of authentication."""
    if config.auth == KEYSTONE:
        yield from identity_checks.keystone_faults(config)
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
