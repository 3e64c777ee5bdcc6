"""The filters of a host that are registered at run time.

A host has a dictionary of filters that all code of the process shares.  :class:`InstalledFilters` keeps it: first the
installed filters, then those of the newest snapshot whose code is on this node: isolated ones, and native ones with a
passed trial.  An environment is made when the first filter needs it, and stays as long as the process.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sluice_code.code_store import CodeStore
from sluice_code.proven import ProvenCode
from sluice_core.describe import PROCESS, STORLET, TRIED, WASM
from sluice_core.errors import CallerError, NotFound, SluiceError
from sluice_core.messages.uploads import FILTER_CODE, Upload
from sluice_core.options import Option
from sluice_filters.api import Filter, HostServices
from sluice_filters.trial.native import native_filter
from sluice_sandbox.api import SandboxTeam, load_filter
from sluice_sandbox.storlets import options as storlets_options
from sluice_sandbox.storlets.invocation import StorletInvocation, invocation_filter

OPTIONS: Final = (
    Option("code_dir", "", "folder where the node's agent keeps uploaded code; empty: no uploaded filters"),
    Option("sandbox_dir", "", "folder of `sluice-sandbox serve`, for filters of the environment process"),
    Option("wasm_cache", "", "private folder for compiled WebAssembly; empty: compile in each process"),
    *(
        Option(storlets_options.PREFIX + name, "", help_text)
        for name, (_, help_text) in storlets_options.OPTIONS.items()
    ),
)
Logger = logging.Logger | logging.LoggerAdapter[Any]


class InstalledFilters:
    """The filters of one process, in ``filters``, which stays the same dictionary."""

    def __init__(
        self,
        native: Mapping[str, type[Filter]],
        options: Mapping[str, Any],
        logger: Logger,
        prefix: str = "",
        surroundings: HostServices | None = None,
    ) -> None:
        """
        :param options: the values of :data:`OPTIONS`, their names beginning with ``prefix``
        :param surroundings: services of the process for native filters
        """
        self.filters: dict[str, type[Filter]] = dict(native)
        self._options = {option.name: options[prefix + option.name] for option in OPTIONS}
        if self._options[storlets_options.PREFIX + "engine"]:
            self.filters[StorletInvocation.info.keyword] = invocation_filter(self.filters)
        self._built_in = dict(self.filters)
        self._logger = logger
        self._teams: dict[str, SandboxTeam] = {}
        #: Revisions that were requested by their code, besides those in ``filters``.
        self._revisions: dict[str, type[Filter]] = {}
        self._taken: tuple[Upload, ...] = ()
        self._failures: dict[str, str] = {}
        self._behind = False
        self._surroundings = HostServices() if surroundings is None else surroundings
        folder = self._options["code_dir"]
        self._store = store = CodeStore(folder) if folder else None
        self._native = ProvenCode(FILTER_CODE, store, self._loaded, logger, self._built_in) if store else None

    def update(self, uploads: tuple[Upload, ...]) -> bool:
        """Offer the filters of ``uploads``, and no other uploaded ones; return True when ``filters`` changed.

        Failures are repeated at each call, since code may have arrived meanwhile.
        """
        changed = self._native is not None and self._native.update(uploads)
        if uploads is self._taken and not (self._failures or self._behind or changed):
            return False
        native = {} if self._native is None else self._native.found
        known = {one.keyword: getattr(self.filters.get(one.keyword), "upload", None) for one in uploads}
        registered = [one for one in uploads if self._is_isolated(one)]
        wanted = [self._at_hand(one) for one in registered]
        self._behind = wanted != registered
        isolated: dict[str, type[Filter]] = {}
        failures: dict[str, str] = {}
        for upload in wanted:
            if known[upload.keyword] == upload:
                continue
            try:
                isolated[upload.keyword] = self._isolated(upload)
            except SluiceError as error:
                failures[upload.keyword] = str(error)
        gone = set(self.filters) - set(self._built_in) - {one.keyword for one in wanted} - set(native)
        for keyword, reason in failures.items():
            if self._failures.get(keyword) != reason:
                self._logger.warning("sluice: uploaded filter `%s` is left out: %s", keyword, reason)
        self._taken, self._failures = uploads, failures
        for keyword in gone:
            del self.filters[keyword]
        self.filters.update(isolated)
        self.filters.update(native)
        return bool(isolated or gone or changed)

    def revision(self, keyword: str, sha256: str) -> type[Filter] | None:
        """Return the uploaded filter ``keyword`` in the revision with the code ``sha256``, which its user has accepted;
        None when no such filter was uploaded.

        :raises CallerError: when none of its revisions has that code
        :raises SluiceError: when this node does not have it, or cannot run it
        """
        uploaded = next((one for one in self._taken if one.keyword == keyword and one.kind == FILTER_CODE), None)
        if uploaded is None or not uploaded.sha256 or keyword in self._built_in:
            return None
        if not sha256:
            raise CallerError(
                f"filter `{keyword}` is uploaded code, expected the SHA-256 of the revision that is accepted; "
                f"the newest is `{uploaded.sha256}`"
            )
        current = self.filters.get(keyword)
        running = getattr(current, "upload", None)
        if running is not None and running.sha256 == sha256:
            return current
        revision = next((one for one in (uploaded.current, *uploaded.revisions) if one.sha256 == sha256), None)
        if revision is None or not self._is_isolated(uploaded):
            raise NotFound(f"filter `{keyword}` has no revision with the code `{sha256}` here")
        if sha256 not in self._revisions:
            self._revisions[sha256] = self._isolated(uploaded.at(revision))
        return self._revisions[sha256]

    def _is_isolated(self, upload: Upload) -> bool:
        ours = upload.kind == FILTER_CODE and upload.environment not in TRIED
        return ours and bool(upload.sha256) and upload.keyword not in self._built_in

    def _at_hand(self, upload: Upload) -> Upload:
        """The upload in the newest revision whose code is here; the newest revision when there is none."""
        store = self._store
        if store is None or getattr(self.filters.get(upload.keyword), "upload", None) == upload:
            return upload
        here = (one for one in (upload.current, *upload.revisions) if one.sha256 and store.has(one.sha256))
        return next(map(upload.at, here), upload)

    def _loaded(self, upload: Upload, code: bytes) -> type[Filter]:
        return native_filter(upload, code).bound(self._surroundings)

    def _isolated(self, upload: Upload) -> type[Filter]:
        """
        :raises SluiceError: when this node cannot run it
        """
        if self._store is None:
            raise SluiceError("this node was given no folder for code, its option `code_dir` names one")
        team = self._teams.get(upload.environment)
        if team is None:
            team = self._teams[upload.environment] = self._open_team(upload.environment, self._store)
        return load_filter(upload, self._store, team)

    def _open_team(self, environment: str, store: CodeStore) -> SandboxTeam:
        """
        :raises SluiceError: when this node is not configured for that environment
        """
        team: SandboxTeam | None = None
        if environment == PROCESS and self._options["sandbox_dir"]:
            from sluice_sandbox.process.session import ProcessTeam

            team = ProcessTeam(store, Path(self._options["sandbox_dir"]))
        elif environment == WASM:
            from sluice_sandbox.wasm.session import WasmTeam

            cache = self._options["wasm_cache"]
            team = WasmTeam(store, Path(cache) if cache else None)
        elif environment == STORLET:
            team = storlets_options.storlet_team(self._options, store)
        if team is None:
            raise SluiceError(f"environment `{environment}` is not set up on this node")
        return team
