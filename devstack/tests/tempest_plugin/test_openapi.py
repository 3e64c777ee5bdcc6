"""Requests and responses of the tempest plugin's client match the API's own document."""

import os

import django
import pytest

from sluice_tempest_plugin.openapi import Description, UndescribedAnswer


@pytest.fixture(scope="module")
def description():
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sluice_controller.app.settings")
    django.setup()
    from tests.support.controller.checked_client import schema

    return Description(schema())


def test_parameters_go_where_the_document_says(description):
    given = {"account": "AUTH_a", "name": "get_bw", "policy": "gold", "wait": 5}
    operation = description.operation("update_slo_of_policy")
    assert operation.request(given) == ("/bw/slo/AUTH_a/get_bw/gold?wait=5", {})
    assert (operation.method, operation.content_type, operation.success) == ("PUT", "application/json", [200])
    url, headers = description.operation("roll_back").request({"epoch": 3, "if_match": '"4"', "plan": True})
    assert (url, headers) == ("/changes/3/rollback?plan=true", {"If-Match": '"4"'})


def test_names_in_paths_are_quoted(description):
    found = description.operation("show_locality").request(
        {"account": "AUTH_a", "container": "c d", "object_name": "a/b?"}
    )
    assert found == ("/locality/AUTH_a/c%20d/a%2Fb%3F", {})


@pytest.mark.parametrize(
    ("given", "text"),
    [({}, "`show_policy` needs the parameter `policy_id`"), ({"policy": 1}, "`show_policy` has no parameter `policy`")],
)
def test_a_parameter_that_is_missing_or_unknown_is_refused(description, given, text):
    with pytest.raises(TypeError, match=text):
        description.operation("show_policy").request(given)


def test_an_unknown_operation_is_refused_with_the_near_miss(description):
    with pytest.raises(AttributeError, match="no operation `list_policy`, did you mean `list_policies`"):
        description.operation("list_policy")


def test_an_answer_that_the_document_does_not_foresee_is_refused(description):
    listing = description.operation("list_policies")
    page = {"policies": [], "next_marker": None, "previous_marker": None, "total": 0}
    description.check(listing, 200, page)
    with pytest.raises(UndescribedAnswer, match=r"`list_policies` answered 200, at \$: 'policies' is a required"):
        description.check(listing, 200, {name: page[name] for name in page if name != "policies"})
    with pytest.raises(UndescribedAnswer, match="expected none"):
        description.check(description.operation("delete_slo"), 204, {})
