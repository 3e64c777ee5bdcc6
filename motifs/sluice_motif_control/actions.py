"""The actions of policies with motifs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sluice_core.describe import MOTIF, ActionInfo, Parameter, Scalar
from sluice_core.errors import CallerError
from sluice_core.messages.elasticity import (
    ATTACH,
    ELASTICITY,
    FLOOR,
    MIN_AGE,
    OF_PARTS,
    OF_SPACES,
    POLICIES,
    POLICY,
    TARGET_SIZE,
    VERIFICATIONS,
    VERIFY,
    WEIGHT,
)
from sluice_core.messages.policies import Assignment

#: The largest target of a space: 100 PB.
MOST_BYTES: Final = 10**17
MOST_WEIGHT: Final = 1000
_TEN_YEARS: Final = 3650 * 86400.0
TEMPLATE: Final = "template"
#: The parameter of every derived motif: the ETags of the sources from which the bytes were made.
VERSIONS: Final = "versions"
#: The prefix of a text parameter of a motif whose value is taken from the metadata of each object.
FROM_METADATA: Final = "meta:"


def _size(name: str, text: str) -> Parameter:
    return Parameter(name, "size", text, minimum=0, maximum=MOST_BYTES)


MOTIF_ACTIONS: Final = (
    ActionInfo(
        ELASTICITY,
        MOTIF,
        "contract objects that motifs can make again, to keep a size",
        (
            _size(TARGET_SIZE, "plain bytes that objects with motifs may have stored; 0: none that can be made again"),
            Parameter(POLICY, "str", "which objects are contracted first", "lru", choices=POLICIES),
            Parameter(MIN_AGE, "duration", "younger objects keep their bytes", 0.0, minimum=0.0, maximum=_TEN_YEARS),
            Parameter(VERIFY, "str", "what is verified before an object is contracted", "head", choices=VERIFICATIONS),
            _size(FLOOR, "part of a wider space that this one gets, whatever the others need"),
            Parameter(WEIGHT, "int", "its share of that space above the floors", minimum=1, maximum=MOST_WEIGHT),
        ),
    ),
    ActionInfo(
        ATTACH,
        MOTIF,
        "attach a motif to each object that is stored",
        (Parameter(TEMPLATE, "str", "template that makes the bytes; its parameters follow", required=True),),
    ),
)


def check_parameters(keyword: str, params: Mapping[str, Scalar]) -> None:
    """Check the parameters of an action together: whether one is given, and whether they exclude each other.

    :raises CallerError: without any parameter, or for parameters that exclude each other
    """
    if keyword != ELASTICITY:
        return
    given = [name for name in OF_PARTS if name in params]
    if TARGET_SIZE not in params and not given:
        raise CallerError(f"expected `{TARGET_SIZE}=…`, or `{FLOOR}=…` or `{WEIGHT}=…` for a part of a wider space")
    mixed = [name for name in OF_SPACES if name in params]
    if given and mixed:
        raise CallerError(
            f"`{mixed[0]}` describes a space and `{given[0]}` a part of a wider one, expected one of them"
        )


def attachments(pipeline: Iterable[Assignment], metadata: Mapping[str, str]) -> list[dict[str, Any]]:
    """The motifs that policies attach to an object that is stored: template and parameters of each.

    A motif with a parameter from metadata that the object does not have is left out: it is for other objects.

    :param pipeline: of kind ``motif``, as ``sluice_core.resolve`` returns it
    :param metadata: of the object, by names in lower case, without ``X-Object-Meta-``
    """
    attached = []
    for assignment in pipeline:
        if assignment.keyword != ATTACH:
            continue
        params = {name: _filled(value, metadata) for name, value in assignment.params.items() if name != TEMPLATE}
        if None not in params.values():
            attached.append({TEMPLATE: str(assignment.params.get(TEMPLATE, "")), "params": params})
    return attached


def _filled(value: Scalar, metadata: Mapping[str, str]) -> Scalar | None:
    if isinstance(value, str) and value.startswith(FROM_METADATA):
        return metadata.get(value.removeprefix(FROM_METADATA).lower())
    return value
