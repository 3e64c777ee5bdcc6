"""The template `remote_copy` against a server that answers as Swift does; a real one is in the functional tests."""

import hashlib
import json

import pytest
from tests.support.controller.swift_code_store import fake_code_swift

from sluice_core.errors import NotFound, PeerError
from sluice_core.options import OptionError
from sluice_motifs.api import ExpansionError, NotContractible
from sluice_motifs.contraction.contractor import CONTRACTED
from sluice_motifs.contraction.preparation import TRUST
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.templates.registry import OPTIONS, load_templates, template_context
from sluice_motifs.testing.memory_shim import MemoryShim

CONTENT = b"what the item has\n" * 1000
DEFAULTS = {option.name: option.default for option in OPTIONS}


#: Two contents of the same MD5 (Wang and others, 2004): six bits differ.
ONE = bytes.fromhex(
    "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f89"
    "55ad340609f4b30283e488832571415a085125e8f7cdc99fd91dbdf280373c5b"
    "d8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0"
    "e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70"
)
OTHER = bytes(byte ^ (0x80 if place in (19, 45, 59, 83, 109, 123) else 0) for place, byte in enumerate(ONE))


def name_of(content):
    return f"/v1/AUTH_s/copies/{hashlib.sha256(content).hexdigest()}"


class Site:
    """A storage in memory, and another Swift that its configuration names."""

    def __init__(self, swift, folder):
        self.swift = swift
        self.folder = folder
        self.shim = MemoryShim(None)
        self.shim.put("item", CONTENT)
        self.copy_name = name_of(CONTENT)
        self.say_password("k")
        url = f"http://127.0.0.1:{swift.server_port}/auth/v1.0"
        (folder / "remotes").write_text(
            f"[cold]\nauth_url = {url}\nuser = s:s\npassword = cold-password\ncontainer = copies\n"
        )
        self.options = DEFAULTS | {
            "motif_remotes": str(folder / "remotes"),
            "motif_password_file": str(folder / "passwords"),
        }
        templates = load_templates(context=template_context(self.options))
        self.runtime = Runtime(self.shim, LocalLeases(), templates)

    def say_password(self, text):
        path = self.folder / "passwords.new"
        path.write_text(json.dumps({"passwords": {"cold-password": text}}))
        path.chmod(0o600)
        path.rename(self.folder / "passwords")

    def attach(self, name="item", remote="cold"):
        self.runtime.attach_motif(name, self.runtime.create_motif("remote_copy", {"remote": remote}))

    def read(self, name="item"):
        opened = self.runtime.notify_open(name)
        try:
            return b"".join(opened.read())
        finally:
            self.runtime.notify_close(opened)


@pytest.fixture
def site(tmp_path):
    with fake_code_swift() as swift:
        yield Site(swift, tmp_path)


def test_bytes_go_when_the_copy_is_there_and_come_back_from_it(site):
    site.attach()
    assert site.runtime.contract("item", TRUST) == CONTRACTED
    assert site.swift.objects == {site.copy_name: CONTENT}
    assert site.read() == CONTENT


def test_a_copy_that_is_up_to_date_is_not_written_again(site):
    site.attach()
    for _ in range(2):
        assert site.runtime.contract("item") == CONTRACTED
        site.runtime.expand("item")
    assert site.swift.puts == 1


@pytest.mark.parametrize("damaged", [CONTENT[:-1], CONTENT[::-1]], ids=["shorter", "other"])
def test_a_copy_that_is_damaged_is_written_again_before_bytes_go(site, damaged):
    site.attach()
    site.swift.objects[site.copy_name] = damaged
    assert site.runtime.contract("item") == CONTRACTED
    assert site.swift.objects == {site.copy_name: CONTENT}


def test_a_later_version_leaves_the_copy_of_the_one_before(site):
    """An older version of an object, or a copy of it, has kept its motif."""
    site.attach()
    site.runtime.contract("item")
    with site.runtime.copying("item", "older") as seen:
        site.shim.copy(seen, "older")
    site.shim.put("item", b"news")
    site.attach()
    site.runtime.contract("item")
    assert site.read("older") == CONTENT
    assert site.read() == b"news"


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (None, "does not give the copy: 404"),
        (b"x", "has 1 bytes, expected"),
        (CONTENT[::-1], "other bytes than those by which the copy is called"),
    ],
    ids=["gone", "shorter", "other"],
)
def test_a_copy_that_is_not_the_item_is_an_error(site, damaged, reason):
    site.attach()
    site.runtime.contract("item")
    del site.swift.objects[site.copy_name]
    if damaged is not None:
        site.swift.objects[site.copy_name] = damaged
    with pytest.raises(ExpansionError, match=reason):
        site.read()
    assert site.shim.view("item").contracted


def test_contents_of_the_same_md5_are_not_taken_for_each_other(site):
    assert hashlib.md5(ONE).digest() == hashlib.md5(OTHER).digest()
    for name, content in (("one", ONE), ("other", OTHER)):
        site.shim.put(name, content)
        site.attach(name)
        site.runtime.contract(name)
    assert (site.read("one"), site.read("other")) == (ONE, OTHER)
    site.swift.objects[name_of(ONE)] = OTHER
    site.runtime.expand("other")
    site.shim.put("one", ONE)
    site.attach("one")
    site.runtime.contract("one")
    with pytest.raises(ExpansionError, match="other bytes than those by which the copy is called"):
        site.read("one")


def test_an_item_that_is_damaged_itself_is_not_copied(site):
    site.attach()
    site.shim.own_bytes = lambda seen: iter([CONTENT[:100], CONTENT[100:-1] + b"!"])
    with pytest.raises(NotContractible, match="other bytes than it had"):
        site.runtime.contract("item")
    assert site.swift.objects == {}


def test_a_password_that_is_refused_keeps_the_bytes_and_is_not_said(site, caplog):
    site.say_password("swordfish")
    site.attach()
    with pytest.raises(NotContractible, match="gives `s:s` no token: 401") as raised:
        site.runtime.contract("item")
    assert "swordfish" not in str(raised.value) + caplog.text
    assert not site.shim.view("item").contracted


def test_a_remote_that_is_not_configured_is_named(site):
    with pytest.raises(NotFound, match="there is no remote `could`, did you mean `cold`"):
        site.attach(remote="could")


@pytest.mark.parametrize(
    ("changes", "text", "reason"),
    [
        ({"motif_remotes": "/nowhere"}, None, "option `motif_remotes`: cannot read `/nowhere`"),
        ({}, "no section = 1\n", "MissingSectionHeaderError"),
        ({}, "[a]\nauth_url = http://a/v3\nuser = u\ncontainer = c\n", r"\[a\]: option `password` is missing"),
        ({}, "[a]\nauth_url = x\nuser = u\ncontainer = c\npassword = p\n", "option `auth_url`: `x` is no URL"),
        ({}, "[a]\nauth_uri = http://a/v3\n", "did you mean `auth_url`"),
        ({"motif_url_hosts": "http://a"}, None, "option `motif_url_hosts`"),
        ({"motif_key_manager_conf": "/x"}, None, "expected one of them"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(site, changes, text, reason):
    if text is not None:
        (site.folder / "remotes").write_text(text)
    with pytest.raises(OptionError, match=reason):
        template_context(site.options | changes)


def test_without_a_file_of_passwords_that_is_said(site):
    remote = template_context(site.options | {"motif_password_file": ""}).remotes["cold"]
    with pytest.raises(PeerError, match="neither option `motif_password_file` nor `motif_key_manager_conf` is set"):
        remote.account.request("GET", "/x")
