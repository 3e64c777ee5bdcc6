"""Reads a configuration document (``sluice_controller.configuration.export``), or reports every fault in it.

Everything is checked as by the other calls: sentences are compiled against the vocabulary *of the document* and
against each other.  A policy that is equal to the present one keeps its compiled plan, so importing an export changes
nothing, even if the vocabulary grew since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.vocabulary import with_uploads
from sluice_controller.catalog.vocabulary_index import VocabularyIndex
from sluice_controller.configuration.configuration import Configuration
from sluice_controller.configuration.document_reader import DocumentReader, Faults
from sluice_controller.configuration.export import CODE_SECTIONS, FORMAT, policy_document, unfold_members
from sluice_controller.policies.services import KEPT
from sluice_controller.validation.parameters import refuse_unknown
from sluice_core.errors import CallerError, SluiceError
from sluice_core.messages.policies import Assignment, Policy
from sluice_core.messages.registry import METRIC_ENTRY, TERM
from sluice_core.messages.uploads import FILTER_CODE, METRIC_CODE
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.compile import ExistingPolicy, PolicyErrors, compile_text
from sluice_dsl.plan import Plan


class PolicyCompiler:
    """Compiles the policies of a document; unchanged ones keep their plans."""

    def __init__(self, catalogue: Catalogue, now: Configuration, faults: Faults, longest: int) -> None:
        self._catalogue = catalogue
        self._now = now
        self._faults = faults
        self._longest = longest
        #: By account; policies about no single account may contradict any.
        self._by_account: dict[str, list[ExistingPolicy]] = defaultdict(list)

    def compile(self, items: Sequence[Policy]) -> dict[str, Policy]:
        """All valid policies, by id."""
        compiled: dict[str, Policy] = {}
        new: list[Policy] = []
        for item in items:
            standing = self._now.policies.get(item.id)
            if standing is not None and policy_document(item) == policy_document(standing):
                compiled[item.id] = standing
                self._settle(item.id, Plan.from_data(standing.plan))
            else:
                new.append(item)
        for item in new:
            try:
                policy, plan = self._kept(item) if KEPT in item.plan else self._compiled(item)
            except PolicyErrors as errors:
                self._faults.add(f"policy `{item.id}`", CallerError(errors.problems[0].message))
            except SluiceError as error:
                self._faults.add(f"policy `{item.id}`", error)
            else:
                compiled[item.id] = policy
                self._settle(item.id, plan)
        return {item.id: compiled[item.id] for item in items if item.id in compiled}

    def _settle(self, name: str, plan: Plan) -> None:
        policy = ExistingPolicy(name, plan)
        self._by_account[policy.account].append(policy)

    def _compiled(self, item: Policy) -> tuple[Policy, Plan]:
        if len(item.text) > self._longest:
            raise CallerError(f"the sentence has {len(item.text)} characters, expected at most {self._longest}")
        compiled = compile_text(item.text, self._catalogue, self._rivals, kept=True)
        if len(compiled) != 1:
            raise CallerError(f"{len(compiled)} sentences, expected one")
        (one,) = compiled
        return replace(item, text=one.text, plan=one.plan.to_data(), dynamic=one.plan.dynamic), one.plan

    def _rivals(self, account: str) -> list[ExistingPolicy]:
        """The policies that may contradict one about ``account`` (empty: about no single account)."""
        names = ("", account) if account else tuple(self._by_account)
        return [one for name in names for one in self._by_account[name]]

    def _kept(self, item: Policy) -> tuple[Policy, Plan]:
        """A policy that was kept of an actor: static, with its own assignments."""
        plan = Plan.from_data(item.plan)
        if plan.dynamic or not plan.actions:
            raise CallerError("`plan` of a kept policy watches metrics, or has no action")
        for assignment in map(Assignment.from_data, item.plan[KEPT]):
            if assignment.policy != item.id or not assignment.id.startswith(f"{item.id}."):
                raise CallerError(f"assignment `{assignment.id}` does not belong to this policy")
            if self._catalogue.action(assignment.keyword) is None:
                raise CallerError(f"unknown keyword `{assignment.keyword}`")
        return replace(item, plan={**plan.to_data(), KEPT: item.plan[KEPT]}), plan


_SECTIONS: Final = ("sluice", "policies", "registry", *CODE_SECTIONS)


def read_configuration(data: Any, backend: Backend, by: str, now: Configuration) -> Configuration:
    """The configuration that ``data`` describes; ``now`` is the present one.

    :raises CallerError: naming every fault
    """
    if not isinstance(data, Mapping):
        raise CallerError("the body is not a mapping, expected `sluice: 1` and further sections")
    refuse_unknown(data, _SECTIONS, "section")
    if data.get("sluice") != FORMAT or isinstance(data["sluice"], bool):
        raise CallerError(f"`sluice` is `{data.get('sluice')}`, expected {FORMAT}, the version of the format")
    faults = Faults()
    reader = DocumentReader(by, int(backend.now() * 1000), now, faults)
    entries = {one.key: one for one in unfold_members(reader.all(data, "registry", reader.entry, attrgetter("key")))}
    all_code = [
        one
        for name in CODE_SECTIONS
        for one in reader.all(data, name, partial(reader.upload, name), attrgetter("keyword"))
    ]
    uploads = {one.key: one for one in all_code}
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
    """Refuse new objects with the name of a built-in; present objects may have been taken over since."""
    taken = {METRIC_CODE: native.metrics, METRIC_ENTRY: native.metrics, TERM: native.terms}
    for key in sorted(keys):
        kind, slash, name = key.rpartition("/")
        if name in taken.get(kind, ()) or (not slash and name in native.actions):
            faults.add(f"{kind or FILTER_CODE} `{name}`", CallerError("is already a keyword of the language"))
