"""The base of all tests: three users of one project, a user of another, and objects that are deleted afterwards.

A cloud may have other policies, groups and projects, and other tests run at the same time: a test creates objects with
names of its own, only uses its own projects, and asserts nothing about the number of objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from tempest import config, test
from tempest.lib.common.utils import data_utils, test_utils

CONF = config.CONF

#: Seconds for which the API waits for nodes at most.
LONGEST_WAIT: Final = 30


class BaseSluiceTest(test.BaseTestCase):
    """``admin``, ``member``, ``reader`` and the ``stranger`` of another project call the API."""

    credentials = ["project_admin", "project_member", "project_reader", "project_alt_member"]

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        if not CONF.service_available.sluice:
            raise cls.skipException("sluice is not available")

    @classmethod
    def setup_credentials(cls) -> None:
        cls.set_network_resources()  # none
        super().setup_credentials()

    @classmethod
    def setup_clients(cls) -> None:
        super().setup_clients()
        cls.admin = cls.os_project_admin.sluice.SluiceClient()
        cls.member = cls.os_project_member.sluice.SluiceClient()
        cls.reader = cls.os_project_reader.sluice.SluiceClient()
        cls.stranger = cls.os_project_alt_member.sluice.SluiceClient()
        cls.account = cls.account_of(cls.os_project_member)
        cls.strangers_account = cls.account_of(cls.os_project_alt_member)

    @staticmethod
    def account_of(manager: Any) -> str:
        """The account of a user's project in Swift."""
        return f"{CONF.sluice.reseller_prefix}{manager.credentials.project_id}"

    def name(self, what: str) -> str:
        """A unique name."""
        return str(data_utils.rand_name(what, prefix=CONF.resource_name_prefix))

    def keyword(self, what: str) -> str:
        """The same for a filter."""
        return self.name(what).replace("-", "_").lower()

    def undo(self, call: Callable[..., Any], *arguments: Any, **parameters: Any) -> None:
        """Make ``call`` at the end of the test; the object may be deleted already."""
        self.addCleanup(test_utils.call_and_ignore_notfound_exc, call, *arguments, **parameters)

    def create_policy(self, sentence: str, client: Any = None) -> Any:
        """A policy of the administrator's or the ``client``'s, which all live nodes enforce."""
        created = (client or self.admin).create_policies(body={"policy": sentence}, wait=LONGEST_WAIT)
        self.undo(self.admin.delete_policy, policy_id=created["id"])
        self.wait_for_nodes()
        shown = self.admin.show_policy(policy_id=created["id"])
        self.assertEqual([], shown["enforced"]["refused"])
        return shown

    def wait_for_nodes(self) -> None:
        """Wait until all live nodes have applied the present policies; ``wait`` of calls is no guarantee."""
        epoch = self.admin.list_nodes(limit=1)["head"]["epoch"]
        self.wait_until(lambda: all(one["epoch"] >= epoch for one in self.live_nodes()), f"nodes apply change {epoch}")

    def live_nodes(self) -> Iterator[Any]:
        """All nodes that report and have no fault."""
        page = self.admin.list_nodes(state="ok")
        yield from page["nodes"]
        while page["next_marker"] is not None:
            page = self.admin.list_nodes(state="ok", marker=page["next_marker"])
            yield from page["nodes"]

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Poll until ``condition`` is true; ``what`` names the missing state after the build timeout."""
        if not test_utils.call_until_true(condition, CONF.sluice.build_timeout, CONF.sluice.build_interval):
            self.fail(f"not within {CONF.sluice.build_timeout} s: {what}")

    def assert_refused(self, error: type[Exception], call: Callable[..., Any], **parameters: Any) -> Any:
        """The body of the error response to a call."""
        return self.assertRaises(error, call, **parameters).resp_body
