"""The tour of project members, and the commands of their page, as alice of acme types them."""

import pytest
from tests.support.pages import Shell, read_page, shell_blocks

from sluice_aio.keystone import seed

PAGES = ("tutorials/tenant-tour.md", "user/index.md")
CLOUDS = """clouds:
  acme:
    auth:
      auth_url: {url}
      username: alice
      password: {password}
      project_name: {project}
      user_domain_id: default
      project_domain_id: default
    region_name: RegionOne
    identity_api_version: 3
"""


@pytest.fixture
def shell(cluster, tmp_path):
    """A shell as the page prepares it: a `clouds.yaml` with acme, and its name."""
    password, project, _ = seed.PEOPLE["alice"]
    clouds = tmp_path / "clouds.yaml"
    clouds.write_text(CLOUDS.format(url=cluster.keystone_url, password=password, project=project), encoding="utf-8")
    login = {
        "OS_CLOUD": "acme",
        "OS_CLIENT_CONFIG_FILE": str(clouds),
        "SWIFT_URL": cluster.proxy_url,
    }
    with Shell(tmp_path, login) as started:
        yield started


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_the_page_does_what_it_shows(shell, page):
    blocks = shell_blocks(read_page(page))
    assert blocks
    for block in blocks:
        shell.run_block(block)
