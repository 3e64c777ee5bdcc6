"""Members set the filters that the administrator has marked, for containers of their own project."""

from __future__ import annotations

from tempest import config
from tempest.lib import decorators, exceptions

from sluice_tempest_plugin.tests import base

CONF = config.CONF


class SelfServiceTest(base.BaseSluiceTest):
    """A member writes, a reader reads, a member of another project and other filters are refused."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        if not CONF.sluice_feature_enabled.self_service:
            raise cls.skipException("members may not set compression")

    def sentence(self, account: str, keyword: str = "compression") -> str:
        """A sentence about a container that need not exist."""
        return f"FOR CONTAINER {account}/{self.name('container')} DO SET {keyword}"

    @decorators.idempotent_id("6322234d-548c-46da-af97-65323d32fcc6")
    @decorators.attr(type="smoke")
    def test_a_member_creates_changes_and_deletes_a_policy_for_its_own_container(self) -> None:
        created = self.create_policy(self.sentence(self.account), self.member)
        self.assertIn(self.os_project_member.credentials.username, created["created_by"])
        self.member.update_policy(policy_id=created["id"], body={"enabled": False})
        self.assertEqual("disabled", self.reader.show_policy(policy_id=created["id"])["state"])
        self.member.delete_policy(policy_id=created["id"])
        self.assertRaises(exceptions.NotFound, self.member.show_policy, policy_id=created["id"])

    @decorators.idempotent_id("83d18182-eb5c-4b20-a6be-38bba3ff32fd")
    @decorators.attr(type=["negative"])
    def test_a_reader_and_a_stranger_change_nothing(self) -> None:
        created = self.create_policy(self.sentence(self.account), self.member)
        for client in (self.reader, self.stranger):
            self.assert_refused(exceptions.Forbidden, client.delete_policy, policy_id=created["id"])
            body = {"policy": self.sentence(self.account)}
            self.assert_refused(exceptions.Forbidden, client.create_policies, body=body)
        self.assertEqual("active", self.member.show_policy(policy_id=created["id"])["state"])

    @decorators.idempotent_id("004cddd8-78bc-46e4-9165-f1dca5cc1798")
    @decorators.attr(type=["negative"])
    def test_what_is_not_self_service_is_refused_by_its_name(self) -> None:
        body = {"policy": self.sentence(self.account, "bandwidth WITH get_bw=1MBps")}
        error = self.assert_refused(exceptions.Forbidden, self.member.create_policies, body=body)
        self.assertIn("`bandwidth`", error["message"])

    @decorators.idempotent_id("25197d4e-7480-4371-8223-03d714247c08")
    def test_a_member_takes_back_what_was_set_for_its_own_container(self) -> None:
        created = self.create_policy(self.sentence(self.account))
        self.member.delete_policy(policy_id=created["id"])
        self.assertRaises(exceptions.NotFound, self.admin.show_policy, policy_id=created["id"])
