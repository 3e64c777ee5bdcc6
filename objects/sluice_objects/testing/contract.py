"""Every rule of :mod:`sluice_objects.api` for classes, as tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sluice_objects.api import ObjectClass, Value
from sluice_objects.calls import DONE, FAILED, Outcome
from sluice_objects.names import NAME
from sluice_objects.state.codec import encode
from sluice_objects.testing.local_home import LocalHome


class ClassContract:
    """The suite; a subclass names a class and calls of it."""

    object_class: ClassVar[type[ObjectClass]]
    #: Methods and arguments that succeed one after the other, from a new object on; each method at least once.
    calls: ClassVar[Sequence[tuple[str, Value]]]

    def test_names_are_short_and_in_lower_case(self) -> None:
        assert self.object_class.methods(), "a class has methods"
        for name in (self.object_class.name, *self.object_class.methods()):
            assert NAME.fullmatch(name), f"`{name}`, expected {NAME.pattern}"

    def test_class_and_methods_are_documented(self) -> None:
        assert _documented(self.object_class), self.object_class
        for name in self.object_class.methods():
            assert _documented(getattr(self.object_class, name)), name

    def test_the_calls_use_each_method(self) -> None:
        assert {name for name, _ in self.calls} == set(self.object_class.methods())

    def test_each_call_is_answered_by_a_value(self) -> None:
        self._run_all(LocalHome(self.object_class()))

    def test_methods_that_do_not_write_change_nothing(self) -> None:
        home = LocalHome(self.object_class())
        for name, argument in self.calls:
            before, writes = home.state, self.object_class.methods()[name]
            _expect(home.run(name, argument), DONE, name)
            assert writes or home.state is before, name

    def test_the_same_calls_have_the_same_answers_and_state(self) -> None:
        homes = LocalHome(self.object_class()), LocalHome(self.object_class())
        answers = [self._run_all(home) for home in homes]
        assert answers[0] == answers[1]
        assert encode(homes[0].state) == encode(homes[1].state)

    def test_an_instance_keeps_nothing(self) -> None:
        """One instance serves two objects in turn."""
        shared = self.object_class()
        homes = LocalHome(shared), LocalHome(shared)
        expected = self._run_all(LocalHome(self.object_class()))
        for (name, argument), answer in zip(self.calls, expected, strict=True):
            for home in homes:
                assert home.run(name, argument).answer == answer, name

    def test_a_call_that_raises_at_its_end_changes_nothing(self) -> None:
        instance = self.object_class()
        home, failing = LocalHome(instance), LocalHome(Failing(instance))
        expected = self._run_all(LocalHome(self.object_class()))
        for (name, argument), answer in zip(self.calls, expected, strict=True):
            failing.state, before = home.state, encode(home.state)
            _expect(failing.run(name, argument), FAILED, name)
            assert encode(home.state) == before, name
            assert home.run(name, argument).answer == answer, name

    def test_a_home_that_takes_the_object_over_goes_on(self) -> None:
        home, moving = LocalHome(self.object_class()), LocalHome(self.object_class())
        expected = self._run_all(home)
        for (name, argument), answer in zip(self.calls, expected, strict=True):
            moving.move()
            assert moving.run(name, argument).answer == answer, name
        assert moving.state == home.state

    def _run_all(self, home: LocalHome) -> list[bytes | None]:
        return [_expect(home.run(name, argument), DONE, name).answer for name, argument in self.calls]


class Failing(ObjectClass):
    """The methods of another instance, which raise when they are done."""

    def __init__(self, instance: ObjectClass) -> None:
        self.name = instance.name  # type: ignore[misc]
        self.methods = instance.methods  # type: ignore[method-assign]
        for name in instance.methods():
            setattr(self, name, _then_fail(getattr(instance, name)))


def _then_fail(method: Callable[..., Any]) -> Callable[..., Any]:
    def fail(*arguments: Any) -> None:
        method(*arguments)
        raise RuntimeError("at the end of the call")

    return fail


def _documented(thing: Any) -> bool:
    return bool((thing.__doc__ or "").strip())


def _expect(outcome: Outcome, kind: str, name: str) -> Outcome:
    assert outcome.kind == kind, f"`{name}` is {outcome.kind}, expected {kind}: {outcome.message}"
    return outcome
