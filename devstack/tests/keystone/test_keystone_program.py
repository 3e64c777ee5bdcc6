"""The program's additions to Keystone's own application."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from types import ModuleType, SimpleNamespace

import pytest

from sluice_aio.keystone.keystone_program import EMPTY, create_tables, one_writer


def test_requests_that_may_write_take_turns_and_readers_do_not_wait():
    inside, leave = threading.Event(), threading.Event()
    order = []

    def application(environ, start_response):
        if environ["NAME"] == "first writer":
            inside.set()
            leave.wait(30)
        order.append(environ["NAME"])
        return [environ["NAME"].encode()]

    served = one_writer(application)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(served, {"REQUEST_METHOD": "DELETE", "NAME": "first writer"}, None)
        inside.wait(30)
        second = pool.submit(served, {"REQUEST_METHOD": "POST", "NAME": "second writer"}, None)
        assert served({"REQUEST_METHOD": "GET", "NAME": "reader"}, None) == [b"reader"]
        leave.set()
        assert (first.result(30), second.result(30)) == ([b"first writer"], [b"second writer"])
    assert order == ["reader", "first writer", "second writer"]


@pytest.fixture
def migrations(tmp_path, monkeypatch):
    """Keystone's migrations append a line to the database ``keystone.db``."""
    upgrades = ModuleType("keystone.common.sql")

    def migrate(version):
        with open(tmp_path / "keystone.db", "a", encoding="ascii") as database:
            database.write("migrated\n")

    upgrades.upgrades = SimpleNamespace(offline_sync_database_to_version=migrate)
    for name in ("keystone", "keystone.common"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "keystone.common.sql", upgrades)
    monkeypatch.setattr(metadata, "version", lambda name: "30.0.0")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path / "keystone.db"


def test_a_new_database_is_a_copy_of_the_first_one(migrations, tmp_path):
    create_tables(migrations)
    empty = tmp_path / EMPTY.format(version="30.0.0")
    assert empty.read_text(encoding="ascii") == "migrated\n"
    assert empty.stat().st_mode & 0o777 == 0o644
    create_tables(tmp_path / "another.db")
    assert (tmp_path / "another.db").read_text(encoding="ascii") == "migrated\n"


def test_a_database_with_projects_is_migrated_and_neither_replaced_nor_copied(migrations, tmp_path):
    migrations.write_text("acme\n", encoding="ascii")
    create_tables(migrations)
    assert migrations.read_text(encoding="ascii") == "acme\nmigrated\n"
    assert not (tmp_path / EMPTY.format(version="30.0.0")).exists()
    (tmp_path / EMPTY.format(version="30.0.0")).write_text("", encoding="ascii")
    create_tables(migrations)
    assert migrations.read_text(encoding="ascii") == "acme\nmigrated\nmigrated\n"
