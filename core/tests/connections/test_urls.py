"""URLs of Redis and RabbitMQ: the accepted forms, their meaning, and that no password is shown."""

import string
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_core.connections.bus_connection import connection_parameters, parse_bus_url
from sluice_core.connections.publisher import Publisher
from sluice_core.connections.urls import Host, parse_url
from sluice_core.options import OptionError
from sluice_core.store.redis_urls import RedisAddress
from sluice_core.store.store import AsyncStore, Store

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("url", "place", "settings"),
    [
        ("redis://h", "h:6379", {"host": "h", "port": 6379, "db": 0, "password": None}),
        ("redis://h:1/3", "h:1", {"port": 1, "db": 3}),
        ("redis://:p%40ss@h/0", "h:6379", {"password": "p@ss", "username": None}),
        ("redis://me:secret@[::1]:7/0", "[::1]:7", {"host": "::1", "username": "me", "password": "secret"}),
        ("redis://h/?db=4&client_name=agent", "h:6379", {"db": 4, "client_name": "agent"}),
        ("unix://:s@/run/redis.sock?db=2", "/run/redis.sock", {"path": "/run/redis.sock", "db": 2, "password": "s"}),
        ("rediss://h/1?ssl_ca_certs=/ca.pem", "h:6379", {"ssl_ca_certs": "/ca.pem", "ssl_check_hostname": True}),
        ("rediss://h?ssl_check_hostname=false", "h:6379", {"ssl_check_hostname": False, "ssl_cert_reqs": "required"}),
        ("redis+sentinel://:p@a,b:7/mymaster/2", "a:26379,b:7/mymaster", {"db": 2, "password": "p"}),
        ("rediss+sentinel://a/m?sentinel_password=q", "a:26379/m", {"db": 0, "ssl_check_hostname": True}),
    ],
)
def test_a_url_means_what_its_parts_say(url, place, settings):
    found = RedisAddress(url)
    assert str(found) == repr(found) == place
    for client in (found.client(2.0), found.async_client(2.0)):
        kwargs = client.connection_pool.connection_kwargs
        assert {name: kwargs[name] for name in settings} == settings
        assert kwargs["socket_timeout"] == 2.0


BAD = [
    "", "redis", "redis:hunter2", "http://:hunter2@h/", "redis://:hunter2@", "redis://:hunter2@h:port/",
    "redis://:hunter2@h:70000/", "redis://:hunter2@h/x", "redis://:hunter2@h/0?pasword=hunter2", "redis://u:hunter2@a,b/0",
    "redis://h:1:hunter2/0", "redis://:hunter2#@h/0", "redis://:hunter2@h/0?ssl_ca_certs=/x", "redis://[::1/hunter2",
    "unix://hunter2/path", "unix://", "redis+sentinel://:hunter2@h", "redis+sentinel://:hunter2@h//0",
    "redis+sentinel://:hunter2@h/m/one", "rediss://:hunter2@h/?ssl_check_hostname=maybe", "redis://:hunter2@h/?db",
]  # fmt: skip


@pytest.mark.parametrize("url", BAD)
def test_a_bad_url_is_refused_at_once_and_without_its_password(url):
    for make in (RedisAddress, Store, AsyncStore):
        with pytest.raises(OptionError) as refused:
            make(url)
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://h/", "scheme `http` is not known, expected redis://"),
        ("h:6379", "it has no scheme, expected redis://"),
        ("redis://h/0?pasword=x", "unknown option `pasword`, did you mean `password`, expected redis://"),
        ("redis://h:0/", "a port is no number between 1 and 65535"),
        ("redis://a,b/0", "several hosts need Sentinels"),
        ("redis+sentinel://a,b", "the master's name is missing"),
        ("unix://h/x", "a socket has an absolute path and no host"),
    ],
)
def test_a_refusal_names_what_is_wrong_and_the_forms(url, reason):
    with pytest.raises(OptionError) as refused:
        RedisAddress(url)
    assert reason in str(refused.value)
    assert "redis+sentinel://host:port,host:port/master/db" in str(refused.value)


def test_brokers_stand_in_their_order_each_with_its_login():
    link = parse_bus_url("amqp://u:p@a,b:7,v:q@[::1]/vh%2Fost?heartbeat=30")
    assert link.hosts == (Host("a", 5672, "u", "p"), Host("b", 7, "u", "p"), Host("::1", 5672, "v", "q"))
    found = connection_parameters(link)
    assert [(one.host, one.port, one.credentials.username) for one in found] == [
        ("a", 5672, "u"), ("b", 7, "u"), ("::1", 5672, "v"),
    ]  # fmt: skip
    assert {(one.virtual_host, one.heartbeat) for one in found} == {("vh/ost", 30)}
    for text in ("amqp://h", "amqp://h/", "amqp://h/%2F"):
        assert connection_parameters(parse_bus_url(text))[0].virtual_host == "/"


@pytest.mark.parametrize(
    "url",
    [
        "amqp://:hunter2@h/?heartbeat=0",
        "redis://:hunter2@h/",
        "amqp://u:hunter2@a,,b/",
        "amqp://u:hunter2@h/?ssl_ca_certs=x",
    ],
)
def test_a_bad_url_of_a_broker_is_refused_likewise(url):
    with pytest.raises(OptionError) as refused:
        Publisher(url)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("option", ["ssl_ca_certs", "ssl_certfile"])
def test_a_file_that_tls_cannot_use_is_named_with_its_option(option, tmp_path):
    (tmp_path / "bad.pem").write_text("nothing of use")
    for name in ("bad.pem", "absent.pem"):
        with pytest.raises(OptionError, match=f"option `{option}`: cannot use `{tmp_path}/{name}`"):
            connection_parameters(parse_bus_url(f"amqps://h/?{option}={tmp_path}/{name}"))


ANY_TEXT = st.text(string.printable, max_size=40)


def refusal(make, url):
    """The error for ``url``; empty when it is accepted."""
    try:
        make(url)
    except OptionError as error:
        return str(error)
    return None


@settings(deadline=None)
@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_no_text_at_all_makes_the_reader_fail_otherwise_than_by_refusing(scheme, middle, end):
    for url in (
        scheme + middle,
        f"redis://{middle}{end}",
        f"amqp://{middle}@{end}",
        f"redis+sentinel://{scheme}/{end}",
    ):
        for make in (RedisAddress, parse_bus_url):
            assert refusal(make, url) != ""


@settings(deadline=None)
@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_any_user_and_password_arrive_when_they_are_encoded(user, password):
    url = f"redis://{quote(user, safe='')}:{quote(password, safe='')}@h/0"
    link = parse_url(url, {"redis": 1}, (), "a URL")
    assert (link.user, link.password) == (user, password)


def test_what_is_printed_of_a_link_has_no_login():
    for url in ("redis://somebody:hunter2@h/0?password=hunter2", "unix://somebody:hunter2@/run/s"):
        link = parse_url(url, {"redis": 1, "unix": 0}, ("password",), "a URL")
        assert SECRET not in f"{link!r} {link.place} {link.hosts}"
        assert "somebody" not in f"{link!r} {link.hosts}"
