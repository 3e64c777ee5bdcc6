"""How uploaded code becomes a filter: what the isolated environments share.

An :class:`~sluice_core.messages.policies.Upload` and the environment that runs it (a :class:`SandboxTeam`) make a
``Filter`` subclass (:func:`filter_class`); hosts treat it like any other.  An environment has to
implement one thing: :meth:`SandboxTeam.session`, a stream through code that nobody trusts.  What the
hosts rely on is added outside of the sandbox, in :mod:`sluice_sandbox.guard`: counted and summed
bytes in both directions, a limit on growth, and a proven end.

Naming: a *step* is one filter in one direction for one stream, *do* is what it does on PUT or at
reading time, *undo* gives back what *do* took.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Final

from sluice_core.describe import (
    FILTER,
    PLACES,
    PROCESS,
    PROXY,
    STORLET,
    WASM,
    ActionInfo,
    Parameter,
    Scalar,
)
from sluice_core.messages.policies import Upload
from sluice_filters.api import BadParameter, Filter, FilterError, Hint, Record, Stream, Team, TeamStream, Window
from sluice_sandbox import guard
from sluice_sandbox.limits import DO, UNDO, BadUpload, Limits, Misbehaved, Session, Step

__all__ = [
    "DO",
    "UNDO",
    "BadUpload",
    "IsolatedFilter",
    "Limits",
    "Misbehaved",
    "SandboxTeam",
    "Session",
    "Step",
    "filter_class",
    "info_of",
]

#: Parameters travel into the sandbox and into the record beside the object; attributes are scarce there.
MAX_PARAMETERS: Final = 1024

#: What an upload's ``info`` may say; the rest follows from the upload itself.
_DECLARED: Final = frozenset(one.name for one in fields(ActionInfo)) - {
    "keyword",
    "kind",
    "version",
    "environment",
    "reversible",
    "available",
    "on_request",
}
#: Only the fast environments run below Swift's own reads and writes, where each open of a file would
#: else start a conversation with a container engine.
_UNDOES_AT: Final = {STORLET: (PROXY,), PROCESS: PLACES, WASM: PLACES}


class SandboxTeam(Team):
    """An isolated environment; a subclass implements :meth:`session`."""

    environment: ClassVar[str]
    #: See ``Filter.heavy``.
    heavy: ClassVar[bool] = False

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = Limits() if limits is None else limits

    def session(self, steps: Sequence[Step], hint: Hint) -> Session:
        """A stream through ``steps``, in that order, for the tenant ``hint.account``.

        :raises FilterError: when the environment cannot run them now
        """
        raise FilterError(f"environment `{self.environment}` runs nothing")

    def admit(self, upload: Upload, code: bytes) -> None:
        """Look at code before it is offered, once per process; what can be prepared is prepared.

        :raises BadUpload: when it will never run here, with the reason
        """

    def made(self, one: type[IsolatedFilter]) -> None:
        """Take note of a filter that was made for this environment."""

    def encoder(self, steps: Sequence[Filter], hint: Hint) -> TeamStream:
        session = self.session([_step(one, DO) for one in steps], hint)
        return guard.Encoder(session, [_uploaded(one) for one in steps], self.limits)

    def reader(self, steps: Sequence[Filter], hint: Hint) -> Stream:
        backwards = list(reversed(steps))
        session = self.session([_step(one, DO) for one in backwards], hint)
        return guard.Encoder(session, [_uploaded(one) for one in backwards], self.limits)

    def decoder(self, steps: Sequence[tuple[Filter, Record]], hint: Hint) -> Stream:
        marks = [guard.Mark.of(record) for _, record in steps]
        undo = [
            Step(one.info.keyword, mark.code, mark.main, mark.params, UNDO)
            for (one, _), mark in zip(reversed(steps), reversed(marks), strict=True)
        ]
        return guard.Decoder(self.session(undo, hint), marks, [one.info.keyword for one, _ in steps], self.limits)


class IsolatedFilter(Filter):
    """Base of the classes that :func:`filter_class` makes."""

    upload: ClassVar[Upload]
    team: ClassVar[SandboxTeam]

    def __init__(self, params: Mapping[str, Scalar] | None = None) -> None:
        super().__init__(params)
        size = len(json.dumps(self.given()))
        if size > MAX_PARAMETERS:
            raise BadParameter(
                f"parameters of filter `{self.info.keyword}` take {size} bytes, expected at most {MAX_PARAMETERS}"
            )

    def given(self) -> dict[str, Scalar]:
        """The parameters that have a value."""
        return {name: value for name, value in self.params.items() if value is not None}

    def encoder(self, hint: Hint) -> Stream:
        return self.team.encoder([self], hint)

    def decoder(self, record: Record, window: Window | None = None) -> Stream:
        if window is not None:
            raise FilterError(f"filter `{self.info.keyword}` has no random access")
        return self.team.decoder([(self, record)], Hint())

    def reader(self, hint: Hint) -> Stream:
        return self.team.reader([self], hint)


def filter_class(upload: Upload, team: SandboxTeam) -> type[IsolatedFilter]:
    """The filter that ``upload`` is, run by ``team``.

    :raises BadUpload: when it cannot be one, all reasons at once
    """
    if upload.environment != team.environment:
        raise BadUpload(f"filter `{upload.keyword}` is for `{upload.environment}`, expected `{team.environment}`")
    members = {"info": info_of(upload), "upload": upload, "team": team, "heavy": team.heavy}
    found = type(f"Isolated_{upload.keyword}", (IsolatedFilter,), members)
    team.made(found)
    return found


def info_of(upload: Upload) -> ActionInfo:
    """How ``upload`` describes itself to the language and the hosts.

    Unless it says otherwise it is taken to change bytes and their number, and to run on PUT when it
    can be undone, else when read.

    :raises BadUpload: for words that an upload cannot say, or that contradict each other
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
        values["parameters"] = tuple(map(_parameter, values.get("parameters", ())))
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
    faults = list(_contradictions(info, places))
    if faults:
        raise BadUpload(f"filter `{upload.keyword}`: {'; '.join(faults)}")
    return info


def _contradictions(info: ActionInfo, places: Sequence[str]) -> Sequence[str]:
    rules = (
        (info.on_put or info.on_get, "it runs neither on PUT nor on GET"),
        (info.on_put or not info.reversible, "it can be undone, but does not run on PUT"),
        (info.changes_content or not info.reversible, "it can be undone, but changes nothing"),
        (info.changes_content or not info.changes_length, "it changes the length, but not the content"),
        (not (info.reversible and info.on_get), "it is both undone on GET and run on GET"),
        (not info.random_access, f"environment `{info.environment}` has no random access"),
        (set(info.places) <= set(places), f"places {', '.join(info.places)}, expected some of {', '.join(places)}"),
        (info.default_place in info.places, f"default place `{info.default_place}` is none of its places"),
        (
            not info.reversible or not any(one.required for one in info.parameters),
            "it can be undone, but needs a parameter",
        ),
    )
    return [fault for holds, fault in rules if not holds]


def _parameter(data: Mapping[str, Any]) -> Parameter:
    values = {"help": "", **data}
    values["choices"] = tuple(values.get("choices", ()))
    return Parameter(**values)


def _uploaded(one: Filter) -> IsolatedFilter:
    if not isinstance(one, IsolatedFilter):
        raise FilterError(f"filter `{one.info.keyword}` is not an uploaded one")
    return one


def _step(one: Filter, direction: str) -> Step:
    upload = _uploaded(one).upload
    return Step(upload.keyword, upload.sha256, upload.main, _uploaded(one).given(), direction)
