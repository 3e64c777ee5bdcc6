"""The filter that adds metadata by rule.

The tag is one of the object's own metadata, so a POST, which replaces all of them, would remove it: it is set on POST
as on PUT.  A condition in WHEN must then be known at both times: an object's name is, its size and type are known only
on PUT.  Objects that were stored before the policy keep their metadata.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final

from sluice_core.describe import FILTER, ActionInfo, Parameter, Scalar
from sluice_filters.api import BadParameter, Filter
from sluice_filters.visits import Call, Reply, Visit

_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,100}", re.ASCII)
#: Swift's own default limit, in bytes.
_LONGEST: Final = 256


class Tagging(Filter):
    """Sets ``X-Object-Meta-<name>`` on objects that are written."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="tagging",
        kind=FILTER,
        help="set a metadata entry on objects that are written",
        parameters=(
            Parameter(
                "name", "str", "of the entry, without `X-Object-Meta-`; letters, digits and dashes", required=True
            ),
            Parameter("value", "str", "of the entry", required=True),
            Parameter("overwrite", "bool", "also where the client sends a value of its own", default=True),
        ),
        stage=20,
        on_put=False,
        on_request=True,
        methods=("PUT", "POST"),
    )

    def __init__(self, params: Mapping[str, Scalar] | None = None) -> None:
        super().__init__(params)
        name, value = str(self.params["name"]), str(self.params["value"])
        if not _NAME.fullmatch(name):
            raise BadParameter(f"`name` is `{name}`, expected up to 100 letters, digits and dashes")
        if not value.strip() or len(value.encode()) > _LONGEST or not value.isprintable():
            raise BadParameter(f"`value` is `{value}`, expected up to {_LONGEST} bytes of text, not blank")
        self.header = f"X-Object-Meta-{name}"
        #: In WSGI's encoding.
        self.value = value.encode().decode("latin-1")
        self.overwrite = bool(self.params["overwrite"])

    def visit(self, call: Call) -> Visit | None:
        return _Tag(self, call) if call.method in ("PUT", "POST") else None


class _Tag(Visit):
    def __init__(self, tagging: Tagging, call: Call) -> None:
        self._tagging = tagging
        self._call = call

    def request(self) -> Reply | None:
        headers = self._call.headers
        if self._tagging.overwrite or self._tagging.header not in headers:
            headers[self._tagging.header] = self._tagging.value
        return None
