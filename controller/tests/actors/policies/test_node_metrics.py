"""Policies on metrics of nodes: one node above the limit satisfies a clause, for any target."""

from tests.support.actors.host import run_scenario

from sluice_actors.policies.actor import SingleActor
from sluice_actors.policies.decision_writer import wanted_assignments
from sluice_actors.testing import PolicyTestbed
from sluice_core.messages.nodes import MetricBatch
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import compile_text
from sluice_dsl.plan import Plan


class Stage(PolicyTestbed):
    def watch(self, text):
        (compiled,) = compile_text(text, default_catalogue())
        return self.add(Plan.decode(compiled.plan.encode()), text)

    async def see(self, window, cpus=None, puts=None):
        """One second: the CPU of each node, and the PUTS_SEC of each tenant; None sends no batch."""
        batches = [MetricBatch(node, "NODE_CPU", window, window, {"node": {node: cpu}}) for node, cpu in cpus.items()]
        if puts is not None:
            batches.append(MetricBatch("n1", "PUTS_SEC", window, window, {"tenant": puts}))
        await self.batches(batches)


def story(test):
    async def told():
        stage = Stage()
        try:
            await test(stage)
        finally:
            await stage.close()

    run_scenario(told())


def test_one_node_above_the_limit_satisfies_a_clause_for_any_target():
    async def test(stage):
        targets = ("CLUSTER", "TENANT A", "CONTAINER A/c", "ALL TENANTS")
        actors = [stage.watch(f"FOR {target} WHEN NODE_CPU > 80% DO SET noop TRANSIENT") for target in targets]
        await stage.see(1000, {"n1": 0.5, "n2": 0.8})
        assert [stage.in_force(one) for one in actors] == [{}] * 4
        await stage.see(1001, {"n1": 0.1, "n2": 0.9})
        assert [stage.in_force(one) for one in actors] == [{("", 0): True}] * 4
        assert [one.target.level for actor in actors for one in wanted_assignments(actor).values()] == [
            "cluster", "tenant", "container", "tenant",
        ]  # fmt: skip
        assert isinstance(actors[3], SingleActor)
        for window in (1002, 1003):
            await stage.see(window, {"n1": 0.1, "n2": 0.1})
        assert [stage.in_force(one) for one in actors] == [{}] * 4

    story(test)


def test_a_named_node_is_read_alone_and_its_silence_satisfies_nothing():
    async def test(stage):
        above, below = (
            stage.watch(f"FOR TENANT A WHEN NODE_CPU AT n2 {sign} 80% DO SET noop TRANSIENT") for sign in "><"
        )
        await stage.see(1000, {"n1": 0.9, "n2": 0.5})
        assert (stage.in_force(above), stage.in_force(below)) == ({}, {("", 0): True})
        await stage.see(1001, {"n1": 0.1, "n2": 0.9})
        assert stage.in_force(above) == {("", 0): True}
        for window in range(1002, 1008):
            await stage.see(window, {"n1": 0.9})
        assert (stage.in_force(above), stage.in_force(below)) == ({}, {})

    story(test)


def test_metrics_of_each_tenant_and_of_nodes_decide_together():
    async def test(stage):
        text = "FOR ALL TENANTS WHEN NODE_CPU > 80% AND PUTS_SEC > 3 DO SET noop TRANSIENT"
        every, one = stage.watch(text), stage.watch(text.replace("ALL TENANTS", "TENANT B"))
        await stage.see(1000, {"n1": 0.9}, {"A": 8.0, "B": 1.0})
        assert (stage.in_force(every), stage.in_force(one)) == ({("A", 0): True}, {})
        await stage.see(1001, {"n1": 0.9}, {"A": 8.0, "B": 8.0})
        assert (stage.in_force(every), stage.in_force(one)) == ({("A", 0): True, ("B", 0): True}, {("", 0): True})
        for window in (1002, 1003):
            await stage.see(window, {"n1": 0.5}, {"A": 8.0, "B": 8.0})
        assert (stage.in_force(every), stage.in_force(one)) == ({}, {})
        observed = every.subscription.observed(every)["members"]["A"]
        assert observed == {"NODE_CPU": 0.5, "PUTS_SEC": 8.0}

    story(test)


def test_a_member_without_values_of_its_own_is_still_judged_by_the_nodes():
    async def test(stage):
        actor = stage.watch("FOR ALL TENANTS WHEN NODE_CPU > 80% OR PUTS_SEC > 3 DO SET noop TRANSIENT")
        await stage.see(1000, {"n1": 0.5}, {"A": 8.0})
        for window in (1001, 1002, 1003):
            await stage.see(window, {"n1": 0.9}, {})
        assert stage.in_force(actor) == {("A", 0): True}
        for window in (1004, 1005):
            await stage.see(window, {"n1": 0.5}, {})
        assert stage.in_force(actor) == {}

    story(test)


def test_a_slow_metric_is_no_silent_one_when_a_host_begins():
    async def test(stage):
        actor = stage.watch("FOR TENANT A WHEN NODE_CPU > 80% AND PUTS_SEC > 3 DO SET noop TRANSIENT")
        await stage.system.idle()
        told, deliver = [], stage.router.deliver
        stage.router.deliver = lambda deliveries: deliver(told.append(one) or one for one in deliveries)
        for window in range(1000, 1012):
            await stage.see(window, {}, {"A": 8.0})
        assert told == []
        await stage.batches([MetricBatch("n1", "NODE_CPU", 1000, 1, {"node": {"n1": 0.9}}, 10.0)])
        await stage.see(1012, {}, {"A": 8.0})
        assert told[-1] == (actor, (1012, 1.0, (0.9, 8.0)))
        assert stage.in_force(actor) == {("", 0): True}

    story(test)
