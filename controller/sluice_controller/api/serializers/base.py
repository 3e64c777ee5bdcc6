"""One definition of each shape: the schema describes it, and answers are rendered with it.

A :class:`Serializer` declares the fields of an object in an answer, in their order.
drf-spectacular reads it for ``/schema``; :meth:`Serializer.render` renders a domain object with it.  A field's value is
the attribute that its ``source`` names (by default its own name), or the result of its :func:`computed` function;
nested serializers, times, lists and mappings become plain data.  Bodies of requests are only described by serializers,
not parsed with them: :mod:`sluice_controller.validation` reports errors in Sluice's form.

Readers are made once, with the class, so rendering a thousand policies takes no longer than with explicit code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, ClassVar, Final

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers as s

from sluice_controller.validation.parameters import iso_time
from sluice_core.messages.policies import Assignment
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.explain import describe_parameters
from sluice_dsl.plan import PlannedAction


class Serializer(s.Serializer):
    """A shape that describes itself and renders objects."""

    #: whether the fields of this class come after those of the classes that inherit it
    trailing: ClassVar[bool] = False
    #: names of fields with functions that read their values from an object, in the order of the answer
    _readers: ClassVar[tuple[tuple[str, Callable[[Any], Any]], ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Order the fields: inherited ones first, but those of trailing classes last."""
        super().__init_subclass__(**options)
        bases: list[Any] = [base for base in cls.__bases__ if vars(base).get("trailing")]
        last = {name for base in bases for name in base._declared_fields}
        cls._declared_fields = dict(sorted(cls._declared_fields.items(), key=lambda field: field[0] in last))
        cls._readers = tuple((name, _reader(name, field)) for name, field in cls._declared_fields.items())

    @classmethod
    def render(cls, thing: Any, **given: Any) -> dict[str, Any]:
        """``thing`` as plain data; ``given`` are values of fields that the object does not have.

        Plain data is returned unchanged.
        """
        if isinstance(thing, dict):
            return thing
        return {name: given[name] if name in given else read(thing) for name, read in cls._readers}

    @classmethod
    def render_all(cls, things: Iterable[Any]) -> list[dict[str, Any]]:
        """Several objects."""
        return [cls.render(one) for one in things]


class UnixTimeField(s.DateTimeField):
    """Unix time in seconds, rendered as ISO 8601; 0 is null if that is allowed."""

    per_second: ClassVar[int] = 1

    def text(self, value: float) -> str | None:
        """The time as text."""
        return None if self.allow_null and not value else iso_time(value / self.per_second)


class MillisecondsField(UnixTimeField):
    """Unix time in milliseconds, rendered like :class:`UnixTimeField`."""

    per_second = 1000


def computed(value: Callable[[Any], Any], field: Any) -> Any:
    """Return ``field`` with the result of ``value`` for the rendered object as its value."""
    field.value_of = value
    return field


def _reader(name: str, field: Any) -> Callable[[Any], Any]:
    read: Callable[[Any], Any] = getattr(field, "value_of", None) or attrgetter(field.source or name)
    convert = _conversion(field)
    if convert is None:
        return read
    return lambda thing: None if (value := read(thing)) is None else convert(value)


def _conversion(field: Any) -> Callable[[Any], Any] | None:
    if isinstance(field, s.ListSerializer):
        shape: type[Serializer] = type(field.child)
        return shape.render_all
    if isinstance(field, Serializer):
        return type(field).render
    if isinstance(field, UnixTimeField):
        return field.text
    return list if isinstance(field, s.ListField) else dict if isinstance(field, s.DictField) else None


class PageSerializer(Serializer):
    """The fields of a page's end."""

    trailing = True

    next_marker = computed(
        lambda page: page.next_marker or None,
        s.CharField(allow_null=True, help_text="`marker` of the next page; null on the last one"),
    )


def page_of(field: str, shape: type[Serializer], text: str) -> type[PageSerializer]:
    """The shape of a page with objects of ``shape`` in ``field``; ``text`` describes it in the schema."""
    name = f"{shape.__name__.removesuffix('Serializer')}PageSerializer"
    return type(name, (PageSerializer,), {"__doc__": text, field: shape(many=True, source="records")})


class EntrySerializer(Serializer):
    """The fields of all entries."""

    trailing = True

    created_at = MillisecondsField(source="created", allow_null=True, help_text="null if it is part of the software")
    created_by = s.CharField(allow_blank=True)


PARAMS_TEXT: Final = "`params` as text, values with their units, as `get_bw=30 MB/s`"


def params_text(action: Assignment | PlannedAction, catalogue: Catalogue) -> str:
    """The parameters of ``action`` as text."""
    return describe_parameters(action.params, catalogue.action(action.keyword))


def examples(*bodies: tuple[str, Any]) -> list[OpenApiExample]:
    """Example bodies of requests, by name; a test sends them unchanged."""
    return [OpenApiExample(name, value=value, request_only=True) for name, value in bodies]
