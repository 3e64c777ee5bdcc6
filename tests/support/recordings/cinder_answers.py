"""Cinder's responses to Sluice's adapter, recorded by :mod:`.record_cinder_answers`, and the recorded steps.

The real adapter runs a step with python-cinderclient, once with a real Cinder and later with :func:`replayed`, which
answers as that one did, request by request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Final

import requests
from keystoneauth1 import token_endpoint
from keystoneauth1.session import Session
from requests.adapters import BaseAdapter

from sluice_core.errors import SluiceError
from sluice_volumes.cinder.adapter import Cinder

PATH: Final = Path(__file__).with_name("cinder_answers.json")
CONNECTOR: Final = {"host": "consumer", "ip": "192.0.2.1"}
NOBODY: Final = "00000000-0000-0000-0000-0000000000ff"
GOLD: Final = {"sluice:tier": "gold", "volume_backend_name": "nbd"}
ADMINISTRATOR: Final = "administrator"
MEMBER: Final = "member"
STRANGER: Final = "stranger"

#: Results of earlier steps: ids by name.
Ids = dict[str, str]
Step = Callable[[Any, Ids], Any]


def _noted(name: str, step: Step) -> Step:
    """The step, whose result's id is stored as ``name``."""

    def noting(cinder: Any, ids: Ids) -> Any:
        found = step(cinder, ids)
        ids[name] = found.id
        return found

    return noting


#: Name → user and step; in this order.
STEPS: Final[dict[str, tuple[str, Step]]] = {
    "pools": (ADMINISTRATOR, lambda cinder, ids: cinder.pools()),
    "pools for a member": (MEMBER, lambda cinder, ids: cinder.pools()),
    "type": (ADMINISTRATOR, _noted("type", lambda cinder, ids: cinder.create_type("gold", GOLD))),
    "specs by a member": (MEMBER, lambda cinder, ids: cinder.change_specs(ids["type"], {"sluice:tier": "mine"})),
    "specs of no type": (ADMINISTRATOR, lambda cinder, ids: cinder.change_specs(NOBODY, {"sluice:tier": "gold"})),
    "deleting a type by a member": (MEMBER, lambda cinder, ids: cinder.delete_type(ids["type"])),
    "type twice": (ADMINISTRATOR, lambda cinder, ids: cinder.create_type("gold", {})),
    "type by a member": (MEMBER, lambda cinder, ids: cinder.create_type("mine", {})),
    "types": (ADMINISTRATOR, lambda cinder, ids: cinder.types()),
    "types for a member": (MEMBER, lambda cinder, ids: cinder.types()),
    "volume": (MEMBER, _noted("volume", lambda cinder, ids: cinder.create_volume(1, "data", "gold", {"mark": "1"}))),
    "volume of no type": (MEMBER, lambda cinder, ids: cinder.create_volume(1, "", "nonsense", {})),
    "volume beyond the quota": (MEMBER, lambda cinder, ids: cinder.create_volume(1, "", "", {})),
    "volume seen": (MEMBER, lambda cinder, ids: cinder.volume(ids["volume"])),
    "volume seen by an administrator": (ADMINISTRATOR, lambda cinder, ids: cinder.volume(ids["volume"])),
    "volume of another project": (STRANGER, lambda cinder, ids: cinder.volume(ids["volume"])),
    "volume that is not there": (MEMBER, lambda cinder, ids: cinder.volume(NOBODY)),
    "volumes": (ADMINISTRATOR, lambda cinder, ids: cinder.volumes(everybody=True, metadata={"mark": "1"})),
    "shrinking": (MEMBER, lambda cinder, ids: cinder.extend(ids["volume"], 1)),
    "snapshot": (MEMBER, _noted("snapshot", lambda cinder, ids: cinder.create_snapshot(ids["volume"], "before", {}))),
    "snapshots": (MEMBER, lambda cinder, ids: cinder.snapshots(ids["volume"])),
    "snapshot that is not there": (MEMBER, lambda cinder, ids: cinder.snapshot(NOBODY)),
    "snapshot of another project": (STRANGER, lambda cinder, ids: cinder.snapshot(ids["snapshot"])),
    "extending what is not there": (MEMBER, lambda cinder, ids: cinder.extend(NOBODY, 2)),
    "deleting what has a snapshot": (MEMBER, lambda cinder, ids: cinder.delete_volume(ids["volume"])),
    "snapshot deleted": (MEMBER, lambda cinder, ids: cinder.delete_snapshot(ids["snapshot"])),
    "attachment": (MEMBER, _noted("attachment", lambda cinder, ids: cinder.attach(ids["volume"], CONNECTOR))),
    "attachment begun": (ADMINISTRATOR, lambda cinder, ids: cinder.attachment(ids["attachment"])),
    "volume being attached": (ADMINISTRATOR, lambda cinder, ids: cinder.volume(ids["volume"])),
    "attachment completed": (MEMBER, lambda cinder, ids: cinder.complete_attachment(ids["attachment"])),
    "attachment twice": (MEMBER, lambda cinder, ids: cinder.attach(ids["volume"], CONNECTOR)),
    "attachment seen": (ADMINISTRATOR, lambda cinder, ids: cinder.attachment(ids["attachment"])),
    "attachments": (MEMBER, lambda cinder, ids: cinder.attachments(ids["volume"])),
    "volume in use": (ADMINISTRATOR, lambda cinder, ids: cinder.volume(ids["volume"])),
    "deleting what is attached": (MEMBER, lambda cinder, ids: cinder.delete_volume(ids["volume"])),
    "deleting a type in use": (ADMINISTRATOR, lambda cinder, ids: cinder.delete_type(ids["type"])),
    "attachment deleted": (MEMBER, lambda cinder, ids: cinder.delete_attachment(ids["attachment"])),
    "attachment gone": (MEMBER, lambda cinder, ids: cinder.attachment(ids["attachment"])),
    "deleting a type that is not there": (ADMINISTRATOR, lambda cinder, ids: cinder.delete_type(NOBODY)),
}


def told(cinder: Any, step: Step, ids: Ids) -> Any:
    """The outcome of a step as JSON: its result, or the error with its class."""
    try:
        found = step(cinder, ids)
    except SluiceError as error:
        return f"{type(error).__name__}: {error}"
    return json.loads(json.dumps(found, default=_fields))


def _fields(record: Any) -> Any:
    assert is_dataclass(record)
    assert not isinstance(record, type)
    return asdict(record)


def recorded() -> Mapping[str, Any]:
    """Step → ``exchanges`` (method, path, status, body) and ``told``, its outcome."""
    steps: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))["steps"]
    return steps


class _Answers(BaseAdapter):
    """Returns the recorded responses in their order, to the recorded requests."""

    def __init__(self, exchanges: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        self._left = list(exchanges)

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """Return the next response."""
        expected = self._left.pop(0)
        assert (request.method, request.path_url) == (expected["method"], expected["path"])
        answer = requests.Response()
        answer.status_code, answer.url, answer.request = expected["status"], str(request.url), request
        answer.headers["Content-Type"] = "application/json"
        answer._content = b"" if expected["body"] is None else json.dumps(expected["body"]).encode()
        return answer

    def close(self) -> None:
        """Do nothing."""


def replayed(step: str) -> Cinder:
    """The adapter, whose Cinder responds as the real one did in a step."""
    plain = requests.Session()
    plain.mount("http://", _Answers(recorded()[step]["exchanges"]))
    session = Session(auth=token_endpoint.Token("http://cinder", "token"), session=plain)
    return Cinder(session, endpoint_override="http://cinder")
