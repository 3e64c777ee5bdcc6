"""The check of an upload's description, for the language and the hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from sluice_code.code_store import BadUpload
from sluice_core.describe import FILTER, PLACES, PROCESS, PROXY, STORLET, WASM, ActionInfo, Parameter
from sluice_core.messages.uploads import Upload
from sluice_filters.trial.native import contradictions

#: The fields of an upload's ``info``; the others follow from the upload itself.
_DECLARED: Final = frozenset(one.name for one in fields(ActionInfo)) - {
    "keyword",
    "kind",
    "version",
    "environment",
    "reversible",
    "available",
    "on_request",
    "methods",
    "on_answer",
}
#: Only the fast environments run below Swift's own reads and writes, since otherwise each open of a file would call a
#: container engine.
_UNDOES_AT: Final = {STORLET: (PROXY,), PROCESS: PLACES, WASM: PLACES}


def describe_upload(upload: Upload) -> ActionInfo:
    """Return the description of ``upload`` for the language and the hosts.

    By default it changes bytes and their number, and runs on PUT if it can be reversed, else at reading time.

    :raises BadUpload: for unknown or contradictory words
    """
    declared = dict(upload.info)
    faults = [f"`{name}` is nothing an upload can declare" for name in sorted(set(declared) - _DECLARED)]
    if upload.environment not in _UNDOES_AT:
        faults.append(f"environment `{upload.environment}`, expected one of {', '.join(_UNDOES_AT)}")
    if not upload.keyword.replace("_", "").isalnum() or upload.keyword != upload.keyword.lower():
        faults.append(f"keyword `{upload.keyword}`, expected lower case letters, digits and `_`")
    if faults:
        raise BadUpload("; ".join(faults))
    places = _UNDOES_AT[upload.environment] if upload.reverse else PLACES
    values: dict[str, Any] = {
        "help": f"uploaded filter, revision {upload.revision}",
        "places": places,
        "on_put": upload.reverse,
        "on_get": not upload.reverse,
        "changes_content": True,
        "changes_length": True,
        **declared,
    }
    try:
        values["parameters"] = tuple(map(Parameter.from_data, values.get("parameters", ())))
        values["places"] = tuple(values["places"])
        values.setdefault("default_place", values["places"][0])
        info = ActionInfo(
            keyword=upload.keyword,
            kind=FILTER,
            version=upload.revision,
            environment=upload.environment,
            reversible=upload.reverse,
            **values,
        )
    except (TypeError, ValueError, IndexError) as error:
        raise BadUpload(f"description of filter `{upload.keyword}`: {error}") from error
    faults = _faults(info, places)
    if faults:
        raise BadUpload(f"filter `{upload.keyword}`: {'; '.join(faults)}")
    return info


def _faults(info: ActionInfo, places: Sequence[str]) -> list[str]:
    rules = (
        (info.on_put or info.on_get, "it runs neither on PUT nor on GET"),
        (not info.random_access, f"environment `{info.environment}` has no random access"),
        (set(info.places) <= set(places), f"places {', '.join(info.places)}, expected some of {', '.join(places)}"),
    )
    return [fault for holds, fault in rules if not holds] + contradictions(info)
