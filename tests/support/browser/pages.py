"""All pages of the dashboard, as Horizon has registered them, and the values of their URLs' parameters in tests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tests.support.browser import code_answers, registry_answers, volume_answers

from sluice_aio.base.layout import Layout
from sluice_aio.conf import horizon
from sluice_aio.keystone import venv

_PROGRAM: Final = Path(__file__).with_name("urls_program.py")
#: Parameter of a URL → its value in ``answers.py``; a panel adds its own.
PARAMETERS: Final[Mapping[str, str]] = {
    "policy_id": "p1",
    "number": "0",
    "node": "node1",
    "filter": code_answers.FILTER,
    "metric": code_answers.METRIC,
    "controller": code_answers.CONTROLLER,
    "dependency": code_answers.DEPENDENCY,
    "revision": "1",
    "volume": volume_answers.VOLUME,
    "plot": "bandwidth",
    "snapshot": "s1",
    "tier": "gold",
    "pool": quote(volume_answers.POOL, safe="@"),
    "epoch": "7",
    "account": "AUTH_x",
    "objective": "get_bw",
    "tenant": "AUTH_x",
    "side": "storage_node",
    "device": "sdb1",
    "method": "GET",
    "kind": "terms",
    "group": "gtenants",
    "entry": registry_answers.NAME,
    "member": "AUTH_x",
    "applied_to": "AUTH_x",
}


@dataclass(frozen=True, slots=True)
class RegisteredPage:
    """One page with its ``sections``.

    ``kind`` is ``PageView``, ``ActionView`` (a form), ``PlotView``, ``ScriptView`` (answers only POST) or ``other``.
    """

    name: str
    kind: str
    path: str
    parameters: tuple[str, ...]
    sections: tuple[str, ...]

    def urls(self, values: Mapping[str, str] = PARAMETERS) -> list[str]:
        """Its URL, and those of its sections."""
        url = self.url(values)
        return [url, *(f"{url}?section={name}" for name in self.sections)]

    def url(self, values: Mapping[str, str] = PARAMETERS) -> str:
        """Its path with ``values`` in it.

        :raises KeyError: naming a parameter that ``values`` lack
        """
        return self.path % {name: values[name] for name in self.parameters}


def registered_pages(layout: Layout) -> list[RegisteredPage]:
    """The pages of both dashboards of the Horizon at ``layout``."""
    roots = json.dumps([str(root) for root in horizon.ROOTS])
    command = [
        str(venv.python(service="horizon")),
        "-W",
        "ignore",
        "-I",
        str(_PROGRAM),
        str(horizon.folder(layout)),
        roots,
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return [
        RegisteredPage(one["name"], one["kind"], one["path"], tuple(one["parameters"]), tuple(one["sections"]))
        for one in found
    ]
