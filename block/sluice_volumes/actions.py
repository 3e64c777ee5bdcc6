"""Actions on volumes, except those that objects have as well.

Filters that change stored data (``xor``, ``bitrev``, ``encryption``) describe themselves, for objects and volumes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sluice_core.describe import FILTER, KONNECTOR, THROTTLE, TIER, VOLUMES, ActionInfo, Parameter, Scalar
from sluice_core.errors import CallerError
from sluice_volumes.messages import LUKS
from sluice_volumes.tiers import FABRICS, MOST_IOPS, NO_RESILIENCY, RAID

#: Greatest bandwidth limit of a volume in bytes per second.
MOST_BANDWIDTH: Final = 1e12
THROTTLING: Final = "throttling"
TIER_KEYWORD: Final = "tier"
ENCRYPTION: Final = "encryption"
#: Keyword of a sentence → filter of a volume's stack, if these differ.
STACK_FILTERS: Final = {ENCRYPTION: LUKS}


def stack_filter(keyword: str) -> str:
    """Return the filter of a volume's stack for ``keyword``."""
    return STACK_FILTERS.get(keyword, keyword)


def _action(keyword: str, kind: str, text: str, *parameters: Parameter, stage: int = 500) -> ActionInfo:
    return ActionInfo(
        keyword,
        kind,
        text,
        parameters,
        places=(KONNECTOR,),
        default_place=KONNECTOR,
        stage=stage,
        on_put=False,
        about=(VOLUMES,),
    )


def _rate(name: str, text: str) -> Parameter:
    return Parameter(name, "rate", f"{text}; a bare number is MB/s", minimum=1.0, maximum=MOST_BANDWIDTH)


def _iops(name: str, text: str) -> Parameter:
    return Parameter(name, "frequency", text, minimum=1.0, maximum=MOST_IOPS)


#: A number of replicas, of at most four digits.
_replicas = re.compile(r"0{0,3}[1-9][0-9]{0,3}")

VOLUME_ACTIONS: Final = (
    _action(
        THROTTLING,
        THROTTLE,
        "hold a volume to bytes and operations per second where it is used",
        _rate("max_bw", "most bytes per second, reads and writes together"),
        _rate("read_bw", "most bytes per second that are read"),
        _rate("write_bw", "most bytes per second that are written"),
        _iops("max_iops", "most operations per second, reads and writes together"),
        _iops("read_iops", "most reads per second"),
        _iops("write_iops", "most writes per second"),
    ),
    _action(
        TIER_KEYWORD,
        TIER,
        "have a volume in the tier that costs least of those that meet the demands",
        Parameter("name", "str", "the tier itself, instead of demands"),
        Parameter("resiliency", "str", "none, raid, or a number of replicas"),
        _rate("bandwidth", "bytes per second that one volume must reach"),
        _iops("iops", "operations per second that one volume must reach"),
        Parameter("fabric", "str", "how the volume is reached", choices=FABRICS),
    ),
    _action("nop", FILTER, "change nothing and count what passes", stage=100),
    _action("readahead", FILTER, "read ahead of sequential reads", stage=200),
)


def check_parameters(keyword: str, params: Mapping[str, Scalar]) -> None:
    """Check the parameters of an action together: that there is one, and that they do not exclude each other.

    :raises CallerError: without parameters, or for parameters that exclude each other
    """
    known = next((one for one in VOLUME_ACTIONS if one.keyword == keyword), None)
    if known is None or not known.parameters:
        return
    if not params:
        names = ", ".join(f"`{one.name}=…`" for one in known.parameters)
        raise CallerError(f"expected at least one of {names}")
    if keyword == TIER_KEYWORD:
        _check_demands(params)


def _check_demands(params: Mapping[str, Scalar]) -> None:
    if "name" in params and len(params) > 1:
        raise CallerError("`name` says the tier already, expected it alone or demands")
    resiliency = str(params.get("resiliency", NO_RESILIENCY))
    if resiliency not in (NO_RESILIENCY, RAID) and not _replicas.fullmatch(resiliency):
        raise CallerError(f"`resiliency` is `{resiliency}`, expected none, raid, or a number of replicas")
