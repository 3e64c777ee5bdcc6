"""The first commands of the troubleshooting page, on a cluster without faults."""

import pytest
from tests.support.cluster.command_line import command_line
from tests.support.pages import Shell, read_page, shell_blocks

BLOCKS = shell_blocks(read_page("admin/troubleshooting.md"))


@pytest.fixture
def shell(cluster, tmp_path):
    command_line(cluster, tmp_path)  # writes the token
    with Shell(tmp_path, {"SLUICE_URL": cluster.api_url, "SLUICE_TOKEN_FILE": str(tmp_path / "token")}) as started:
        yield started


def test_the_first_commands_say_that_all_is_well(shell, policies):
    policies("FOR CONTAINER AUTH_test/well DO SET noop")
    assert BLOCKS
    for block in BLOCKS:
        shell.run_block(block)
