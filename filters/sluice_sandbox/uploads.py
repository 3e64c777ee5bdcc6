"""From registered uploads and the code on this node to filters that hosts can use."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from sluice_core.code.code_store import BadUpload, CodeStore, WrongDigest
from sluice_core.errors import SluiceError
from sluice_core.messages.uploads import Upload
from sluice_filters.api import Filter
from sluice_sandbox.api import SandboxTeam, filter_class

_log = logging.getLogger(__name__)


def uploaded_filters(
    uploads: Iterable[Upload],
    store: CodeStore,
    teams: Mapping[str, SandboxTeam],
    failures: dict[str, str] | None = None,
) -> dict[str, type[Filter]]:
    """The usable ones of ``uploads`` by keyword, to be merged with those of ``load_filters``.

    One that this node cannot run is reported and left out, so that it harms no other.

    :param teams: the environments of this node by name
    :param failures: takes the reason of each upload that was left out, by its keyword
    """
    found: dict[str, type[Filter]] = {}
    for upload in uploads:
        try:
            found[upload.keyword] = _usable(upload, store, teams)
        except SluiceError as error:
            _log.warning("uploaded filter `%s` is left out: %s", upload.keyword, error)
            if failures is not None:
                failures[upload.keyword] = str(error)
    return found


def _usable(upload: Upload, store: CodeStore, teams: Mapping[str, SandboxTeam]) -> type[Filter]:
    team = teams.get(upload.environment)
    if team is None:
        known = ", ".join(teams) or "none"
        raise BadUpload(f"environment `{upload.environment}` is not on this node, which has {known}")
    code = store.read(upload.sha256)
    if len(code) != upload.size:
        raise WrongDigest(f"code of filter `{upload.keyword}` has {len(code)} bytes, expected {upload.size}")
    found = filter_class(upload, team)
    team.admit(upload, code)
    return found
