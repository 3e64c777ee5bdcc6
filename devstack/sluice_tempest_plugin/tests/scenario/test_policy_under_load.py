"""A policy watches a project's requests, sets an action, and reverts it."""

from __future__ import annotations

from typing import Final

from tempest import config
from tempest.lib import decorators
from tempest.lib.common.utils import test_utils

from sluice_tempest_plugin.tests.scenario import base

CONF = config.CONF

TEXT: Final = b"a line that compresses\n" * 100
#: Uploads between two polls of the policy.
UPLOADS: Final = 5


class PolicyUnderLoadTest(base.BaseScenarioTest):
    """A condition on the rate of uploads to one container."""

    @decorators.idempotent_id("dea3ac03-c6b6-497f-995a-7bae594362e5")
    @decorators.attr(type="slow")
    def test_a_policy_fires_under_load_and_ends_with_it(self) -> None:
        container = self.create_container()
        target = f"{self.account}/{container}"
        policy = self.create_policy(f"FOR CONTAINER {target} WHEN PUTS_SEC > 1 DO SET compression TRANSIENT")["id"]
        self.assertEqual("waiting", self.state(policy))
        name = self.upload(container, TEXT)

        def fires_under_load() -> bool:
            for _ in range(UPLOADS):
                self.objects.create_object(container, name, TEXT)
            return self.state(policy) == "active"

        fired = test_utils.call_until_true(fires_under_load, CONF.sluice.build_timeout, 0)
        self.assertTrue(fired, "the policy did not fire")
        self.wait_until(lambda: self.state(policy) == "waiting", "the policy ends with the load")
        firings = [one["what"] for one in self.member.list_firings(policy_id=policy)["firings"]]
        self.assertEqual({"set", "taken_back"}, set(firings))
        self.assert_reads_back(container, name, TEXT)

    def state(self, policy: str) -> str:
        """The state of a policy, as a member of the project sees it."""
        return str(self.member.show_policy(policy_id=policy)["state"])
