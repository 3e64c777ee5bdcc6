"""An administrator uploads a filter, a project's objects pass it, and it is deleted."""

from __future__ import annotations

from string import Template
from typing import Final

from tempest import config
from tempest.lib import decorators, exceptions

from sluice_tempest_plugin.tests.base import LONGEST_WAIT
from sluice_tempest_plugin.tests.scenario import base

CONF = config.CONF

TEXT: Final = b"".join(b"%d: a line that compresses\n" % number for number in range(5000))
#: A native filter; its keyword is in its code.
CODE: Final = Template("""
import zlib

from sluice_core.describe import ActionInfo
from sluice_filters.api import CorruptData, Filter, Stream


class Deflate(Stream):
    def __init__(self):
        self._size = 0
        self._codec = zlib.compressobj()

    def feed(self, data):
        self._size += len(data)
        return self._codec.compress(data)

    def finish(self):
        return self._codec.flush() if self._size else b""

    def record(self):
        return {"size": self._size} if self._size else None


class Inflate(Stream):
    def __init__(self):
        self._codec = zlib.decompressobj()

    def feed(self, data):
        try:
            return self._codec.decompress(data)
        except zlib.error as error:
            raise CorruptData(str(error)) from error

    def finish(self):
        if not self._codec.eof or self._codec.unused_data:
            raise CorruptData("the stored object does not end where it should")
        return b""


class Deflated(Filter):
    info = ActionInfo("$keyword", "filter", "deflates", changes_content=True, changes_length=True, reversible=True)

    def encoder(self, hint):
        return Deflate()

    def decoder(self, record, window=None):
        return Inflate()
""")


class UploadedFilterTest(base.BaseScenarioTest):
    """Native code, which every node tries before it loads it."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        if not CONF.sluice_feature_enabled.uploaded_code:
            raise cls.skipException("no code is uploaded to this cloud")
        if not CONF.sluice_feature_enabled.storage_network:
            raise cls.skipException("the object servers are not reached from here")

    def upload_filter(self) -> str:
        """The keyword of a filter that all live nodes can run."""
        keyword = self.keyword("deflate")
        self.admin.register_filter(body={"keyword": keyword, "environment": "native"})
        self.undo(self.admin.unregister_filter, keyword=keyword, force=True)
        code = CODE.substitute(keyword=keyword).encode()
        self.admin.upload_filter(keyword=keyword, body=code, wait=LONGEST_WAIT)
        self.wait_until(lambda: self.is_usable(keyword), f"all nodes can run `{keyword}`")
        return keyword

    def is_usable(self, keyword: str) -> bool:
        """Whether the code of a filter has been tried on all live nodes."""
        rollout = self.admin.show_filter(keyword=keyword)["rollout"]
        self.assertEqual([], rollout["refused"])
        return not rollout["waiting"]

    @decorators.idempotent_id("052c97b8-8051-42ed-bd40-9d84aa4ad7b8")
    @decorators.attr(type="slow")
    def test_objects_pass_an_uploaded_filter_while_it_is_deployed(self) -> None:
        keyword, container = self.upload_filter(), self.create_container()
        name = self.upload(container, TEXT)
        plain = min(self.stored_sizes(container, name))
        deployment = {"target": f"{self.account}/{container}", "keyword": keyword}
        deployed = self.admin.deploy_filter(**deployment, body={})
        self.undo(self.admin.delete_policy, policy_id=deployed["policy"])

        def is_filtered() -> bool:  # Swift's workers load new code within a second or two
            self.objects.create_object(container, name, TEXT)
            return max(self.stored_sizes(container, name)) < plain / 2

        self.wait_until(is_filtered, "objects pass the filter")
        self.assert_reads_back(container, name, TEXT)
        self.admin.undeploy_filter(**deployment, wait=LONGEST_WAIT)
        self.wait_for_nodes()
        self.assert_reads_back(container, name, TEXT)
        self.assertEqual(plain, min(self.stored_sizes(container, self.upload(container, TEXT))))

    @decorators.idempotent_id("741c0bd3-fe1a-4b23-932e-80f839f30a6c")
    @decorators.attr(type=["negative"])
    def test_a_filter_that_objects_are_stored_through_is_not_forgotten_by_accident(self) -> None:
        keyword = self.upload_filter()
        self.assert_refused(exceptions.Conflict, self.admin.unregister_filter, keyword=keyword)
        code = b"import this is no Python"
        self.assert_refused(exceptions.BadRequest, self.admin.upload_filter, keyword=keyword, body=code)
        self.assertEqual(1, self.admin.show_filter(keyword=keyword)["revision"])
