"""The agent's totals equal the workers' counts, whatever messages are lost."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_core.messages.nodes import Counters, Hello
from sluice_core.metrics.totals import AGENT_FORGETS, Totals
from sluice_metrics.meter.meter import Meter
from sluice_metrics.registry import BUILT_IN
from sluice_metrics.testing import FakeClock, whole_request

CONTAINERS = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), CONTAINERS, st.integers(0, 100)),
        st.tuples(st.just("send"), st.booleans(), st.booleans()),
        st.tuples(st.just("wait"), st.sampled_from([1, 50, 150]), st.none()),
        st.tuples(st.just("cut"), st.none(), st.none()),
        st.tuples(st.just("close"), st.none(), st.none()),
    ),
    max_size=60,
)


class Loop:
    """A worker, an agent and a connection that loses messages on demand."""

    def __init__(self):
        self.clock = FakeClock()
        self.totals = Totals(self.clock)
        self.clock.now += 1
        self.meter = Meter([one() for one in BUILT_IN], self.clock, forget=100)
        self.counted = {}
        self.seen = {}
        self.responses = {}
        self.timed = {}
        self.heard = self.clock.now
        self.hello()

    def hello(self):
        meter = self.meter
        self.totals.add_worker(Hello("w", "proxy", 1, {}, meter.names, meter.gauges, quantiles=meter.quantiles))

    def put(self, container, size):
        whole_request(self.meter.begin("acme", container), "PUT", (size,))
        for path in ("acme", f"acme/{container}"):
            self.counted[path] = self.counted.get(path, 0) + size
            self.responses[path] = self.responses.get(path, 0) + 1

    def send(self, arrives, acknowledged):
        rows = self.meter.changed()
        if arrives:
            self.heard = self.clock.now
            message = Counters("w", 0.0, tuple(rows), sketches=self.meter.sketches(rows))
            assert self.totals.update(Counters.decode(message.encode()))
            if acknowledged:
                self.meter.delivered(rows)

    def wait(self, seconds, _):
        if self.clock.now + seconds - self.heard > AGENT_FORGETS / 2:
            self.send(True, False)  # a connected worker sends each second; not all messages are lost for so long
        self.clock.now += seconds

    def cut(self, *_):
        self.totals.lose_worker("w")
        self.hello()
        self.meter.reconnected()

    def close(self, *_):
        for paths in self.totals.close_window(1.0)["PUT_BW"].values():
            for path, value in paths.items():
                self.seen[path] = self.seen.get(path, 0) + value
        _, sketches = self.totals.close_quantiles(1.0)["RESPONSE_TIME_P95"]
        for paths in sketches.values():
            for path, sketch in paths.items():
                self.timed[path] = self.timed.get(path, 0) + sum(sketch.values())


@settings(deadline=None, max_examples=150)
@given(steps=STEPS)
def test_every_byte_and_every_response_is_counted_exactly_once(steps):
    loop = Loop()
    for word, one, other in steps:
        getattr(loop, word)(one, other)
    loop.send(True, True)
    loop.close()
    assert loop.seen == {path: size for path, size in loop.counted.items() if size}
    assert loop.timed == loop.responses
    assert loop.totals.close_window(1.0) == {name: {} for name in loop.meter.names}
