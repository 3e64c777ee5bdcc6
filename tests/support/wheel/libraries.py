"""What the other roles bring, used: commands, libraries, and plugins of OpenStack's and other people's programs."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.controller.api_server import ApiServer
from tests.support.wheel.role import Role, Servers

from sluice_aio.base.ports import HOST, free_port

_CLONE: Final = Path(__file__).resolve().parents[3]
_LOAD_FILTERS: Final = """\
from sluice_filters.registry import load_filters
failures = {}
print(*load_filters(failures))
assert not failures, failures
"""
_CHECK_DASHBOARD: Final = """\
import django
django.setup()
from django.core.management import call_command
from django.urls import reverse
call_command("check", fail_level="ERROR")
print(*(reverse(f"horizon:{name}:overview:index") for name in ("sluice", "sluice_project")))
"""
#: Reads from an address where nobody listens.
_REGISTER_IN_SPARK: Final = """\
import sys
from pyspark.sql import SparkSession
from sluice_spark import register
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
register(spark)
try:
    spark.read.format("sluice").options(url=sys.argv[1], token="t").load("c")
except Exception as error:
    print(error)
spark.stop()
"""
#: Asks for a key where no key manager is.
_ASK_KEY_MANAGER: Final = """\
import sys
from sluice_filters.encryption.keys.castellan import CastellanKeys
print(CastellanKeys(sys.argv[1]).read().problem)
"""


def explain(role: Role, servers: Servers) -> None:
    """The language."""
    assert "compression" in role.run("sluice-dsl", "explain", "FOR TENANT acme DO SET compression")


def make_keys(role: Role, servers: Servers) -> None:
    """Filters and their keys."""
    file = role.folder / "keys"
    role.run("sluice-keys", "--file", file, "init", "first")
    assert role.run("sluice-keys", "--file", file, "list").startswith("first ")
    assert "compression" in role.run("python", "-c", _LOAD_FILTERS).split()


def call_api(role: Role, servers: Servers) -> None:
    """The client alone, with a URL and a token."""
    with _api(role, servers) as (url, token):
        role.run("sluice", "--url", url, "--token-file", token, "tenant", "group", "create", "umbrellas")
        assert "umbrellas" in role.run("sluice", "--url", url, "--token-file", token, "tenant", "group", "list")


def call_openstack(role: Role, servers: Servers) -> None:
    """The same commands in ``openstack``."""
    with _api(role, servers) as (url, token):
        login = ("--os-auth-type", "none", "--os-endpoint", url, "--os-sluice-token-file", token)
        role.run("openstack", *login, "sluice", "tenant", "group", "create", "umbrellas")
        assert "umbrellas" in role.run("openstack", *login, "sluice", "tenant", "group", "list")
        assert "umbrellas" in role.run("sluice", "--url", url, "--token-file", token, "tenant", "group", "list")


@contextlib.contextmanager
def _api(role: Role, servers: Servers) -> Iterator[tuple[str, Path]]:
    """URL and token of an API of this clone."""
    token = role.folder / "token"
    token.touch(mode=0o600)
    token.write_text("a-token-of-this-test")
    with ApiServer(role.folder, servers.redis, token, prefix=f"p{free_port()}") as api:
        yield api.url, token


def mount(role: Role, servers: Servers) -> None:
    """Motifs in a file system."""
    source, mounted = role.folder / "source", role.folder / "mounted"
    source.mkdir()
    mounted.mkdir()
    (source / "a").write_text("words")
    with role.running("sluice-motif-fs", "mount", source, mounted) as daemon:
        daemon.wait_ready()
        assert mounted.is_mount()
        assert (mounted / "a").read_text() == "words"
    assert not mounted.is_mount()


def store_values(role: Role, servers: Servers) -> None:
    """Motifs in a key-value store: the program of their page."""
    page = (_CLONE / "docs" / "admin" / "motif-key-value.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found, "the page has no program"
    assert "fig" in role.run("python", "-c", found[1])


def check_dashboard(role: Role, servers: Servers) -> None:
    """The panels in Horizon, enabled as the page of the dashboard says."""
    (packages,) = role.folder.glob("lib/python3*/site-packages")
    local = packages / "openstack_dashboard" / "local"
    for folder in ("enabled", "local_settings.d"):
        for path in sorted((packages / "sluice_dashboard" / folder).glob("_6*.py")):
            shutil.copy2(path, local / folder)
    # else Horizon wants a client of memcached
    cache = 'CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}\n'
    (local / "local_settings.d" / "_9000_cache.py").write_text(cache)
    setting = "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'openstack_dashboard.settings'\n"
    said = role.run("python", "-c", setting + _CHECK_DASHBOARD).splitlines()
    assert "System check identified no issues" in said[-2], said
    assert said[-1] == "/sluice/ /sluice_project/"


def list_tempest_tests(role: Role, servers: Servers) -> None:
    """The plugin, which Tempest finds by its entry point, with its tests."""
    assert "sluice_tempest_plugin" in role.run("tempest", "list-plugins")


def register_in_spark(role: Role, servers: Servers) -> None:
    """The format in a session of Spark, which asks the address that it is told."""
    port = free_port()
    assert f"{port}" in role.run("python", "-c", _REGISTER_IN_SPARK, f"http://{HOST}:{port}/v1/AUTH_test")


def ask_key_manager(role: Role, servers: Servers) -> None:
    """Keys from a key manager, whose Keystone is away."""
    port = free_port()
    file = role.folder / "castellan.conf"
    file.touch(mode=0o600)
    file.write_text(
        f"[key_manager]\nbackend = barbican\nauth_type = keystone_password\nauth_url = http://{HOST}:{port}/v3\n"
        "username = sluice\npassword = secret\nproject_name = service\nuser_domain_name = Default\n"
        "project_domain_name = Default\n[barbican]\n"
        f"auth_endpoint = http://{HOST}:{port}/v3\n[sluice]\nactive = first\n"
        "keys = first:11111111-1111-1111-1111-111111111111\n"
    )
    assert f"http://{HOST}:{port}" in role.run("python", "-c", _ASK_KEY_MANAGER, file)
