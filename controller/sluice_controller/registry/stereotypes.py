"""Stereotypes: named sets of sentences with a placeholder for the target, applied to a tenant or container in one call.

The placeholder is the target of a sentence: ``FOR {target} …``; ``FOR TENANT {target} …`` fits tenants alone.  Policies
of a stereotype have the origin ``stereotype/<name>``, the only record of where it is applied.  A changed stereotype
replaces its policies at all of these targets in the same change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from sluice_controller.catalog import entries, reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import RecordKind, StoredRecord
from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy
from sluice_controller.catalog.reference_guards import policies_of_origin
from sluice_controller.errors import check_version
from sluice_controller.policies import deployments, generated_policies
from sluice_controller.policies.generated_policies import GeneratedPolicies, PolicyChanges
from sluice_controller.validation.bodies import Body
from sluice_controller.validation.names import new_name
from sluice_core.errors import CallerError, NotFound
from sluice_core.messages.policies import CONTAINER, NAME, TENANT, Target
from sluice_core.messages.registry import HOLE, STEREOTYPE, Stereotype
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.compile import ExistingPolicy, compile_text
from sluice_dsl.diagnostics import ERROR, PolicyErrors, Reporter
from sluice_dsl.syntax import ast
from sluice_dsl.syntax.grammar import parse

FIELDS: Final = ("name", "text", "help")


def origin_of(name: str) -> str:
    """The origin of the policies of a stereotype."""
    return f"stereotype/{name}"


_STEREOTYPES: Final = RecordKind(
    Stereotype, STEREOTYPE, "stereotype", lambda contents, one: policies_of_origin(contents, origin_of(one.name))
)
list_all = _STEREOTYPES.list_all
find = _STEREOTYPES.find
#: With ``force`` also while it is applied; its policies then stay.
delete = _STEREOTYPES.delete


def applications(contents: CacheContents, name: str) -> dict[tuple[str, str], list[CachedPolicy]]:
    """The targets of a stereotype: level and path of a target → its policies there, oldest first."""
    origin, places = origin_of(name), dict[tuple[str, str], list[CachedPolicy]]()
    for one in contents.ordered:
        if one.policy.origin == origin:
            places.setdefault((one.plan.target.level, one.plan.target.name), []).append(one)
    return places


def create(backend: Backend, data: Any, by: str, limit: int) -> StoredRecord[Stereotype]:
    """Create a stereotype of at most ``limit`` characters.

    :raises CallerError: when it is not valid
    """
    body = Body(data, *FIELDS)
    name = new_name(body.text("name"))
    text = body.text("text", longest=limit)
    _try(text, backend.catalogue)
    return entries.create(backend, Stereotype(name, text, body.text("help", "")), by)


def update(
    backend: Backend, name: str, data: Any, by: str, limit: int, expected: int | None = None
) -> tuple[StoredRecord[Stereotype], GeneratedPolicies]:
    """Change the sentences, and replace the policies at all targets; in one change, or not at all.

    :raises PolicyErrors: when a sentence does not compile for a target
    """
    body = Body(data, *FIELDS)
    asked = body.text("name", name)
    if asked != name:
        raise CallerError(f"`name` is `{asked}`, but a stereotype keeps its name `{name}`")

    def once() -> GeneratedPolicies:
        old = find(backend, name)
        text, words = body.text("text", old.record.text, limit), body.text("help", old.record.help)
        new = replace(old.record, text=text, help=words)
        contents = backend.policy_cache.contents()
        catalogue = backend.vocabulary(contents)
        _try(new.text, catalogue)
        check_version(f"stereotype `{name}`", old.version, expected)
        settled = _everywhere(contents, new, catalogue)
        entry = new.entry(old.created, old.created_by)
        entries_now = () if new == old.record else (entry,)
        expect = {f"entry/{entry.key}": old.version}
        return generated_policies.commit(backend, settled, by, entries_now, expect, contents=contents)

    done = reference_guards.retry_conflicts(once)
    return find(backend, name), done


def apply(backend: Backend, name: str, target: Target, by: str) -> GeneratedPolicies:
    """Apply the stereotype to ``target``; a repetition only restores policies that were deleted since.

    :raises NotFound: when there is no such stereotype
    :raises PolicyErrors: when a sentence does not compile for this target, or contradicts another policy
    """

    def once() -> GeneratedPolicies:
        stereotype = find(backend, name)
        contents = backend.policy_cache.contents()
        catalogue = backend.vocabulary(contents)
        old = applications(contents, name).get((target.level, target.name), [])
        text = _filled(stereotype.record.text, deployments.keep_label(target, old, catalogue))
        others = generated_policies.policies_except(contents, old)
        settled = generated_policies.plan_changes(text, origin_of(name), old, others, catalogue)
        expect = {f"entry/{STEREOTYPE}/{name}": stereotype.version}
        return generated_policies.commit(backend, [settled], by, expect=expect, contents=contents)

    return reference_guards.retry_conflicts(once)


def withdraw(backend: Backend, name: str, target: Target, by: str) -> GeneratedPolicies:
    """Remove the policies of the stereotype for ``target``.

    :raises NotFound: when it is not applied there
    """
    old = policies_applied_at(backend, name, target)
    return generated_policies.commit(backend, [PolicyChanges(origin_of(name), (), tuple(old), ())], by)


def policies_applied_at(backend: Backend, name: str, target: Target) -> list[CachedPolicy]:
    """The policies of a stereotype at ``target``.

    :raises NotFound: when it is not applied there
    """
    policies = applications(backend.policy_cache.contents(), name).get((target.level, target.name))
    if policies is None:
        find(backend, name)
        raise NotFound(f"stereotype `{name}` is not applied to {target.level} `{target.name}`")
    return policies


def _everywhere(contents: CacheContents, new: Stereotype, catalogue: Catalogue) -> list[PolicyChanges]:
    """Plan the changes at each target; sentences are also checked against those of the previous targets."""
    places = applications(contents, new.name)
    others = generated_policies.policies_except(contents, [one for old in places.values() for one in old])
    changes = []
    for (level, path), old in places.items():
        target = deployments.keep_label(Target(level, NAME, path), old, catalogue)
        settled = generated_policies.plan_changes(
            _filled(new.text, target), origin_of(new.name), old, others, catalogue
        )
        others += [one.existing for one in settled.stay] + [ExistingPolicy("", one.plan) for one in settled.new]
        changes.append(settled)
    return changes


def _try(text: str, catalogue: Catalogue) -> None:
    """Check that a stereotype fits a tenant or a container.

    :raises PolicyErrors: its problems for a tenant, when it fits neither
    """
    first: CallerError | None = None
    account = f"{catalogue.account_prefix or 'AUTH_'}stand_in"
    for target in (Target(TENANT, NAME, account), Target(CONTAINER, NAME, f"{account}/container")):
        try:
            compile_text(_filled(text, target), catalogue)
        except CallerError as error:
            first = first or error
        else:
            return
    assert first is not None
    raise first


def _filled(text: str, target: Target) -> str:
    """The sentences of ``text`` about ``target``.

    :raises PolicyErrors: when they are not valid
    :raises CallerError: when a sentence has no placeholder, or one elsewhere
    """
    reporter = Reporter(text)
    sentences = parse(text, reporter)
    errors = reporter.all(ERROR)
    if errors:
        raise PolicyErrors(errors)
    return "\n".join(str(_with_target(one, target)) for one in sentences)


def _with_target(sentence: ast.Sentence, target: Target) -> ast.Sentence:
    name, level = sentence.target.name, sentence.target.level
    if name is None or name.text != HOLE or sentence.target.select != NAME:
        raise CallerError(f"sentence `{sentence}` is about `{sentence.target}`, expected `FOR {HOLE}`")
    if str(sentence).count(HOLE) > 1:
        raise CallerError(f"sentence `{sentence}` has `{HOLE}` elsewhere, expected it as the target alone")
    if level not in ("", target.level):
        raise CallerError(f"sentence `{sentence}` is about a {level}, which `{target.name}` is not")
    written_name = ast.Word(target.label or target.name)
    return replace(sentence, target=ast.Target(target.level, NAME, written_name))
