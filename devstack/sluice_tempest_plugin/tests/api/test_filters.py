"""Filters: the list, deploying one to a project, registering one."""

from __future__ import annotations

from tempest.lib import decorators, exceptions

from sluice_tempest_plugin.tests import base


class FiltersTest(base.BaseSluiceTest):
    """Administrators' operations on filters without a sentence."""

    @decorators.idempotent_id("aa0a5826-d487-4796-9bb2-5be70c26f0e8")
    @decorators.attr(type="smoke")
    def test_the_filters_of_the_cluster_are_listed_with_what_they_declare(self) -> None:
        (found,) = self.reader.list_filters(prefix="compression")["filters"]
        self.assertTrue(found["reversible"])
        self.assertIn("engine", [one["name"] for one in found["parameters"]])

    @decorators.idempotent_id("76b6926e-ba7d-4052-b328-cb3c2ebb46f0")
    def test_a_filter_is_deployed_to_a_container_and_taken_back(self) -> None:
        target = f"{self.account}/{self.name('container')}"
        call = {"target": target, "keyword": "compression"}
        deployed = self.admin.deploy_filter(**call, body={"params": {"engine": "gzip"}})
        self.undo(self.admin.undeploy_filter, **call)
        listed = self.reader.list_deployments(target=target)["filters"]
        self.assertEqual([deployed["policy"]], [one["policy"] for one in listed])
        self.assertFalse(self.admin.deploy_filter(**call, body={"engine": "gzip"})["changed"])
        self.admin.undeploy_filter(**call)
        self.assertEqual([], self.reader.list_deployments(target=target)["filters"])

    @decorators.idempotent_id("1715537a-3db1-4753-8eb2-76fe625f5858")
    @decorators.attr(type=["negative"])
    def test_a_parameter_that_a_filter_does_not_take_is_refused(self) -> None:
        call = {"target": self.account, "keyword": "compression", "body": {"engin": "gzip"}}
        error = self.assert_refused(exceptions.BadRequest, self.admin.deploy_filter, **call)
        self.assertIn("`engin`", error["message"])

    @decorators.idempotent_id("e2c748d1-1850-4315-829c-d7097880ac78")
    def test_a_registered_filter_is_known_once_and_used_when_it_has_code(self) -> None:
        keyword = self.keyword("scramble")
        body = {
            "keyword": keyword,
            "environment": "wasm",
            "language": "wasm",
            "reverse": True,
            "capabilities": {"changes_length": False, "stage": 450},
        }
        self.admin.register_filter(body=body)
        self.undo(self.admin.unregister_filter, keyword=keyword)
        self.assertEqual("", self.reader.show_filter(keyword=keyword)["sha256"])
        self.assert_refused(exceptions.Conflict, self.admin.register_filter, body=body)
        sentence = {"policy": f"FOR TENANT {self.account} DO SET {keyword}"}
        self.assert_refused(exceptions.BadRequest, self.admin.create_policies, body=sentence)
        self.admin.unregister_filter(keyword=keyword)
        self.assertRaises(exceptions.NotFound, self.reader.show_filter, keyword=keyword)
