"""A typed object in memory, whose calls are run as its home runs them."""

from __future__ import annotations

from sluice_objects.api import ObjectClass, Value
from sluice_objects.calls import DONE, REFUSED, Call, Outcome, run
from sluice_objects.state.codec import decode, encode
from sluice_objects.state.records import ObjectState
from sluice_objects.values import unpack
from sluice_objects.writes import Put, write


class NotDone(Exception):
    """A call was refused or failed; ``outcome`` says why."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"{outcome.kind} ({outcome.status}): {outcome.message}")
        self.outcome = outcome


class LocalHome:
    """
    :ivar state: of the object, which is new at first
    :ivar time: of the home's clock, which tests move
    """

    def __init__(self, object_class: ObjectClass) -> None:
        self.object_class = object_class
        self.time = 1_700_000_000.0
        created, _ = write(None, Put(b"", class_name=object_class.name), self.time)
        assert created is not None
        self.state: ObjectState = created
        self._since = self.time

    def call(self, method: str, **members: Value) -> Value:
        """Call a method with a map, and return the answer.

        :raises NotDone: when it is refused or fails
        """
        return self.answer(self.run(method, members))

    def answer(self, outcome: Outcome) -> Value:
        """The answer of an outcome.

        :raises NotDone: without an answer
        """
        if outcome.kind != DONE or outcome.answer is None:
            raise NotDone(outcome)
        return unpack(outcome.answer)

    def refusal(self, method: str, **members: Value) -> Outcome:
        """The outcome of a call that must be refused.

        :raises AssertionError: when it is not
        """
        outcome = self.run(method, members)
        assert outcome.kind == REFUSED, outcome
        return outcome

    def run(self, method: str, argument: Value = None, session: str = "", number: int = 0) -> Outcome:
        """Call a method, and have the next state."""
        call = Call(self.object_class.name, method, argument, "user", f"request {self.time}", session, number)
        state, outcome = run({call.class_name: self.object_class}, self.state, call, self.time, self._since)
        self.state = state or self.state
        return outcome

    def move(self, time: float | None = None) -> None:
        """Another home takes the object over.

        :param time: of its clock
        """
        self.state = decode(encode(self.state))
        self.time = self.time if time is None else time
        self._since = max(self.state.clock, self.time)
