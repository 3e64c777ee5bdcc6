"""Policies over metrics of volumes: each volume by itself, and limits that are reverted."""

from tests.support.actors.host import run_scenario

from sluice_actors.policies.decision_writer import wanted_assignments
from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.testing import PolicyTestbed
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import Change
from sluice_core.messages.registry import Group
from sluice_core.metrics.totals import values_by_volume
from sluice_dsl.compile import compile_text
from sluice_dsl.plan import Plan
from sluice_dsl.testing import make_catalogue

CATALOGUE = make_catalogue()
FIRST, SECOND, THIRD = "AUTH_acme/id-1", "AUTH_acme/id-2", "AUTH_beta/id-3"


class Stage(PolicyTestbed):
    """Policies by their sentences, and a konnector's reports of reads."""

    def watch(self, target, life="TRANSIENT"):
        text = f"FOR {target} WHEN VOLUME_READ_IOPS > 3k DO SET throttling WITH read_iops=1k {life}"
        (compiled,) = compile_text(text, CATALOGUE)
        return self.add(Plan.decode(compiled.plan.encode()), target)

    async def see(self, window, **reads):
        """One second: the reads of the volumes ``id1`` to ``id3``."""
        paths = {"id1": FIRST, "id2": SECOND, "id3": THIRD}
        values = values_by_volume({paths[name]: value for name, value in reads.items()})
        await self.batches([MetricBatch("n1", "VOLUME_READ_IOPS", window, window, values)])


def limited(actor):
    """The paths that an actor limits now."""
    return sorted(one.path() for one in wanted_assignments(actor).values())


def story(test, **options):
    async def told():
        stage = Stage(**options)
        try:
            await test(stage)
        finally:
            await stage.close()

    run_scenario(told())


def test_each_volume_is_limited_by_itself_and_the_limit_is_taken_back():
    async def test(stage):
        everyone, named, tenant = (stage.watch(target) for target in ("ALL VOLUMES", "VOLUME data1", "TENANT acme"))
        await stage.see(1000, id1=4000, id2=2000, id3=5000)
        assert [limited(one) for one in (everyone, named, tenant)] == [[FIRST, THIRD], [FIRST], ["AUTH_acme"]]
        (one, _) = wanted_assignments(everyone).values()
        assert (one.id, one.kind, one.about, one.place) == (
            f"ALL VOLUMES.0@{FIRST}", "throttle", ("volumes",), "konnector",
        )  # fmt: skip
        await stage.see(1001, id1=4000)
        await stage.see(1002)
        assert [limited(one) for one in (everyone, named, tenant)] == [[FIRST], [FIRST], ["AUTH_acme"]]
        await stage.see(1003)
        assert [limited(one) for one in (everyone, named, tenant)] == [[], [], []]

    story(test)


def test_a_volume_that_joins_a_group_later_is_included_and_one_that_leaves_is_not():
    groups = GroupIndex()

    async def test(stage):
        groups.replace(Group("disks", "volume", (FIRST,)).entries())
        actor = stage.watch("GROUP disks", "PERSISTENT")
        await stage.see(1000, id1=4000, id2=4000)
        assert limited(actor) == [FIRST]
        puts, drops = Group("disks", "volume", (SECOND,)).changes_from(Group("disks", "volume", (FIRST,)))
        groups.apply(Change(1, "h", 0.0, entries=puts, entry_drops=drops))
        await stage.see(1001, id1=4000, id2=4000)
        assert limited(actor) == [SECOND]

    story(test, groups=groups)
