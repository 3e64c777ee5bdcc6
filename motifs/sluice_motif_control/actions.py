"""What a sentence may do with motifs."""

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

#: Bytes beyond which no space is kept: 100 PB.
MOST_BYTES: Final = 10**17
MOST_WEIGHT: Final = 1000
_TEN_YEARS: Final = 3650 * 86400.0
TEMPLATE: Final = "template"
#: The parameter of every derived motif that is attached: the ETags of the sources that the bytes were made from.
VERSIONS: Final = "versions"
#: What a text parameter of a motif begins with whose value is taken from the metadata of each object.
FROM_METADATA: Final = "meta:"


def _size(name: str, text: str) -> Parameter:
    return Parameter(name, "size", text, minimum=0, maximum=MOST_BYTES)


MOTIF_ACTIONS: Final = (
    ActionInfo(
        ELASTICITY,
        MOTIF,
        "keep what can be made again within a size",
        (
            _size(TARGET_SIZE, "plain bytes that objects with motifs may have stored; 0: none that can be made again"),
            Parameter(POLICY, "str", "which objects give up their bytes first", "lru", choices=POLICIES),
            Parameter(MIN_AGE, "duration", "younger objects keep their bytes", 0.0, minimum=0.0, maximum=_TEN_YEARS),
            Parameter(VERIFY, "str", "what is proven before bytes go", "head", choices=VERIFICATIONS),
            _size(FLOOR, "part of a wider space that this one gets whatever others demand"),
            Parameter(WEIGHT, "int", "its share of that space above the floors", minimum=1, maximum=MOST_WEIGHT),
        ),
    ),
    ActionInfo(
        ATTACH,
        MOTIF,
        "attach a motif to each object that is stored",
        (Parameter(TEMPLATE, "str", "what makes the bytes again; its parameters follow", required=True),),
    ),
)


def check_parameters(keyword: str, params: Mapping[str, Scalar]) -> None:
    """Check the parameters of an action together: that there is one, and that they do not exclude each other.

    :raises CallerError: when nothing is said, or things that do not go together
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

    One whose parameter is to come from metadata that the object does not have is left out: it is about others.

    :param pipeline: of kind ``motif``, as ``sluice_core.resolve`` gives it
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
