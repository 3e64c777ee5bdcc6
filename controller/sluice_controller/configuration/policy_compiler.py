"""Compiles the policies of a configuration document against its vocabulary and against each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from sluice_controller.configuration.configuration import Configuration
from sluice_controller.configuration.document_reader import Faults, ImportedPolicy
from sluice_controller.configuration.export import policy_document
from sluice_controller.policies.freeze import KEPT
from sluice_core.errors import CallerError, SluiceError
from sluice_core.messages.policies import Assignment, Policy
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.compile import ExistingPolicy, PolicyErrors, compile_text
from sluice_dsl.plan import Plan


class PolicyCompiler:
    """Compiles the policies of a document; those that are as they stand keep their plans."""

    def __init__(self, catalogue: Catalogue, now: Configuration, faults: Faults, longest: int) -> None:
        self._catalogue = catalogue
        self._now = now
        self._faults = faults
        self._longest = longest
        #: By account; those about no account in particular may contradict any.
        self._by_account: dict[str, list[ExistingPolicy]] = defaultdict(list)

    def compile(self, items: Sequence[ImportedPolicy]) -> dict[str, Policy]:
        """All that can be compiled, by id."""
        found: dict[str, Policy] = {}
        new: list[ImportedPolicy] = []
        for item in items:
            standing = self._now.policies.get(item.id)
            if standing is not None and _says_the_same(item, standing):
                found[item.id] = standing
                self._settle(item.id, Plan.from_data(standing.plan))
            else:
                new.append(item)
        for item in new:
            try:
                policy, plan = self._kept(item) if item.kept is not None else self._compiled(item)
            except PolicyErrors as errors:
                self._faults.add(f"policy `{item.id}`", CallerError(errors.problems[0].message))
            except SluiceError as error:
                self._faults.add(f"policy `{item.id}`", error)
            else:
                found[item.id] = policy
                self._settle(item.id, plan)
        return {item.id: found[item.id] for item in items if item.id in found}

    def _settle(self, name: str, plan: Plan) -> None:
        policy = ExistingPolicy(name, plan)
        self._by_account[policy.account].append(policy)

    def _compiled(self, item: ImportedPolicy) -> tuple[Policy, Plan]:
        if len(item.policy) > self._longest:
            raise CallerError(f"the sentence has {len(item.policy)} characters, expected at most {self._longest}")
        compiled = compile_text(item.policy, self._catalogue, self._rivals)
        if len(compiled) != 1:
            raise CallerError(f"{len(compiled)} sentences, expected one")
        (one,) = compiled
        return _policy(item, one.text, one.plan.to_data(), one.plan), one.plan

    def _rivals(self, account: str) -> list[ExistingPolicy]:
        """The policies that may contradict one about ``account`` (empty: about none in particular)."""
        names = ("", account) if account else tuple(self._by_account)
        return [one for name in names for one in self._by_account[name]]

    def _kept(self, item: ImportedPolicy) -> tuple[Policy, Plan]:
        """A policy that an actor left behind: static, with the assignments that it had."""
        assert item.kept is not None
        plan = Plan.from_data(_plain_mapping(item.kept.get("plan"), "plan"))
        if plan.dynamic or not plan.actions:
            raise CallerError("`plan` of a kept policy watches metrics, or has no action")
        given = item.kept.get("assignments")
        if not isinstance(given, list):
            raise CallerError("`assignments` of a kept policy is no list")
        for one in map(Assignment.from_data, (_plain_mapping(each, "assignments") for each in given)):
            if one.policy != item.id or not one.id.startswith(f"{item.id}."):
                raise CallerError(f"assignment `{one.id}` is not one of this policy")
            if self._catalogue.action(one.keyword) is None:
                raise CallerError(f"unknown keyword `{one.keyword}`")
        return _policy(item, item.policy, {**plan.to_data(), KEPT: given}, plan), plan


def _policy(item: ImportedPolicy, text: str, data: Mapping[str, Any], plan: Plan) -> Policy:
    return Policy(
        item.id, item.source, text, data, plan.dynamic, item.created, item.created_by, item.enabled, item.origin
    )


def _says_the_same(item: ImportedPolicy, standing: Policy) -> bool:
    there = policy_document(standing)
    mine = {each.name: getattr(item, each.name) for each in fields(ImportedPolicy)}
    defaults = {"source": standing.text, "enabled": True, "created_by": "", "origin": "", KEPT: None}
    return mine == {name: there.get(name, defaults.get(name)) for name in mine}


def _plain_mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise CallerError(f"`{name}` is no mapping")
    return value
