"""The built-in classes, and the contract suite itself."""

import pytest

from sluice_objects.api import ObjectClass, method
from sluice_objects.calls import REFUSED
from sluice_objects.classes import BUILT_IN
from sluice_objects.testing import ClassContract, LocalHome

#: Ids, receipts and tokens are versions of the object: 1 when it is created.
CALLS = {
    "counter": (("add", {"amount": -5}), ("read", None), ("add", None)),
    "lock": (
        ("acquire", {"owner": "a", "mode": "shared", "timeout": 10}),
        ("acquire", {"owner": "b", "mode": "shared", "timeout": 2.5}),
        ("renew", {"owner": "a", "token": 2, "timeout": 20}),
        ("holders", None),
        ("release", {"owner": "a", "token": 2}),
        ("break_lock", {"owner": "b"}),
    ),
    "log_stripe": (
        ("write", {"epoch": 0, "first": 0, "count": 3, "object": "batch"}),
        ("fill", {"epoch": 0, "first": 3}),
        ("read", {"epoch": 0, "position": 2}),
        ("seal", {"epoch": 1}),
        ("trim", {"epoch": 1, "position": 3}),
        ("show", None),
    ),
    "map": (
        ("put", {"key": "é", "value": {"a": [1, None, b"\xff"]}}),
        ("put", {"key": "é", "value": None, "version": 2}),
        ("get", {"key": "é"}),
        ("range", {"start": "a"}),
        ("prefix", {"prefix": "é"}),
        ("delete", {"key": "é"}),
    ),
    "queue": (
        ("push", {"value": "x"}),
        ("push", {"value": "y"}),
        ("peek", None),
        ("pop", {"timeout": 5}),
        ("depth", None),
        ("acknowledge", {"id": 2, "receipt": 4}),
    ),
    "register": (
        ("write", {"data": "hello"}),
        ("append", {"data": b" world", "size": 5}),
        ("swap", {"ranges": [{"offset": 0, "expected": "h", "data": "J"}]}),
        ("read", {"offset": 1, "size": 4}),
    ),
    "sequencer": (("start", {"epoch": 1, "position": 7}), ("next", {"epoch": 1, "count": 3}), ("tail", None)),
    "set": (
        ("add", {"member": "x"}),
        ("contains", {"member": "x"}),
        ("members", None),
        ("remove", {"member": "x"}),
    ),
}
METHODS = [(name, each) for name, built_in in BUILT_IN.items() for each in built_in.methods()]
ODD = (["x"], "x", 5, 1.5, b"x", True)


@pytest.mark.parametrize("name", BUILT_IN)
class TestBuiltIn(ClassContract):
    @pytest.fixture(autouse=True)
    def _choose(self, name):
        self.object_class, self.calls = type(BUILT_IN[name]), CALLS[name]


@pytest.mark.parametrize(("name", "method_name"), METHODS)
def test_documented_arguments_answers_and_errors(name, method_name):
    function = getattr(BUILT_IN[name], method_name)
    assert ":param argument:" in function.__doc__
    assert ":returns:" in function.__doc__


@pytest.mark.parametrize(("name", "method_name"), METHODS)
def test_an_argument_of_another_form_is_refused(name, method_name):
    home = LocalHome(BUILT_IN[name])
    assert [home.run(method_name, odd).status for odd in ODD] == [400] * len(ODD)
    assert home.refusal(method_name, sive=5).message.startswith("unknown argument `sive`, ")


@pytest.mark.parametrize(("name", "method_name", "argument"), [
    pytest.param(name, method_name, argument, id=f"{name}.{method_name}")
    for name, calls in CALLS.items() for method_name, argument in calls if argument
])  # fmt: skip
def test_a_member_of_another_form_is_refused(name, method_name, argument):
    for member in argument:
        anything = member == "value"
        for odd in (
            10**400,
            "\ud800",
            -(10**30),
            *(() if anything else ({}, [], True, float("nan"), b"\xff", "\ud800")),
        ):
            if member == "data" and odd == b"\xff":
                continue
            outcome = LocalHome(BUILT_IN[name]).run(method_name, {**argument, member: odd})
            assert outcome.kind == REFUSED, (member, odd, outcome)
            assert outcome.status in (400, 404, 412), (member, odd, outcome)


class Right(ObjectClass):
    """Keeps to the rules."""

    name = "right"

    @method(writes=True)
    def append(self, context, argument):
        """Append x."""
        context.stream.write(b"x")
        return len(context.stream)

    @method()
    def size(self, context, argument):
        """Answer the size."""
        return len(context.stream)


class KeepsAnInstance(Right):
    """Counts for itself."""

    count = 0

    @method(writes=True)
    def append(self, context, argument):
        """Append x."""
        self.count += 1
        context.stream.write(b"x")
        return self.count


class WritesWhereItReads(Right):
    """Writes in a method that does not write."""

    @method()
    def size(self, context, argument):
        """Answer the size."""
        context.attributes["read"] = "yes"
        return len(context.stream)


class AnswersNoValue(Right):
    """Answers a tuple."""

    @method()
    def size(self, context, argument):
        """Answer the size."""
        return (len(context.stream),)


class Undocumented(Right):
    """Has a method without words."""

    @method()
    def size(self, context, argument):
        return len(context.stream)


class SaysWhichHome(Right):
    """Depends on something beside context and argument."""

    @method(writes=True)
    def append(self, context, argument):
        """Append the id of the instance."""
        context.stream.write(str(id(self)).encode())


RULES = (
    "test_each_call_is_answered_by_a_value",
    "test_methods_that_do_not_write_change_nothing",
    "test_an_instance_keeps_nothing",
    "test_a_call_that_raises_at_its_end_changes_nothing",
    "test_class_and_methods_are_documented",
    "test_the_same_calls_have_the_same_answers_and_state",
)


@pytest.mark.parametrize(("wrong", "rule"), [
    (AnswersNoValue, RULES[0]), (WritesWhereItReads, RULES[1]), (KeepsAnInstance, RULES[2]),
    (KeepsAnInstance, RULES[3]), (Undocumented, RULES[4]), (SaysWhichHome, RULES[5]),
])  # fmt: skip
def test_the_suite_finds_a_class_that_breaks_a_rule(wrong, rule):
    suite = ClassContract()
    suite.calls = (("append", None), ("append", None), ("size", None))
    suite.object_class = Right
    getattr(suite, rule)()
    suite.object_class = wrong
    with pytest.raises(AssertionError):
        getattr(suite, rule)()
