"""The generated files in the tree are the output of ``make generate``; docs/tests check samples and pages."""

import pytest
from tests.support.tool_loader import load_tool

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def generate():
    return load_tool("generate")


def test_the_client_knows_the_operations_of_the_schema(generate):
    assert generate.OPERATIONS.read_text() == generate.client_operations(), "run `make generate`"


def test_openstack_knows_every_command(generate):
    setup = generate.SETUP.read_text()
    assert setup == generate.with_entry_points(setup), "run `make generate`"


def test_a_command_that_is_gone_leaves_no_entry_point(generate):
    setup = generate.SETUP.read_text()
    other = setup.replace("openstack.sluice.v1 =\n", "openstack.sluice.v1 =\n    sluice_gone = nowhere:Gone\n")
    assert other != setup
    assert generate.with_entry_points(other) == setup


def test_a_file_without_the_groups_is_an_error(generate):
    with pytest.raises(SystemExit, match="has no entry points"):
        generate.with_entry_points("[options]\n")
