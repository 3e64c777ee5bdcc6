"""The configuration of CollectD."""

import re
from pathlib import Path

import pytest
from tests.support.cluster.collectd import CollectdDaemon

from sluice_aio.conf.collectd import configuration

pytestmark = pytest.mark.service

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "metrics.md"
URL = "amqp://guest:guest@broker1,broker2/%2F"


def settings(text):
    """Every setting, as a word and the rest of its line."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def test_the_page_shows_what_is_tested_but_for_what_belongs_to_a_trial():
    shown = settings(re.search(r"```apache\n(.*?)```", PAGE.read_text(), re.DOTALL)[1])
    made = settings(configuration("node1", URL, Path("/x")))
    assert shown == made[made.index("LoadPlugin cpu") :]


def test_what_the_url_says_reaches_collectd_quoted():
    made = configuration("a.b", "amqp://us%22er:p%5Cw@h:7/v%2F1", Path("/x"), 5, ("eth0", "eth1"))
    for line in (
        'Host "h"', 'Port "7"', 'VHost "v/1"', r'User "us\"er"', r'Password "p\\w"', 'RoutingKey "collectd.a_b"',
        "Interval 5", 'Interface "eth0"', 'Interface "eth1"', "IgnoreSelected false", 'Exchange "sluice.metrics"',
    ):  # fmt: skip
        assert line in settings(made)
    assert "TLSEnabled" not in made


@pytest.mark.parametrize(("more", "names"), [("", "true"), ("&ssl_check_hostname=false", "false")])
def test_tls_is_that_of_the_url(more, names):
    made = settings(configuration("n", f"amqps://h/?ssl_ca_certs=/ca&ssl_certfile=/c&ssl_keyfile=/k{more}", Path("/x")))
    assert made[made.index("TLSEnabled true") :][:6] == [
        "TLSEnabled true", "TLSVerifyPeer true", f"TLSVerifyHostName {names}",
        'TLSCACert "/ca"', 'TLSClientCert "/c"', 'TLSClientKey "/k"',
    ]  # fmt: skip
    assert 'Port "5671"' in made


def test_the_file_with_the_password_is_its_owners_only(tmp_path):
    daemon = CollectdDaemon(tmp_path / "c", "n", URL)
    daemon._child.argv = ["true"]
    daemon.start()
    daemon.stop()
    assert (tmp_path / "c" / "collectd.conf").stat().st_mode & 0o777 == 0o600
