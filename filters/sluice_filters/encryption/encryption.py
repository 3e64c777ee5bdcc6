"""The encryption filter: AES-256-GCM in segments, so that a range costs its segments.

``segments`` is the codec, ``sealing`` the keys and records, ``keys`` the sources of root secrets;
docs/reference/format-encryption.md is the stored format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sluice_core.describe import FILTER, OBJECTS, PROXY, STORAGE_NODE, VOLUMES, ActionInfo, Parameter, Scalar
from sluice_filters.api import Filter, Hint, Record, Stream, Window
from sluice_filters.encryption.policy_key import read_policy_key
from sluice_filters.encryption.sealing import open_record, seal_object
from sluice_filters.encryption.segments import SegmentDecoder


class Encryption(Filter):
    """Stores objects encrypted and authenticated, each under keys of its own."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="encryption",
        kind=FILTER,
        help="store objects encrypted and authenticated; clients see them as they were",
        parameters=(
            Parameter("key", "str", "identifier of the root key; by default the one active when the object comes"),
        ),
        places=(PROXY, STORAGE_NODE),
        stage=500,
        changes_content=True,
        changes_length=True,
        reversible=True,
        random_access=True,
        protective=True,
        about=(OBJECTS, VOLUMES),
    )
    #: AES-GCM runs at several GB/s: a thread switch costs more than a piece.
    heavy: ClassVar[bool] = False
    reproducible: ClassVar[bool] = False
    #: Plain bytes per segment, what a one-byte range costs.
    segment: ClassVar[int] = 64 << 10

    def __init__(self, params: Mapping[str, Scalar] | None = None) -> None:
        super().__init__(params)
        self._key = read_policy_key(self.params)

    def applies(self, hint: Hint) -> bool:
        return hint.size != 0

    def encoder(self, hint: Hint) -> Stream:
        """As the base class.

        :raises MissingKey: when there is no key, since objects are never stored plain instead
        """
        key_id = self._key_id()
        return seal_object(key_id, self.surroundings.keys.secret(key_id), self.segment)

    def writes(self, record: Record) -> bool:
        """As the base class.

        :raises MissingKey: when there is no active key
        """
        return record.get("key") == self._key_id()

    def _key_id(self) -> str:
        return self.surroundings.keys.active() if self._key is None else self._key

    def decoder(self, record: Record, window: Window | None = None) -> Stream:
        """As the base class.

        :raises MissingKey: before any byte is read
        """
        return SegmentDecoder(*open_record(record, self.surroundings.keys), window)

    def locate(self, record: Record, start: int, stop: int) -> Window:
        """As the base class.

        :raises MissingKey: since unverified sizes must not be used
        """
        layout, _ = open_record(record, self.surroundings.keys)
        return layout.locate(start, stop)
