"""Compiles the policies of a configuration document against its vocabulary and against each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from sluice_controller.configuration.configuration import Configuration
from sluice_controller.configuration.document_reader import Faults
from sluice_controller.configuration.export import policy_document
from sluice_controller.policies.services import KEPT
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

    def compile(self, items: Sequence[Policy]) -> dict[str, Policy]:
        """All that can be compiled, by id."""
        found: dict[str, Policy] = {}
        new: list[Policy] = []
        for item in items:
            standing = self._now.policies.get(item.id)
            if standing is not None and policy_document(item) == policy_document(standing):
                found[item.id] = standing
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
                found[item.id] = policy
                self._settle(item.id, plan)
        return {item.id: found[item.id] for item in items if item.id in found}

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
        """The policies that may contradict one about ``account`` (empty: about none in particular)."""
        names = ("", account) if account else tuple(self._by_account)
        return [one for name in names for one in self._by_account[name]]

    def _kept(self, item: Policy) -> tuple[Policy, Plan]:
        """A policy that an actor left behind: static, with the assignments that it had."""
        plan = Plan.from_data(item.plan)
        if plan.dynamic or not plan.actions:
            raise CallerError("`plan` of a kept policy watches metrics, or has no action")
        for one in map(Assignment.from_data, item.plan[KEPT]):
            if one.policy != item.id or not one.id.startswith(f"{item.id}."):
                raise CallerError(f"assignment `{one.id}` is not one of this policy")
            if self._catalogue.action(one.keyword) is None:
                raise CallerError(f"unknown keyword `{one.keyword}`")
        return replace(item, plan={**plan.to_data(), KEPT: item.plan[KEPT]}), plan
