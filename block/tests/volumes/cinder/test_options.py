"""Options of Cinder, and invalid values."""

import pytest

from sluice_core.options import OptionError, read_options
from sluice_volumes.cinder.service import OPTIONS, CinderSettings


def read(**given):
    return CinderSettings.from_options(read_options(OPTIONS, given, "here"))


@pytest.fixture
def password(tmp_path):
    path = tmp_path / "password"
    path.write_text("s3cret\n")
    return str(path)


def test_without_a_keystone_there_is_no_cinder():
    assert read() is None


@pytest.mark.parametrize(
    ("user", "domain"), [("service:sluice", "default"), ("d1/service:sluice", "d1")], ids=["default domain", "domain"]
)
def test_a_user_is_read_with_its_project_and_domain(password, user, domain):
    found = read(
        cinder_auth_url="http://k/v3", cinder_user=user, cinder_password_file=password, cinder_url="http://c/v3/"
    )
    assert (found.user, found.project, found.domain, found.password) == ("sluice", "service", domain, "s3cret")
    assert found.url == "http://c/v3"
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize("user", ["", "sluice", ":sluice", "service:", "/service:sluice"])
def test_a_user_that_is_none_is_named(password, user):
    with pytest.raises(OptionError, match="expected project:user or domain id/project:user"):
        read(cinder_auth_url="http://k/v3", cinder_user=user, cinder_password_file=password)


def test_a_password_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(OptionError, match="`cinder_password_file`: cannot read"):
        read(cinder_auth_url="http://k/v3", cinder_user="p:u", cinder_password_file=str(tmp_path / "no"))
