"""The URLs of all operations; their modules are below :mod:`sluice_controller.api.operations`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from django.urls import URLPattern, path, register_converter
from django.urls.converters import StringConverter
from rest_framework.permissions import AllowAny

from sluice_controller.api import operations
from sluice_controller.api.openapi import OPERATIONS, Operation
from sluice_controller.api.permissions import OPEN
from sluice_controller.api.view import View


class NameConverter(StringConverter):
    """One name: any characters except a slash.  Unlike ``str``, it appears in the schema with this pattern."""


class TargetConverter(StringConverter):
    """``account[/container[/object]]``; an object's name may contain slashes and line breaks."""

    regex = r"[\s\S]+"


class RateConverter(StringConverter):
    """A rate, whose unit may end in ``/s``."""

    regex = "[^/]+(?:/s(?:ec)?)?"


register_converter(NameConverter, "name")
register_converter(TargetConverter, "target")
register_converter(RateConverter, "rate")


def load_operations() -> list[Operation]:
    """All operations; their modules are imported, which needs Django's settings."""
    for module in walk_packages(operations.__path__, f"{operations.__name__}."):
        import_module(module.name)
    return OPERATIONS


def make_urlpatterns() -> list[URLPattern]:
    """A view for each path; if two paths match a URL, the one with more fixed words comes first."""
    paths: dict[str, dict[str, Operation]] = {}
    for one in load_operations():
        if paths.setdefault(one.path, {}).setdefault(one.method, one) is not one:
            raise ValueError(f"`{one.method.upper()} /{one.path}` is declared twice")
    return [path(one, make_view(paths[one].values()).as_view()) for one in sorted(paths, key=_precedence)]


def make_view(declared: Iterable[Operation]) -> type[View]:
    """The view of one path: it inherits the classes of its operations, and has a method for each.

    It needs no token if all of them are :data:`OPEN`.
    """
    by_method = {one.method: one for one in declared}
    classes = dict.fromkeys(one.view for one in by_method.values())
    bases = [one for one in classes if not any(one is not other and issubclass(other, one) for other in classes)]
    name = "".join(word.title() for word in next(iter(by_method.values())).name.split("_"))
    attributes: dict[str, Any] = {method: one.handler for method, one in by_method.items()}
    if all(one.rule == OPEN for one in by_method.values()):
        attributes |= {"authentication_classes": (), "permission_classes": (AllowAny,)}
    return type(f"{name}View", tuple(bases), {**attributes, "operations": by_method})


def _precedence(path: str) -> list[tuple[int, str]]:
    """For each part of a path: a word, a name, or a name that may contain slashes."""
    return [
        (0, part) if "<" not in part else (1, "") if "<target:" not in part else (2, "") for part in path.split("/")
    ]
