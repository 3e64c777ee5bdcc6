"""The vocabulary of this cluster: what is installed, and the words the language knows besides."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from sluice_controller.config import Config
from sluice_controller.projects import Projects, Session
from sluice_core.describe import STORLET, ActionInfo
from sluice_core.errors import SluiceError
from sluice_core.messages import Upload
from sluice_dsl.catalogue import Catalogue
from sluice_dsl.vocabulary import KNOWN_WORDS, TERMS
from sluice_filters import registry as filters
from sluice_metrics import registry as metrics
from sluice_sandbox.api import info_of
from sluice_sandbox.storlets_explicit import Explicit

log = logging.getLogger(__name__)


def with_uploads(native: Catalogue, uploads: Mapping[str, Upload]) -> Catalogue:
    """``native`` and the filters registered at run time that have code."""
    usable = {}
    for keyword, upload in uploads.items():
        if upload.sha256:
            try:
                usable[keyword] = info_of(upload)
            except SluiceError as error:  # registered by a version that knew more
                log.error("skipped registered filter `%s`: %s", keyword, error)
    if not usable:
        return native
    explicit = _explicit(any(one.environment == STORLET for one in usable.values()))
    return replace(native, actions={**usable, **native.actions, **explicit})


def _explicit(available: bool) -> dict[str, ActionInfo]:
    """The word by which clients may run storlets themselves: of use once there are some."""
    return {Explicit.info.keyword: replace(Explicit.info, available=available)}


def with_projects(native: Catalogue, config: Config) -> Catalogue:
    """``native`` with the names of Keystone's projects as tenants; connects when the first one is looked up."""

    def open_session() -> Session:
        from sluice_controller.keystone_door import read_conf, system_session

        found: Session = system_session(read_conf(config.keystone_source))
        return found

    prefix = config.reseller_prefix
    return replace(native, tenants=Projects(open_session, prefix), account_prefix=prefix)


def build_catalogue(default_tenant: str = "", erasure_coded: str = "") -> Catalogue:
    """What sentences are checked against; an installed filter takes the place of a known word.

    :param erasure_coded: containers, separated by commas
    """
    installed = filters.load_filters()
    return Catalogue(
        actions={**KNOWN_WORDS, **_explicit(available=False), **filters.descriptions(installed)},
        metrics=metrics.descriptions(),
        terms=TERMS,
        default_tenant=default_tenant,
        erasure_coded=frozenset(filter(None, map(str.strip, erasure_coded.split(",")))),
        trials=installed,
    )
