"""Refused requests about policies, and their errors."""

from __future__ import annotations

from tempest.lib import decorators, exceptions
from tempest.lib.common.utils import data_utils

from sluice_tempest_plugin.tests import base


class PoliciesNegativeTest(base.BaseSluiceTest):
    """A refused request has changed nothing."""

    def assert_not_created(self) -> None:
        """The project has no policy."""
        self.assertEqual([], self.admin.list_policies(tenant=self.account)["policies"])

    @decorators.idempotent_id("9abe4944-034b-4fd0-8e18-edec41d21c3d")
    @decorators.attr(type=["negative"])
    def test_a_misspelt_word_is_refused_with_its_place_and_the_near_miss(self) -> None:
        sentence = f"FOR TENANT {self.account} DO SET compresion"
        error = self.assert_refused(exceptions.BadRequest, self.admin.create_policies, body={"policy": sentence})
        (problem,) = error["problems"]
        self.assertEqual("compression", problem["near_miss"])
        self.assertEqual((1, sentence.index("compresion") + 1), (problem["line"], problem["column"]))
        self.assert_not_created()

    @decorators.idempotent_id("47423ee3-3066-46a0-a7ca-4a3e15024fc6")
    @decorators.attr(type=["negative"])
    def test_one_wrong_sentence_refuses_all_of_them(self) -> None:
        text = f"FOR TENANT {self.account} DO SET noop; FOR TENANT {self.account} DO SET"
        self.assert_refused(exceptions.BadRequest, self.admin.create_policies, body={"policy": text})
        self.assert_not_created()

    @decorators.idempotent_id("39b20c9b-f361-41b2-a034-4dada44f629b")
    @decorators.attr(type=["negative"])
    def test_a_project_that_does_not_exist_is_refused_by_its_name(self) -> None:
        project = self.name("project")
        body = {"policy": f"FOR TENANT {project} DO SET noop"}
        error = self.assert_refused(exceptions.BadRequest, self.admin.create_policies, body=body)
        self.assertIn(f"`{project}`", error["message"])

    @decorators.idempotent_id("0339c87f-838b-4cf2-8ae1-3d04c8706984")
    @decorators.attr(type=["negative"])
    def test_a_contradiction_names_the_policy_that_it_contradicts(self) -> None:
        sentence = f"FOR CONTAINER {self.account}/{self.name('container')} DO SET compression"
        created = self.create_policy(sentence)
        body = {"policy": f"{sentence} WITH engine=gzip"}
        error = self.assert_refused(exceptions.Conflict, self.admin.create_policies, body=body)
        self.assertIn(created["id"], error["message"])

    @decorators.idempotent_id("386dc1ae-9a3b-4b1d-a96e-3b7aa00c7bca")
    @decorators.attr(type=["negative"])
    def test_a_policy_that_does_not_exist_is_not_found(self) -> None:
        unknown = data_utils.rand_uuid()
        self.assert_refused(exceptions.NotFound, self.admin.show_policy, policy_id=unknown)
        self.assert_refused(exceptions.NotFound, self.admin.delete_policy, policy_id=unknown)

    @decorators.idempotent_id("41b04a47-2806-4216-a278-d7e85528065c")
    @decorators.attr(type=["negative"])
    def test_an_unknown_parameter_is_refused(self) -> None:
        error = self.assertRaises(exceptions.BadRequest, self.admin.get, "/policies?tenent=x").resp_body
        self.assertIn("`tenent`", error["message"])

    @decorators.idempotent_id("c8f46af0-ab1c-479e-a944-9ca87d9cf35c")
    @decorators.attr(type=["negative"])
    def test_a_body_that_is_no_json_is_refused(self) -> None:
        headers = {"Content-Type": "text/plain", "Accept": "application/json"}
        self.assertRaises(exceptions.InvalidContentType, self.admin.post, "/policies", "FOR ALL", headers)

    @decorators.idempotent_id("d2a83db9-8102-440f-992a-8554503f740d")
    @decorators.attr(type=["negative"])
    def test_a_request_without_a_token_is_refused(self) -> None:
        listing = self.admin.list_policies
        self.admin.auth_provider.set_alt_auth_data("headers", None)
        self.addCleanup(self.admin.auth_provider.reset_alt_auth_data)
        self.assertRaises(exceptions.Unauthorized, listing)
