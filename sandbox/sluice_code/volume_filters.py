"""Uploaded filters of volumes: shared objects against nbdkit's filter API, and what their registration says of them."""

from __future__ import annotations

import re
from typing import Final

from sluice_code.code_store import BadUpload
from sluice_core.describe import FILTER, KONNECTOR, NBDKIT, VOLUMES, ActionInfo, Parameter
from sluice_core.messages.uploads import Upload

#: The function by which nbdkit gets to know a filter.
ENTRY: Final = "filter_init"
#: Bytes of a shared object; each volume that uses it holds it in memory.
LARGEST: Final = 8 << 20
#: What a registration may say in ``capabilities``, and beside them.
_DECLARED: Final = frozenset({"changes_content", "parameters", "help"})
#: Types of parameters: each is passed on as text.
_TYPES: Final = ("str", "int", "float", "bool")
#: Filters of konnectors that are no words of the language: an uploaded one would never be meant.
_TAKEN: Final = ("cache", "luks")
#: The stage of each: an uploaded filter stands last in a stack.
_STAGE: Final = 1000
_KEYWORD: Final = re.compile(r"[a-z0-9_]+")
#: A parameter of nbdkit, in lower case.
_PARAMETER: Final = re.compile(r"[a-z][a-z0-9._-]*")


def describe_volume_filter(upload: Upload) -> ActionInfo:
    """How ``upload`` describes itself to the language and to konnectors.

    :raises BadUpload: for words that it cannot say, or that contradict each other
    """
    faults = [f"`{name}` is nothing a filter of volumes can declare" for name in sorted(set(upload.info) - _DECLARED)]
    if not _KEYWORD.fullmatch(upload.keyword):
        faults.append(f"keyword `{upload.keyword}`, expected lower case letters, digits and `_`")
    if upload.keyword in _TAKEN:
        faults.append(f"keyword `{upload.keyword}` is a filter that konnectors have already")
    changes = upload.info.get("changes_content", upload.reverse)
    if not isinstance(changes, bool):
        faults.append(f"`changes_content` is `{changes}`, expected true or false")
    elif changes and not upload.reverse:
        faults.append("it changes content and cannot be undone: nobody could read the volume, expected `reverse`")
    if faults:
        raise BadUpload(f"filter `{upload.keyword}`: {'; '.join(faults)}")
    try:
        parameters = tuple(map(Parameter.from_data, upload.info.get("parameters", ())))
    except (TypeError, AttributeError) as error:
        raise BadUpload(f"description of filter `{upload.keyword}`: {error}") from error
    for one in parameters:
        _check_parameter(upload.keyword, one)
    return ActionInfo(
        keyword=upload.keyword,
        kind=FILTER,
        help=str(upload.info.get("help", f"uploaded filter of volumes, revision {upload.revision}")),
        parameters=parameters,
        places=(KONNECTOR,),
        default_place=KONNECTOR,
        stage=_STAGE,
        version=upload.revision,
        on_get=upload.reverse,
        changes_content=bool(changes),
        reversible=upload.reverse,
        random_access=True,
        environment=NBDKIT,
        about=(VOLUMES,),
    )


def _check_parameter(keyword: str, one: Parameter) -> None:
    if not isinstance(one.name, str) or not _PARAMETER.fullmatch(one.name):
        raise BadUpload(
            f"parameter `{one.name}` of filter `{keyword}`, expected a name in lower case as nbdkit's parameters have"
        )
    if one.type not in _TYPES:
        raise BadUpload(f"parameter `{one.name}` of filter `{keyword}` is of type `{one.type}`, expected {_TYPES}")
