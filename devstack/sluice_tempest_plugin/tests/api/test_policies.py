"""The life of a policy, from its sentence to its end."""

from __future__ import annotations

from tempest.lib import decorators, exceptions
from tempest.lib.common.utils import data_utils

from sluice_tempest_plugin.tests import base


class PoliciesTest(base.BaseSluiceTest):
    """An administrator creates policies for containers of one project."""

    def sentence(self, keyword: str = "noop") -> str:
        """A sentence about a container that need not exist."""
        return f"FOR CONTAINER {self.account}/{self.name('container')} DO SET {keyword}"

    @decorators.idempotent_id("3eccfd31-379e-43c5-8557-191ef7755e06")
    @decorators.attr(type="smoke")
    def test_a_policy_is_enforced_shown_and_deleted(self) -> None:
        sentence = self.sentence("compression")
        created = self.create_policy(sentence)
        self.assertGreaterEqual(created["enforced"]["nodes"], 1)
        shown = self.admin.show_policy(policy_id=created["id"])
        self.assertEqual(sentence, shown["policy"])
        self.assertEqual("active", shown["state"])
        self.admin.delete_policy(policy_id=created["id"])
        self.assertRaises(exceptions.NotFound, self.admin.show_policy, policy_id=created["id"])

    @decorators.idempotent_id("2f3d7962-1128-4821-afa8-cebaff445395")
    def test_the_policies_of_a_tenant_are_listed_in_pages(self) -> None:
        created = [self.create_policy(self.sentence())["id"] for _ in range(3)]
        first = self.admin.list_policies(tenant=self.account, limit=2)
        rest = self.admin.list_policies(tenant=self.account, limit=2, marker=first["next_marker"])
        self.assertEqual(created, [one["id"] for one in (*first["policies"], *rest["policies"])])
        self.assertIsNone(rest["next_marker"])

    @decorators.idempotent_id("dc47709c-ead8-47dd-b327-2cf524c5c923")
    def test_a_policy_gets_another_text_while_its_version_is_the_one_that_was_seen(self) -> None:
        created = self.create_policy(self.sentence("compression"))
        body = {"policy": f"{created['policy']} WITH engine=gzip"}
        changed = self.admin.update_policy(policy_id=created["id"], if_match=f'"{created["version"]}"', body=body)
        self.assertEqual(body["policy"], changed["policy"])
        self.assertEqual(f'"{changed["version"]}"', changed.response["etag"])
        self.assertRaises(
            exceptions.PreconditionFailed,
            self.admin.update_policy,
            policy_id=created["id"],
            if_match=f'"{created["version"]}"',
            body={"enabled": False},
        )

    @decorators.idempotent_id("6908f06b-a851-4db0-bf6f-df95b71fb2c9")
    def test_a_policy_that_is_switched_off_decides_nothing(self) -> None:
        created = self.create_policy(self.sentence())
        target = f"{created['target']['name']}/object"
        self.assertEqual([created["id"]], self.deciding(target))
        self.admin.update_policy(policy_id=created["id"], body={"enabled": False})
        self.assertEqual([], self.deciding(target))
        self.admin.update_policy(policy_id=created["id"], body={"enabled": True})
        self.assertEqual([created["id"]], self.deciding(target))

    def deciding(self, target: str) -> list[str]:
        """The policies that decide for the filters of an object."""
        kinds = self.admin.show_effective(target=target)["kinds"]
        return [policy for one in kinds if one["kind"] == "filter" for policy in one["decided_by"]]

    @decorators.idempotent_id("3b9f8586-abbb-49ba-b002-77ee85b639fa")
    def test_checking_a_sentence_creates_nothing(self) -> None:
        sentence = f"FOR TENANT {self.strangers_account} WHEN PUTS_SEC > 3 DO SET compression TRANSIENT"
        (checked,) = self.admin.check_policies(body={"policy": sentence})["policies"]
        self.assertTrue(checked["dynamic"])
        self.assertEqual([], self.admin.list_policies(tenant=self.strangers_account)["policies"])

    @decorators.idempotent_id("379fd692-5797-4182-9763-b803374222fb")
    def test_a_repeated_request_with_one_key_creates_one_policy(self) -> None:
        key, body = data_utils.rand_uuid(), {"policy": self.sentence()}
        first = self.admin.create_policies(body=body, idempotency_key=key)
        self.undo(self.admin.delete_policy, policy_id=first["id"])
        self.assertEqual(first["id"], self.admin.create_policies(body=body, idempotency_key=key)["id"])

    @decorators.idempotent_id("986624ee-8daf-4b18-b857-5192d1d46be0")
    def test_several_sentences_become_policies_together(self) -> None:
        text = "; ".join((self.sentence(), self.sentence()))
        created = self.admin.create_policies(body={"policy": text})["policies"]
        for one in created:
            self.undo(self.admin.delete_policy, policy_id=one["id"])
        self.assertEqual(1, len({one["epoch"] for one in created}))
        self.assertEqual(2, len({one["target"]["name"] for one in created}))
