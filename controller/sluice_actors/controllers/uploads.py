"""The uploads that an actor host needs: controllers, and the filters that their answers may set.

Filters and metrics are known by their description alone (``Upload.info``): their code is not loaded.  Filters of
third parties' packages are not known here; a controller can set Sluice's own filters and the uploaded ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, Final

from sluice_code.code_store import BadUpload, CodeStore
from sluice_code.swift_code_store import SwiftCodeStore
from sluice_code.volume_filters import describe_volume_filter
from sluice_core.describe import FILTER, NBDKIT, PLACES, PROXY, STORLET, ActionInfo, Parameter
from sluice_core.errors import DecodeError, SluiceError
from sluice_core.messages.policies import Change
from sluice_core.messages.uploads import CONTROLLER_CODE, FILTER_CODE, METRIC_CODE, Upload
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_volumes.metrics import SLOW_PERIODS

log = logging.getLogger(__name__)

_FIELDS: Final = frozenset(one.name for one in fields(ActionInfo))
_PERIOD: Final = 1.0


class UploadIndex:
    """The uploads of one store, kept up to date with the change stream."""

    def __init__(self) -> None:
        self._uploads: dict[str, Upload] = {}
        self._native = default_catalogue()
        self._catalogue: Catalogue | None = None

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue that checks answers; a new object after each change of the uploaded filters."""
        if self._catalogue is None:
            described = {
                one.keyword: _read(one) for one in self._uploads.values() if one.kind == FILTER_CODE and one.sha256
            }
            usable = {keyword: info for keyword, info in described.items() if info is not None}
            self._catalogue = replace(self._native, actions={**usable, **self._native.actions})
        return self._catalogue

    @property
    def controllers(self) -> list[str]:
        """The names of all controllers."""
        return [one.keyword for one in self._uploads.values() if one.kind == CONTROLLER_CODE]

    def period(self, metric: str) -> float:
        """Seconds between two windows of ``metric``, as far as known before its first window."""
        upload = self._uploads.get(f"{METRIC_CODE}/{metric}")
        period = SLOW_PERIODS.get(metric, _PERIOD) if upload is None else upload.info.get("period", _PERIOD)
        return float(period) if isinstance(period, int | float) and period > 0 else _PERIOD

    def replace(self, uploads: Iterable[Upload]) -> None:
        """Replaces all uploads by ``uploads``."""
        self._uploads = {one.key: one for one in uploads}
        self._catalogue = None

    def apply(self, change: Change) -> None:
        """Applies the changes of uploads in ``change``."""
        for key in change.upload_drops:
            self._uploads.pop(key, None)
        for upload in change.uploads:
            self._uploads[upload.key] = upload
        if change.uploads or change.upload_drops:
            self._catalogue = None


def _read(upload: Upload) -> ActionInfo | None:
    try:
        return action_of(upload)
    except DecodeError as error:
        log.error("controllers cannot use filter `%s`: %s", upload.keyword, error)
        return None


def action_of(upload: Upload) -> ActionInfo:
    """The description of an uploaded filter; the API has checked all of it at the upload.

    :raises DecodeError: when a newer version with unknown fields has registered it
    """
    if upload.environment == NBDKIT:
        try:
            return describe_volume_filter(upload)
        except BadUpload as error:
            raise DecodeError(str(error), upload.encode()) from error
    reads = not upload.reverse
    places = (PROXY,) if upload.reverse and upload.environment == STORLET else PLACES
    values: dict[str, Any] = {
        "help": "",
        "places": places,
        "on_put": not reads,
        "on_get": reads,
        "changes_content": True,
        "changes_length": True,
        "reversible": upload.reverse,
        **{name: value for name, value in upload.info.items() if name in _FIELDS},
    }
    try:
        values["parameters"] = tuple(map(Parameter.from_data, values.get("parameters", ())))
        values |= {name: tuple(values[name]) for name in ("places", "about") if name in values}
        values.setdefault("default_place", values["places"][0])
        named = {"keyword": upload.keyword, "kind": FILTER, "environment": upload.environment}
        return ActionInfo(**{**values, **named, "version": upload.revision})
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise DecodeError(f"its description cannot be read: {error}", upload.encode()) from error


class CodeSource:
    """The code of controllers by its SHA-256, from Swift or a folder of this host; verified at each read.

    :param shelf: None if the host has no configured store for code
    """

    def __init__(self, shelf: SwiftCodeStore | None, store: CodeStore) -> None:
        self._shelf = shelf
        self._store = store

    async def get(self, sha256: str) -> bytes:
        """Return the code; waits for Swift in a thread.

        :raises SluiceError: when it cannot be read
        """
        return await asyncio.to_thread(self._get, sha256)

    def _get(self, sha256: str) -> bytes:
        try:
            if not self._store.has(sha256):
                if self._shelf is None:
                    raise SluiceError(
                        "this actor host was given no place for code, its options `code_auth_url` … name one"
                    )
                with self._shelf.get(sha256) as pieces:
                    self._store.add(pieces, sha256)
            return self._store.read(sha256)
        except OSError as error:
            raise SluiceError(f"folder `{self._store.folder}`: {error.strerror}") from error
