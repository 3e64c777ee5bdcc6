"""``FOR``: the words of a sentence become a :class:`~sluice_core.messages.policies.Target`."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from sluice_core.messages.policies import ALL, CLUSTER, CONTAINER, GROUP, NAME, OBJECT, TENANT, VOLUME, Target
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.diagnostics import UNAVAILABLE, UNKNOWN, Reporter, UnknownWord, join_words
from sluice_dsl.syntax import ast

#: Number of volumes of one name that an error lists.
_NAMED: Final = 5
_FORMS: Final = {TENANT: "tenant", CONTAINER: "tenant/container", OBJECT: "tenant/container/object"}


def resolve_target(node: ast.Target, catalogue: Catalogue, reporter: Reporter) -> Target | None:
    """Return the target of ``node``, or None after an error was reported."""
    target = _resolve(node, catalogue, reporter)
    if target is not None and target.level not in catalogue.levels:
        reporter.error(f"{target.level}s are not available on this cluster", node.span, code=UNAVAILABLE)
        return None
    return target


def _resolve(node: ast.Target, catalogue: Catalogue, reporter: Reporter) -> Target | None:
    if node.name is None:
        return Target(CLUSTER) if node.level == CLUSTER else Target(node.level, ALL)
    if not node.name.text:
        reporter.error("expected a name, got an empty one", node.name.span)
        return None
    if node.select == GROUP:
        return _group(node.name, catalogue, reporter)
    if node.level == VOLUME:
        return _volume(node.name, catalogue, reporter)
    return _named(node.level, node.name, catalogue, reporter) if node.level else _bare(node.name, catalogue, reporter)


def _group(name: ast.Word, catalogue: Catalogue, reporter: Reporter) -> Target | None:
    level = catalogue.groups.get(name.text)
    if level is None:
        reporter.error(f"unknown group `{name.text}`", name.span, UnknownWord(name.text, catalogue.groups), UNKNOWN)
        return None
    return Target(level, GROUP, name.text)


def _volume(name: ast.Word, catalogue: Catalogue, reporter: Reporter) -> Target | None:
    """Return the volume with this name; a name of several volumes is refused."""
    word = name.text
    alias = catalogue.aliases.get(word)
    if alias is not None and alias.level == VOLUME:
        return _labelled(alias, word)
    if VOLUME not in catalogue.levels:
        return Target(VOLUME, NAME, word)  # which is refused later
    volumes = catalogue.volumes(word)
    if len(volumes) == 1:
        return _labelled(volumes[0], word)
    if volumes:
        named = [f"`{volume.name}`" for volume in sorted(volumes, key=attrgetter("name"))[:_NAMED]]
        message = f"`{word}` is the name of {len(volumes)} volumes: expected one of {join_words(named)}"
        reporter.error(message, name.span)
    else:
        unknown = UnknownWord(word, catalogue.volume_names())
        expected = "" if unknown.near_miss else ", expected the name of one, `tenant/name`, or its id"
        reporter.error(f"there is no volume `{word}`{expected}", name.span, unknown, UNKNOWN)
    return None


def _bare(name: ast.Word, catalogue: Catalogue, reporter: Reporter) -> Target | None:
    """Resolve a word by itself, which is an alias, a group or a tenant; an ambiguous word is refused."""
    word = name.text
    meanings = {
        "an alias": word in catalogue.aliases,
        "a group": word in catalogue.groups,
        "a tenant": word in catalogue.tenants,
    }
    known = [what for what, is_known in meanings.items() if is_known]
    if len(known) > 1:
        reporter.error(f"`{word}` is {' and '.join(known)}; say `TENANT`, `CONTAINER` or `GROUP` before it", name.span)
        return None
    if word in catalogue.aliases:
        return _labelled(catalogue.aliases[word], word)
    if word in catalogue.groups:
        return Target(catalogue.groups[word], GROUP, word)
    if "/" in word:
        level = CONTAINER if word.count("/") == 1 else OBJECT
        written = ast.Target(level, NAME, name)
        reporter.error(f"a bare name is a tenant, a group or an alias; expected `{written}`", name.span)
        return None
    return _named(TENANT, name, catalogue, reporter)


def _named(level: str, name: ast.Word, catalogue: Catalogue, reporter: Reporter) -> Target | None:
    word = name.text
    alias = catalogue.aliases.get(word)
    if alias is not None and alias.level == level:
        return _labelled(alias, word)
    parts = word.split("/", 2 if level == OBJECT else -1)
    path = _path(level, parts, catalogue)
    # an alias of a container after TENANT is an error, unless there is a tenant of that name
    slip = level == TENANT and alias is not None and word not in catalogue.tenants
    if path is None or slip:
        reporter.error(_misfit(level, name, alias), name.span)
        return None
    if not path[0].startswith(catalogue.account_prefix):
        message = f"there is no project `{path[0]}`, expected one, or an account `{catalogue.account_prefix}…`"
        reporter.error(message, name.span, UnknownWord(path[0], catalogue.tenants), UNKNOWN)
        return None
    return _labelled(Target(level, NAME, "/".join(path)), word)


def _path(level: str, parts: list[str], catalogue: Catalogue) -> list[str] | None:
    """Return account, container and object from the written name, completed where possible."""
    wanted = {TENANT: 1, CONTAINER: 2, OBJECT: 3}[level]
    if not all(parts):
        return None
    if len(parts) == wanted:
        return [catalogue.account(parts[0]), *parts[1:]]
    if len(parts) != wanted - 1 or level == TENANT:
        return None
    container = catalogue.aliases.get(parts[0])
    if level == OBJECT and container is not None and container.level == CONTAINER and container.select == NAME:
        return [container.name, *parts[1:]]
    return [catalogue.account(catalogue.default_tenant), *parts] if catalogue.default_tenant else None


def _misfit(level: str, name: ast.Word, alias: Target | None) -> str:
    form = _FORMS[level]
    if alias is not None:
        return f"`{name.text}` is an alias of a {alias.level}, expected a {level}"
    article = "an" if level == OBJECT else "a"
    lacking = len(name.text.split("/")) < form.count("/") + 1
    if lacking and level != TENANT:
        return f"{article} {level} without its tenant needs an alias or a default tenant: expected the form `{form}`"
    return f"`{name.text}` is not {article} {level}'s name, expected the form `{form}`"


def _labelled(target: Target, written: str) -> Target:
    label = "" if written == target.name else written
    return Target(target.level, target.select, target.name, label)
