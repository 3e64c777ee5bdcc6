"""Reads a configuration document (``sluice_controller.configuration.export``), or reports every fault in it.

Everything is checked as by the other calls: sentences are compiled against the vocabulary *of the document* and
against each other.  A policy that is equal to the present one keeps its compiled plan, so importing an export changes
nothing, even if the vocabulary grew since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.vocabulary import with_uploads
from sluice_controller.catalog.vocabulary_index import VocabularyIndex
from sluice_controller.configuration.configuration import Configuration
from sluice_controller.configuration.document_reader import DocumentReader, Faults
from sluice_controller.configuration.export import CODE_SECTIONS, FORMAT
from sluice_controller.configuration.policy_compiler import PolicyCompiler
from sluice_controller.registry.group_documents import unfold_members
from sluice_controller.validation.parameters import refuse_unknown
from sluice_core.errors import CallerError
from sluice_core.messages.registry import METRIC_ENTRY, TERM
from sluice_core.messages.uploads import FILTER_CODE, METRIC_CODE
from sluice_dsl.catalogue.base import Catalogue

_SECTIONS: Final = ("sluice", "policies", "registry", *CODE_SECTIONS)


def read_configuration(data: Any, backend: Backend, by: str, now: Configuration) -> Configuration:
    """The configuration that ``data`` describes, where ``now`` is the one that stands.

    :raises CallerError: naming everything that is wrong
    """
    if not isinstance(data, Mapping):
        raise CallerError("the body is no mapping, expected `sluice: 1` and what belongs to it")
    refuse_unknown(data, _SECTIONS, "section")
    if data.get("sluice") != FORMAT or isinstance(data["sluice"], bool):
        raise CallerError(f"`sluice` is `{data.get('sluice')}`, expected {FORMAT}, the version of the format")
    faults = Faults()
    reader = DocumentReader(by, int(backend.now() * 1000), now, faults)
    entries = {one.key: one for one in unfold_members(reader.all(data, "registry", reader.entry, attrgetter("key")))}
    found = [
        one
        for name in CODE_SECTIONS
        for one in reader.all(data, name, partial(reader.upload, name), attrgetter("keyword"))
    ]
    uploads = {one.key: one for one in found}
    native = backend.built_in
    _refuse_built_in(native, [*(entries.keys() - now.entries), *(uploads.keys() - now.uploads)], faults)
    faults.end()
    catalogue = VocabularyIndex.from_entries(entries).extend(with_uploads(native, uploads))
    items = reader.all(data, "policies", reader.policy, attrgetter("id"))
    faults.end()
    policies = PolicyCompiler(catalogue, now, faults, backend.config.text_limit).compile(items)
    faults.end()
    return Configuration(policies, uploads, entries)


def _refuse_built_in(native: Catalogue, keys: Iterable[str], faults: Faults) -> None:
    """What stands already may have been taken over by a built-in since; nothing new may have such a name."""
    taken = {METRIC_CODE: native.metrics, METRIC_ENTRY: native.metrics, TERM: native.terms}
    for key in sorted(keys):
        kind, slash, name = key.rpartition("/")
        if name in taken.get(kind, ()) or (not slash and name in native.actions):
            faults.add(f"{kind or FILTER_CODE} `{name}`", CallerError("is a keyword of the language already"))
