"""Words that administrators add to the language: groups, terms, aliases and stereotypes."""

from __future__ import annotations

from tempest.lib import decorators, exceptions

from sluice_tempest_plugin.tests import base


class RegistryTest(base.BaseSluiceTest):
    """Each word is created, used in a sentence, and protected while it is used."""

    @decorators.idempotent_id("b61a0ef4-ce93-4149-a2bc-1703acbecb9a")
    def test_tenants_join_and_leave_a_group(self) -> None:
        group = self.name("gold")
        made = self.admin.create_gtenants(body={"name": group, "tenants": [self.account]})
        self.undo(self.admin.delete_gtenants, group=group)
        self.admin.add_gtenants_member(group=group, member=self.strangers_account)
        members = self.admin.list_gtenants_members(group=group)["members"]
        self.assertEqual({self.account, self.strangers_account}, {one["path"] for one in members})
        self.assertRaises(
            exceptions.PreconditionFailed,
            self.admin.remove_gtenants_member,
            group=group,
            member=self.account,
            if_match=made.response["etag"],
        )
        self.admin.remove_gtenants_member(group=group, member=self.account)
        self.assertEqual([self.strangers_account], self.admin.show_gtenants(group=group)["tenants"])

    @decorators.idempotent_id("6e8a703d-4044-43d4-93e6-dfc16a281205")
    @decorators.attr(type=["negative"])
    def test_a_group_that_a_policy_is_about_is_not_deleted(self) -> None:
        group = self.name("silver")
        self.admin.create_gtenants(body={"name": group, "tenants": [self.account]})
        self.undo(self.admin.delete_gtenants, group=group)
        created = self.create_policy(f"FOR GROUP {group} DO SET noop")
        error = self.assert_refused(exceptions.Conflict, self.admin.delete_gtenants, group=group)
        self.assertIn(created["id"], error["message"])

    @decorators.idempotent_id("9a4204f8-3f8a-4c62-90de-317439d94c4d")
    def test_a_group_of_containers_has_a_policy(self) -> None:
        group, container = self.name("archives"), f"{self.account}/{self.name('container')}"
        self.admin.create_gcontainers(body={"name": group, "containers": [container]})
        self.undo(self.admin.delete_gcontainers, group=group)
        created = self.create_policy(f"FOR GROUP {group} DO SET noop")
        self.assertEqual("container", created["target"]["level"])

    @decorators.idempotent_id("4cd9abfa-8557-4644-8091-a4697bc70aa6")
    @decorators.attr(type=["negative"])
    def test_a_term_that_a_policy_reads_is_not_changed(self) -> None:
        term = self.name("SHEETS")
        self.admin.coin_term(body={"term": term, "patterns": ["ods", "xlsx"]})
        self.undo(self.admin.delete_term, term=term)
        container = f"{self.account}/{self.name('container')}"
        created = self.create_policy(f"FOR CONTAINER {container} WHEN OBJECT_TYPE = {term} DO SET compression")
        error = self.assert_refused(exceptions.Conflict, self.admin.update_term, term=term, body={"patterns": ["ods"]})
        self.assertIn(created["id"], error["message"])
        self.assertEqual(["ods", "xlsx"], self.reader.show_term(term=term)["patterns"])

    @decorators.idempotent_id("cd680f56-b610-4d34-bcc8-597005ffafd1")
    def test_an_alias_stands_for_a_filter_with_parameters(self) -> None:
        alias = self.name("tight")
        body = {"name": alias, "of": "filter", "text": "compression", "params": {"engine": "gzip"}}
        self.admin.create_alias(body=body)
        self.undo(self.admin.delete_alias, alias=alias)
        created = self.create_policy(f"FOR CONTAINER {self.account}/{self.name('container')} DO SET {alias}")
        (action,) = created["actions"]
        self.assertEqual(("compression", "gzip"), (action["keyword"], action["params"]["engine"]))

    @decorators.idempotent_id("2e24e577-3ac5-41b4-8afe-0f2cc5fcfc67")
    def test_a_stereotype_is_applied_and_taken_back(self) -> None:
        name = self.name("archive")
        self.admin.create_stereotype(body={"name": name, "text": "FOR {target} DO SET noop"})
        self.undo(self.admin.delete_stereotype, stereotype=name)
        applied = self.admin.apply_stereotype(stereotype=name, target=self.account)
        self.undo(self.admin.take_back_stereotype, stereotype=name, target=self.account)
        (policy,) = applied["policies"]
        self.assertEqual(f"stereotype/{name}", self.member.show_policy(policy_id=policy)["origin"])
        self.admin.take_back_stereotype(stereotype=name, target=self.account)
        self.assertRaises(exceptions.NotFound, self.admin.show_policy, policy_id=policy)
