"""The bandwidth of this node as its options give it: rates in the notation of policies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT, REPLICATION
from sluice_core.options import Option, OptionError

_HELP: Final = "as in 90MBps; empty: to be estimated"
_UNITS: Final[Mapping[str, int]] = {
    **{"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12},
    **{"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40},
}
_RATES: Final = {f"{prefix}B{per}": factor for prefix, factor in _UNITS.items() for per in ("ps", "/s", "/sec")}
_rate: Final = re.compile(r"(\d{1,20}(?:\.\d{1,20})?) ?(\D\S*)?")
_LARGEST: Final = float(2**63 - 1)

#: Option → its side and method.
NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "proxy_get_bw": (PROXY, GET),
    "proxy_put_bw": (PROXY, PUT),
    "storage_get_bw": (STORAGE_NODE, GET),
    "storage_put_bw": (STORAGE_NODE, PUT),
    "storage_replication_bw": (STORAGE_NODE, REPLICATION),
}
OPTIONS: Final = (
    Option("proxy_get_bw", "", f"bytes that the proxy here can send to clients, {_HELP}"),
    Option("proxy_put_bw", "", f"bytes that the proxy here can take from clients, {_HELP}"),
    Option("storage_get_bw", "", f"bytes that the object servers here can read, all disks together, {_HELP}"),
    Option("storage_put_bw", "", f"bytes that they can write, each copy counted, {_HELP}"),
    Option(
        "storage_replication_bw", "", "bytes that replication can move here, as in 90MBps; empty: the cap alone counts"
    ),
)


def read_rate(text: str) -> float:
    """Bytes per second.

    :raises ValueError: when the text is no rate above 0 with a unit
    """
    match = _rate.fullmatch(text.strip())
    unit = "" if match is None else match[2] or ""
    if match is None or unit not in _RATES:
        hint = "" if match is None else _near(match[1], unit)
        raise ValueError(f"expected a rate such as 90MBps or 1MiB/s, got `{text}`{hint}")
    rate = float(match[1]) * _RATES[unit]
    if not 1 <= rate <= _LARGEST:
        raise ValueError(f"expected a rate from 1Bps to 9EB/s, got `{text}`; empty to have it estimated")
    return rate


def write_rate(rate: float) -> str:
    """Return a rate in the notation of options, rounded down to three digits; ``read_rate`` reads it."""
    for prefix in ("T", "G", "M", "K"):
        factor = _UNITS[prefix]
        if rate >= factor:
            count = rate / factor
            digits = 0 if count >= 100 else 1 if count >= 10 else 2
            floored = int(count * 10**digits) / 10**digits
            return f"{floored:g}{prefix}Bps"
    return f"{int(rate)}Bps"


def read_capacity(values: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Side → method → bytes per second, of the options that are set.

    :raises OptionError: for a value that is no rate; names the option
    """
    rates: dict[str, dict[str, float]] = {}
    for name, (side, method) in NAMES.items():
        if not values[name]:
            continue
        try:
            rates.setdefault(side, {})[method] = read_rate(values[name])
        except ValueError as error:
            raise OptionError(f"option `{name}`: {error}") from error
    return rates


def _near(number: str, unit: str) -> str:
    if not unit:
        return f", did you mean `{number}MBps`"
    wanted = unit.casefold().removesuffix("ps").removesuffix("/s").removesuffix("/sec").removesuffix("b")
    for prefix in _UNITS:
        if prefix and prefix.casefold() == wanted:
            return f", did you mean `{number}{prefix}Bps`"
    return ""
