"""Operators' views: nodes, changes, events, the whole configuration."""

from __future__ import annotations

from tempest.lib import decorators, exceptions
from tempest.lib.common.utils import data_utils

from sluice_tempest_plugin.tests import base


class OperationsTest(base.BaseSluiceTest):
    """These tests change the cluster only by one policy for one container."""

    def a_policy(self) -> str:
        """The id of an enforced policy."""
        sentence = f"FOR CONTAINER {self.account}/{self.name('container')} DO SET noop"
        return str(self.create_policy(sentence)["id"])

    @decorators.idempotent_id("09cf30ed-ca7f-4de9-a418-74118066eb01")
    @decorators.attr(type="smoke")
    def test_the_api_is_healthy_and_knows_its_nodes(self) -> None:
        self.assertEqual("ok", self.admin.health()["status"])
        nodes = self.admin.list_nodes(state="ok")["nodes"]
        self.assertNotEqual([], nodes)
        self.assertEqual(nodes[0]["node"], self.admin.show_node(node=nodes[0]["node"])["node"])

    @decorators.idempotent_id("ecefcb4b-ddbf-40e7-bb72-e23fe064b913")
    def test_a_change_says_who_made_it(self) -> None:
        policy = self.a_policy()
        (change,) = self.admin.list_changes(policy=policy)["changes"]
        self.assertIn(self.os_project_admin.credentials.username, change["by"])
        shown = self.admin.show_change(epoch=change["epoch"])
        self.assertEqual([policy], shown["policies"])

    @decorators.idempotent_id("1978f05a-2ad6-4f23-9ef7-b4b9d4b829ad")
    def test_the_plan_of_a_rollback_deletes_what_came_later_and_changes_nothing(self) -> None:
        policy = self.a_policy()
        (change,) = self.admin.list_changes(policy=policy)["changes"]
        plan = self.admin.roll_back(epoch=change["epoch"] - 1, plan=True)
        self.assertIn(policy, [one["name"] for one in plan["changes"]])
        self.assertEqual("active", self.admin.show_policy(policy_id=policy)["state"])

    @decorators.idempotent_id("69f9d074-8363-48c3-a088-ceaf583c78fd")
    def test_the_export_holds_a_policy(self) -> None:
        policy = self.admin.show_policy(policy_id=self.a_policy())
        self.assertIn(policy["policy"].encode(), self.admin.export_configuration().data)

    @decorators.idempotent_id("a3956424-90f9-4154-9ebf-7cf629024fb1")
    def test_events_and_numbers_are_there_to_be_read(self) -> None:
        self.assertIsInstance(self.admin.list_events()["events"], list)
        self.assertEqual([], self.stranger.list_events()["events"])
        self.assertIn(b"sluice_redis_up 1.0", self.admin.metrics().data)

    @decorators.idempotent_id("a2faff65-83a8-4adf-801d-2db8b14beec3")
    @decorators.attr(type=["negative"])
    def test_a_node_and_a_change_that_do_not_exist_are_not_found(self) -> None:
        self.assert_refused(exceptions.NotFound, self.admin.show_node, node=data_utils.rand_uuid())
        self.assert_refused(exceptions.NotFound, self.admin.show_change, epoch=2**40)
