"""The calls of one object at its home: one after the other, committed together.

Theory of operation.  Whoever calls :meth:`ServedObject.call` puts its call into a list and waits for the lock.  The
holder of the lock runs all calls of the list, each on the state that the one before left, stores the last state with
one commit, and answers all.  So the calls that arrive during a commit share the next one.  Calls that change nothing
cost one confirmation by a majority, or none beside a commit.

When a commit ends without a majority, the home takes the object over again.  The stamp of the state that it finds says
what became of the commit: it is that state, or it is older and the commit can never happen, so that the calls are run
again.  Only when another home was there between, or no majority answers, callers are told that the outcome is unknown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from sluice_core.errors import SluiceError
from sluice_objects.protocol.home import Home, NoMajority, Replaced, Unknown
from sluice_objects.protocol.stamps import NOTHING, Stamp
from sluice_objects.protocol.voters import Voter

C = TypeVar("C")
O = TypeVar("O")  # noqa: E741 - of an outcome
S = TypeVar("S")

#: Calls in one commit at most: the last one waits for the methods of all.
_TOGETHER: Final = 100
#: How often a commit without a majority is followed by another attempt.
_ATTEMPTS: Final = 2


@dataclass(slots=True)
class _Waiting(Generic[C, O]):
    call: C
    outcome: O | None = None
    error: SluiceError | None = None


class ServedObject(Generic[S, C, O]):
    """One object; threads may call it at the same time.

    :param new_home: makes a home of the object that has not taken it over yet
    :param run: runs one call on a state (None: there is no object) and returns the next state, the same one when
        nothing changed, and the outcome
    """

    def __init__(self, new_home: Callable[[], Home[S]], run: Callable[[S | None, C], tuple[S | None, O]]) -> None:
        self._new_home = new_home
        self._run = run
        self._home: Home[S] | None = None
        self._lock = threading.Lock()
        self._waiting: list[_Waiting[C, O]] = []

    @property
    def is_home(self) -> bool:
        """Whether this process was the home at the last call."""
        return self._home is not None

    def call(self, call: C) -> O:
        """The outcome of a call, when its effect is stored on a majority of the voters.

        :raises NoMajority: when too few voters answer; nothing was changed
        :raises Replaced: when another home has the object; nothing was changed
        :raises Unknown: when it is not known whether the call had its effect
        """
        waiting: _Waiting[C, O] = _Waiting(call)
        self._waiting.append(waiting)
        with self._lock:
            while waiting.outcome is None and waiting.error is None:
                batch, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
                self._serve(batch)
        if waiting.error is not None:
            raise waiting.error
        assert waiting.outcome is not None
        return waiting.outcome

    def follow_ring(self, wanted: Sequence[Voter]) -> bool:
        """Change one voter on the way to ``wanted``; False when there is nothing to change.

        :raises SluiceError: as :meth:`call`
        """
        with self._lock:
            try:
                return self._taken_over().follow_ring(wanted)
            except SluiceError:
                self._home = None
                raise

    def _serve(self, batch: Sequence[_Waiting[C, O]]) -> None:
        error: SluiceError = Unknown("the home failed at a call beside this one")
        try:
            for waiting, outcome in zip(batch, self._run_all([waiting.call for waiting in batch]), strict=True):
                waiting.outcome = outcome
        except SluiceError as failure:
            error = failure
        finally:  # also when this thread is killed or a method has a fault: the others wait for their calls
            if any(waiting.outcome is None for waiting in batch):
                self._home = None
            for waiting in batch:
                if waiting.outcome is None:
                    waiting.error = error

    def _run_all(self, calls: Sequence[C]) -> list[O]:
        unknown = Unknown("")
        for _ in range(_ATTEMPTS):
            home = self._taken_over()
            state, outcomes = home.state, []
            for call in calls:
                state, outcome = self._run(state, call)
                outcomes.append(outcome)
            if state is home.state or state is None:
                home.confirm()
                return outcomes
            try:
                home.commit(state)
            except (Unknown, Replaced) as error:
                unknown = Unknown(f"{error}")
                if home.attempted == NOTHING:
                    self._home = None
                elif self._happened(home.attempted, unknown):
                    return outcomes
            else:
                return outcomes
        raise unknown

    def _taken_over(self) -> Home[S]:
        if self._home is None:
            home = self._new_home()
            home.take_over()
            self._home = home
        return self._home

    def _happened(self, attempted: Stamp, unknown: Unknown) -> bool:
        """Take the object over again and find what became of a commit.

        :raises Unknown: when that cannot be known
        """
        self._home = None
        try:
            found = self._taken_over().adopted
        except (NoMajority, Replaced, Unknown) as error:
            raise unknown from error
        if found == attempted:
            return True
        if found is not None and found.first_of_ballot > attempted.first_of_ballot:
            raise unknown
        return False
