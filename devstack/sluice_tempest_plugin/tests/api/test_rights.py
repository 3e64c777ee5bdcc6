"""The default rights of Keystone's roles: administrators manage the cluster, others see their own project."""

from __future__ import annotations

from tempest.lib import decorators, exceptions

from sluice_tempest_plugin.tests import base


class RightsTest(base.BaseSluiceTest):
    """A member, a reader and a member of another project read an administrator's settings."""

    @decorators.idempotent_id("08de2e6e-6520-442e-b7df-925a497869a4")
    def test_the_members_of_a_project_see_its_policies_and_others_do_not(self) -> None:
        created = self.create_policy(f"FOR TENANT {self.account} DO SET noop")
        for client in (self.member, self.reader):
            self.assertEqual([created["id"]], [one["id"] for one in client.list_policies()["policies"]])
            self.assertEqual(created["policy"], client.show_policy(policy_id=created["id"])["policy"])
        self.assertEqual([], self.stranger.list_policies()["policies"])
        self.assert_refused(exceptions.Forbidden, self.stranger.show_policy, policy_id=created["id"])

    @decorators.idempotent_id("fdde16a4-b424-41cb-bc4d-f50d67d65e06")
    @decorators.attr(type=["negative"])
    def test_what_rules_the_cluster_is_refused_to_a_member_with_the_rule(self) -> None:
        calls = {
            "sluice:nodes:list": self.member.list_nodes,
            "sluice:changes:list": self.member.list_changes,
            "sluice:groups:list": self.member.list_gtenants,
            "sluice:controllers:list": self.member.list_controllers,
            "sluice:configuration:export": self.member.export_configuration,
        }
        for rule, call in calls.items():
            self.assertIn(f"`{rule}`", self.assert_refused(exceptions.Forbidden, call)["message"])

    @decorators.idempotent_id("e1e2086c-9ae8-4a8f-91bc-4eaeeba7c138")
    @decorators.attr(type=["negative"])
    def test_a_member_sets_nothing_for_its_whole_account(self) -> None:
        body = {"policy": f"FOR TENANT {self.account} DO SET compression"}
        error = self.assert_refused(exceptions.Forbidden, self.member.create_policies, body=body)
        self.assertIn("`sluice:policies:create`", error["message"])
        self.assertEqual([], self.member.list_policies()["policies"])

    @decorators.idempotent_id("f6d9ecda-f39b-4c21-93e3-e49d3cca3157")
    def test_a_reader_sees_what_sentences_may_say(self) -> None:
        filters = self.reader.list_registered_filters(prefix="compression")["filters"]
        self.assertEqual(["compression"], [one["keyword"] for one in filters])
        metrics = [one["name"] for one in self.reader.list_metrics(prefix="PUTS_SEC")["metrics"]]
        self.assertIn("PUTS_SEC", metrics)
