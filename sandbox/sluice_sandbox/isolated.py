"""The filter class of an upload, for every environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar, Final

from sluice_core.describe import Scalar
from sluice_core.messages.uploads import Upload
from sluice_filters.api import BadParameter, Filter, FilterEnvironment, FilterError, Hint, Record, Stream, Window

#: Parameters are sent into the sandbox and stored in the record beside the object; attributes are scarce there.
MAX_PARAMETERS: Final = 1024


class IsolatedFilter(Filter):
    """Base of the classes that :func:`~sluice_sandbox.api.filter_class` makes."""

    upload: ClassVar[Upload]
    team: ClassVar[FilterEnvironment]

    def __init__(self, params: Mapping[str, Scalar] | None = None) -> None:
        super().__init__(params)
        size = len(json.dumps(self.given_parameters()))
        if size > MAX_PARAMETERS:
            raise BadParameter(
                f"parameters of filter `{self.info.keyword}` take {size} bytes, expected at most {MAX_PARAMETERS}"
            )

    def given_parameters(self) -> dict[str, Scalar]:
        """The parameters with a value."""
        return {name: value for name, value in self.params.items() if value is not None}

    def encoder(self, hint: Hint) -> Stream:
        return self.team.encoder([self], hint)

    def decoder(self, record: Record, window: Window | None = None) -> Stream:
        if window is not None:
            raise FilterError(f"filter `{self.info.keyword}` has no random access")
        return self.team.decoder([(self, record)], Hint())

    def reader(self, hint: Hint) -> Stream:
        return self.team.reader([self], hint)
