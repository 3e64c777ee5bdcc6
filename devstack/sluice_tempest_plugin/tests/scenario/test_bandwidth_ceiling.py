"""An objective limits a project's downloads to a rate, until it is deleted."""

from __future__ import annotations

import os
import time
from typing import Any, Final

from tempest.lib import decorators

from sluice_tempest_plugin.tests.base import LONGEST_WAIT
from sluice_tempest_plugin.tests.scenario import base

#: Bytes per second, and bytes that take several seconds at that rate.
CEILING: Final = 1_000_000
SIZE: Final = 6 * CEILING
#: The factor by which a download may exceed the ceiling, from bytes that passed before its share was assigned.
TOLERANCE: Final = 2


class BandwidthCeilingTest(base.BaseScenarioTest):
    """One download at a time, of a tenant without other objectives."""

    @decorators.idempotent_id("dc4e425b-b00b-481b-9b99-51325f0631d9")
    @decorators.attr(type="slow")
    def test_a_download_is_no_faster_than_its_ceiling(self) -> None:
        container = self.create_container()
        data = os.urandom(SIZE)
        name = self.upload(container, data)
        objective = {"account": self.account, "name": "max_get_bw"}
        self.admin.update_slo(**objective, body={"value": f"{CEILING}Bps"}, wait=LONGEST_WAIT)
        self.undo(self.admin.delete_slo, **objective)
        self.wait_for_nodes()
        began = time.monotonic()
        self.assertEqual(data, self.objects.get_object(container, name)[1])
        self.assertGreater(time.monotonic() - began, SIZE / CEILING / TOLERANCE)
        self.wait_until(lambda: self.ceilings() == [CEILING], "the flow is listed with its ceiling")
        self.admin.delete_slo(**objective, wait=LONGEST_WAIT)
        self.wait_until(lambda: self.ceilings() == [], "the flow is listed without a ceiling")
        self.assertEqual(data, self.objects.get_object(container, name)[1])

    def ceilings(self) -> list[Any]:
        """The ceilings of downloads, as a member of the project sees them."""
        flows = self.member.list_bandwidth_flows(account=self.account, method="GET")["flows"]
        return [one["ceiling"] for one in flows if one["ceiling"]]
