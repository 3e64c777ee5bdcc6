"""The dashboard has a name for each word in the API's responses about policies."""

from sluice_controller.catalog.policy_cache import STATES
from sluice_controller.configuration.configuration import HOWS
from sluice_controller.policies.effective import REASONS
from sluice_dashboard import names


def test_states_of_policies_have_names():
    assert set(names.POLICY_STATES) == set(STATES)


def test_what_undoing_does_has_names():
    assert set(names.HOWS) == set(HOWS)


def test_reasons_of_the_api_are_named_alike():
    assert set(names.REASONS) <= set(REASONS)
