"""Service level objectives of tenants: values, rights, and refusals."""

from __future__ import annotations

from typing import Any, Final

from tempest.lib import decorators, exceptions

from sluice_tempest_plugin.tests import base

#: Bytes per second.
MB: Final = 1_000_000


class SloTest(base.BaseSluiceTest):
    """Objectives of one project; tests of one class run one after the other."""

    def promise(self, name: str, value: Any) -> Any:
        """An objective, which is deleted afterwards."""
        made = self.admin.update_slo(account=self.account, name=name, body={"value": value})
        self.undo(self.admin.delete_slo, account=self.account, name=name)
        return made

    @decorators.idempotent_id("07014c2c-0148-4dfb-8e7c-172c6e7fc732")
    @decorators.attr(type="smoke")
    def test_an_objective_is_a_policy_and_both_end_together(self) -> None:
        made = self.promise("get_bw", "30MBps")
        self.assertEqual(30 * MB, made["value"])
        self.assertEqual(f"slo/{self.account}", self.admin.show_policy(policy_id=made["policy"])["origin"])
        self.admin.delete_slo(account=self.account, name="get_bw")
        self.assertRaises(exceptions.NotFound, self.admin.show_slo, account=self.account, name="get_bw")
        self.assertRaises(exceptions.NotFound, self.admin.show_policy, policy_id=made["policy"])

    @decorators.idempotent_id("9d69846c-8c3a-4bd9-a071-671e982668e4")
    def test_the_same_value_again_changes_nothing(self) -> None:
        first = self.promise("put_bw", 20)
        again = self.promise("put_bw", "20MBps")
        self.assertEqual((first["policy"], False), (again["policy"], again["changed"]))

    @decorators.idempotent_id("ee92f7ba-4e9b-40c2-bb5e-6aa8df28124f")
    def test_a_project_sees_its_own_objectives_alone(self) -> None:
        self.promise("get_bw", 30)
        self.promise("max_get_bw", 60)
        for client in (self.member, self.reader):
            found = {one["name"]: one["value"] for one in client.list_slo()["slos"]}
            self.assertEqual({"get_bw": 30 * MB, "max_get_bw": 60 * MB}, found)
        self.assertEqual([], self.stranger.list_slo()["slos"])
        self.assert_refused(exceptions.Forbidden, self.stranger.show_slo, account=self.account, name="get_bw")

    @decorators.idempotent_id("cf20e091-ce5c-45f6-ac19-888d8fdaa83e")
    @decorators.attr(type=["negative"])
    def test_a_member_promises_itself_nothing(self) -> None:
        call = {"account": self.account, "name": "get_bw", "body": {"value": 30}}
        error = self.assert_refused(exceptions.Forbidden, self.member.update_slo, **call)
        self.assertIn("`sluice:slos:set`", error["message"])

    @decorators.idempotent_id("04829f19-8ebd-4b36-896d-fd9e51fcd7da")
    @decorators.attr(type=["negative"])
    def test_what_is_no_rate_and_no_objective_is_refused(self) -> None:
        for name, value in (("get_bw", "fast"), ("get_bw", -1), ("get_bandwidth", 30)):
            call = {"account": self.account, "name": name, "body": {"value": value}}
            self.assert_refused(exceptions.BadRequest, self.admin.update_slo, **call)
        self.assertEqual([], self.admin.list_slo(account=self.account)["slos"])

    @decorators.idempotent_id("baf8c05d-cd20-4bb1-9de7-f9c5075f2e66")
    @decorators.attr(type=["negative"])
    def test_a_value_for_each_object_server_contradicts_an_objective(self) -> None:
        made = self.promise("get_bw", 30)
        call = {"account": self.account, "body": {"value": "5MBps"}}
        error = self.assert_refused(exceptions.Conflict, self.admin.update_bandwidth_of_account, **call)
        self.assertIn(made["policy"], error["message"])
