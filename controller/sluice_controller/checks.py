"""System checks of the options; ``sluice-api`` runs them before it forks a worker."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from sluice_controller.config import Config
from sluice_controller.tokens import read_token
from sluice_core.options import OptionError

LEVELS = ("debug", "info", "warning", "error")
REDIS_SCHEMES = ("redis", "rediss", "unix")


@register("sluice")
def check_options(**_: Any) -> list[CheckMessage]:
    """Everything that is wrong with ``settings.SLUICE``."""
    return list(faults(settings.SLUICE))


def faults(config: Config) -> Iterator[CheckMessage]:
    """One error per option that cannot work; ids are ``sluice.E001`` and on."""
    try:
        read_token(config.token_file)
    except OptionError as error:
        yield Error(str(error), hint="umask 077; openssl rand -hex 32 > FILE", id="sluice.E001")
    yield from bind_faults(config.bind)
    url = urlsplit(config.redis_url)
    if url.scheme not in REDIS_SCHEMES or not (url.hostname or url.path):
        # the url is not quoted: it may hold a password
        yield Error(f"option `redis_url` has scheme `{url.scheme}`, expected redis://host:port/db", id="sluice.E004")
    for name, low, high in (("workers", 1, 64), ("threads", 2, 64), ("text_limit", 1, config.body_limit)):
        value = getattr(config, name)
        if not low <= value <= high:
            yield Error(f"option `{name}` is `{value}`, expected {low} to {high}", id="sluice.E005")
    if config.log_level not in LEVELS:
        text = f"option `log_level` is `{config.log_level}`, expected one of {', '.join(LEVELS)}"
        yield Error(text, id="sluice.E006")
    if config.node_timeout <= 0:
        yield Error(f"option `node_timeout` is `{config.node_timeout}`, expected more than 0", id="sluice.E007")
    if not config.redis_prefix:
        yield Error("option `redis_prefix` is empty, expected a word", id="sluice.E008")


def bind_faults(bind: str) -> Iterator[CheckMessage]:
    """Errors of the address to listen on."""
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        yield Error(f"option `bind` is `{bind}`, expected address:port", id="sluice.E002")
        return
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        yield Error(
            f"option `bind` is `{bind}`, expected a loopback address: a static token in plain HTTP "
            "would be read by the whole network",
            hint="bind 127.0.0.1 and let a TLS proxy stand before it",
            id="sluice.E003",
        )
