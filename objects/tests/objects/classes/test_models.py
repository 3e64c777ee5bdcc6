"""`map` and `queue` against the simplest things that do the same."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sluice_objects.classes.map import Map
from sluice_objects.classes.queue import Queue
from sluice_objects.testing import LocalHome

keys = st.text("aé\uffff\U0001f600", min_size=1, max_size=3)
seconds = st.sampled_from((0.5, 1.0, 5.0, 30.0))


class MapMachine(RuleBasedStateMachine):
    """A dict of values with their versions."""

    @initialize()
    def begin(self):
        self.home = LocalHome(Map())
        self.model = {}

    @rule(key=keys, value=st.none() | st.integers(0, 9) | keys, version=st.none() | st.integers(0, 6))
    def put(self, key, value, version):
        outcome = self.home.run("put", {"key": key, "value": value, "version": version})
        if version in (None, self.model.get(key, (None, 0))[1]):
            self.model[key] = (value, outcome.version)
            assert self.home.answer(outcome) == {"version": self.home.state.version}
        else:
            assert outcome.status == 412

    @rule(key=keys, version=st.none() | st.integers(0, 6))
    def delete(self, key, version):
        status = self.home.run("delete", {"key": key, "version": version}).status
        if key not in self.model:
            assert status == 404
        elif version in (None, self.model[key][1]):
            assert status == 200
            del self.model[key]
        else:
            assert status == 412

    @rule(start=keys | st.just(""), end=st.none() | keys, limit=st.integers(1, 4))
    def list_range(self, start, end, limit):
        wanted = [key for key in self.model if key >= start and (end is None or key < end)]
        assert self.pages("range", {"end": end, "limit": limit}, start) == sorted(wanted)

    @rule(prefix=keys, limit=st.integers(1, 4))
    def list_prefix(self, prefix, limit):
        wanted = [key for key in self.model if key.startswith(prefix)]
        assert self.pages("prefix", {"prefix": prefix, "limit": limit}, "") == sorted(wanted)

    def pages(self, name, members, start):
        found = []
        while start is not None:
            page = self.home.call(name, **members, start=start)
            assert len(page["items"]) <= members["limit"]
            for item in page["items"]:
                assert (item["value"], item["version"]) == self.model[item["key"]]
            found += [item["key"] for item in page["items"]]
            start = page["next"]
        return found

    @rule()
    def move(self):
        self.home.move()


class QueueMachine(RuleBasedStateMachine):
    """A list of messages, each with the lease that it has, if any."""

    @initialize()
    def begin(self):
        self.home = LocalHome(Queue())
        #: id → [value, pops, lease], a lease being (receipt, since, timeout)
        self.model = {}
        self.since = self.home.time

    def now(self):
        return max(self.home.time, self.home.state.clock)

    def ready(self):
        def ended(lease):
            return lease is None or max(lease[1], self.since) + lease[2] <= self.now()

        return [message for message in sorted(self.model) if ended(self.model[message][2])]

    @rule(value=st.integers(0, 9))
    def push(self, value):
        self.model[self.home.call("push", value=value)["id"]] = [value, 0, None]

    @rule(timeout=seconds)
    def pop(self, timeout):
        expected, at = next(iter(self.ready()), None), self.now()
        ready = self.ready()
        popped = self.home.call("pop", timeout=timeout)
        if expected is None:
            assert popped is None
            return
        for message in ready:  # their leases are over now, also for late consumers
            self.model[message][2] = None
        self.model[expected][1] += 1
        self.model[expected][2] = (popped["receipt"], at, timeout)
        assert (popped["id"], popped["value"], popped["pops"]) == (expected, *self.model[expected][:2])

    @rule(choice=st.integers(0, 20), receipt=st.none() | st.integers(0, 20))
    def acknowledge(self, choice, receipt):
        message = sorted(self.model)[choice % len(self.model)] if self.model else choice
        lease = self.model.get(message, (0, 0, None))[2]
        given = receipt if receipt is not None or lease is None else lease[0]
        status = self.home.run("acknowledge", {"id": message, "receipt": given or 0}).status
        if lease is None:
            assert status == 404
        elif lease[0] == given:
            assert status == 200
            del self.model[message]
        else:
            assert status == 409

    @rule(passed=seconds)
    def wait(self, passed):
        self.home.time += passed

    @rule(ahead=st.sampled_from((-60.0, 0.0, 60.0)))
    def move(self, ahead):
        self.home.move(self.home.time + ahead)
        self.since = self.now()

    @invariant()
    def depth_and_first_message(self):
        if not hasattr(self, "home"):
            return
        ready = self.ready()
        assert self.home.call("depth") == {"ready": len(ready), "hidden": len(self.model) - len(ready)}
        first = self.home.call("peek")
        assert (first and first["id"]) == next(iter(ready), None)


CALM = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestMap = MapMachine.TestCase
TestQueue = QueueMachine.TestCase
TestMap.settings = TestQueue.settings = CALM
