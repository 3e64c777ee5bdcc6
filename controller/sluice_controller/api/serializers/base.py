"""One definition of each shape: the schema describes it, and answers are rendered with it.

A :class:`Serializer` declares the fields of an object of an answer, in the order in which they are answered.
drf-spectacular reads it for ``/schema``; :meth:`Serializer.render` renders a domain object with it.  A field's value is
the attribute that its ``source`` names (its own name without one), or what its :func:`computed` function says; nested
serializers, times, lists and mappings become plain data.  Bodies of requests are not parsed with serializers, which
only describe them: :mod:`sluice_controller.validation` says what is wrong in our words.

Readers are made once, with the class: a page of a thousand policies takes no longer than hand-written dictionaries.
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

    #: whether the fields of this class stand behind those of the classes that inherit it
    trailing: ClassVar[bool] = False
    #: names of fields with what reads their values out of an object, in the order of the answer
    _readers: ClassVar[tuple[tuple[str, Callable[[Any], Any]], ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Order the fields as they are answered: inherited ones first, but those of trailing classes last."""
        super().__init_subclass__(**options)
        bases: list[Any] = [base for base in cls.__bases__ if vars(base).get("trailing")]
        last = {name for base in bases for name in base._declared_fields}
        cls._declared_fields = dict(sorted(cls._declared_fields.items(), key=lambda field: field[0] in last))
        cls._readers = tuple((name, _reader(name, field)) for name, field in cls._declared_fields.items())

    @classmethod
    def render(cls, thing: Any, **given: Any) -> dict[str, Any]:
        """``thing`` as plain data; ``given`` are values of fields that the object does not know.

        What is plain data already stays as it is.
        """
        if isinstance(thing, dict):
            return thing
        return {name: given[name] if name in given else read(thing) for name, read in cls._readers}

    @classmethod
    def render_all(cls, things: Iterable[Any]) -> list[dict[str, Any]]:
        """Several objects."""
        return [cls.render(one) for one in things]


class UnixTimeField(s.DateTimeField):
    """Unix time in seconds, answered as ISO 8601; 0 is null where that is allowed."""

    per_second: ClassVar[int] = 1

    def text(self, value: float) -> str | None:
        """The time as text."""
        return None if self.allow_null and not value else iso_time(value / self.per_second)


class MillisecondsField(UnixTimeField):
    """Unix time in milliseconds, answered in the same way."""

    per_second = 1000


def computed(value: Callable[[Any], Any], field: Any) -> Any:
    """``field``, whose value is ``value`` of the object that is rendered."""
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
    """Where a page ends."""

    trailing = True

    next_marker = computed(
        lambda page: page.next_marker or None,
        s.CharField(allow_null=True, help_text="`marker` of the next page; null on the last one"),
    )


def page_of(field: str, shape: type[Serializer], text: str) -> type[PageSerializer]:
    """The shape of a page with things of ``shape`` in ``field``; ``text`` describes it in the schema."""
    name = f"{shape.__name__.removesuffix('Serializer')}PageSerializer"
    return type(name, (PageSerializer,), {"__doc__": text, field: shape(many=True, source="records")})


class EntrySerializer(Serializer):
    """What all entries say of themselves."""

    trailing = True

    created_at = MillisecondsField(source="created", allow_null=True, help_text="null for what came with the software")
    created_by = s.CharField(allow_blank=True)


PARAMS_TEXT: Final = "`params` for people, values with their units, as `get_bw=30 MB/s`"


def params_text(action: Assignment | PlannedAction, catalogue: Catalogue) -> str:
    """The parameters of ``action`` for people."""
    return describe_parameters(action.params, catalogue.action(action.keyword))


def examples(*bodies: tuple[str, Any]) -> list[OpenApiExample]:
    """Bodies of requests, by name, that are accepted as they stand; a test sends them."""
    return [OpenApiExample(name, value=value, request_only=True) for name, value in bodies]
