"""A policy starts and ends while a project uploads, and the stored bytes show it."""

from __future__ import annotations

from typing import Final

from tempest import config
from tempest.lib import decorators

from sluice_tempest_plugin.tests.base import LONGEST_WAIT
from sluice_tempest_plugin.tests.scenario import base

CONF = config.CONF

TEXT: Final = b"".join(b"%d: a line that compresses\n" % number for number in range(5000))


class CompressedObjectTest(base.BaseScenarioTest):
    """Objects of one container before, under and after a policy that compresses them."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        if not CONF.sluice_feature_enabled.storage_network:
            raise cls.skipException("the object servers are not reached from here")

    @decorators.idempotent_id("63db40de-757f-444d-b76b-edec916b0af1")
    @decorators.attr(type="slow")
    def test_objects_are_stored_compressed_until_the_policy_is_deleted(self) -> None:
        container = self.create_container()
        before = self.upload(container, TEXT)
        plain = min(self.stored_sizes(container, before))
        policy = self.create_policy(f"FOR CONTAINER {self.account}/{container} DO SET compression ON PROXY")
        under = self.upload(container, TEXT)
        self.assertLess(max(self.stored_sizes(container, under)), plain / 2)
        self.admin.delete_policy(policy_id=policy["id"], wait=LONGEST_WAIT)
        self.wait_for_nodes()
        after = self.upload(container, TEXT)
        self.assertGreaterEqual(min(self.stored_sizes(container, after)), plain)
        for name in (before, under, after):
            self.assert_reads_back(container, name, TEXT)

    @decorators.idempotent_id("7b24d14b-a2f9-4f9b-b4d6-6215e258a7b8")
    def test_listings_and_checksums_are_those_of_the_plain_object(self) -> None:
        container = self.create_container()
        plain = self.upload(container, TEXT)
        self.create_policy(f"FOR CONTAINER {self.account}/{container} DO SET compression ON PROXY")
        compressed = self.upload(container, TEXT)
        first, second = (self.objects.get_object(container, name)[0] for name in (plain, compressed))
        self.assertEqual(first["etag"], second["etag"])
        self.assertEqual(first["content-length"], second["content-length"])
        self.assertLess(max(self.stored_sizes(container, compressed)), len(TEXT) / 2)


class SelfServiceObjectTest(base.BaseScenarioTest):
    """A member compresses its own container; a reader of the project reads the compressed objects."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        if not CONF.sluice_feature_enabled.self_service:
            raise cls.skipException("members may not set compression")
        if not CONF.sluice_feature_enabled.storage_network:
            raise cls.skipException("the object servers are not reached from here")

    @decorators.idempotent_id("e9193f1c-52c2-4590-9d34-08630ac4e9d1")
    def test_a_member_has_its_own_objects_stored_compressed(self) -> None:
        container = self.create_container()
        sentence = f"FOR CONTAINER {self.account}/{container} DO SET compression ON PROXY"
        self.create_policy(sentence, self.member)
        name = self.upload(container, TEXT)
        self.assertLess(max(self.stored_sizes(container, name)), len(TEXT) / 2)
        self.assert_reads_back(container, name, TEXT)
        self.assert_reads_back(container, name, TEXT, self.os_project_reader.object_client)
