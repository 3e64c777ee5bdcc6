"""Passwords from a file and from a key manager."""

import json

import pytest
from castellan.common.objects.passphrase import Passphrase
from castellan.common.objects.symmetric_key import SymmetricKey
from castellan.tests.unit.key_manager.mock_key_manager import MockKeyManager

from sluice_core.errors import CallerError, PeerError
from sluice_filters.encryption.keys.castellan import CastellanPasswords
from sluice_filters.encryption.keys.options import open_passwords
from sluice_filters.key_ring import MissingKey

MANAGER = "castellan.tests.unit.key_manager.mock_key_manager.MockKeyManager"


def write(path, text, mode=0o600):
    new = path.with_suffix(".new")
    new.write_text(text)
    new.chmod(mode)
    new.rename(path)


def test_a_file_is_followed(tmp_path):
    path = tmp_path / "passwords"
    write(path, json.dumps({"passwords": {"site": "grüße"}}))
    passwords = open_passwords({"x_password_file": str(path)}, "x_")
    assert passwords("site") == "grüße"
    write(path, json.dumps({"passwords": {"site": "grüße", "other": "second"}}))
    assert passwords("other") == "second"


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        ('{"passwords": {"site": "swordfish"}}', 0o644, "readable or writable by others"),
        ('{"passwords": {"other": "swordfish"}}', 0o600, "no key `site` in password file"),
        ('{"passwords": {"site": 7, "x": "swordfish"}}', 0o600, 'expected `{"passwords"'),
        ("swordfish", 0o600, "not JSON"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_and_no_password(tmp_path, caplog, text, mode, reason):
    path = tmp_path / "passwords"
    write(path, text, mode)
    with pytest.raises(PeerError, match=reason) as raised:
        open_passwords({"x_password_file": str(path)}, "x_")("site")
    assert "swordfish" not in str(raised.value) + caplog.text


def test_one_source_is_expected():
    with pytest.raises(CallerError, match="`x_password_file` and `x_key_manager_conf`: expected one of them"):
        open_passwords({"x_password_file": "/a", "x_key_manager_conf": "/b"}, "x_")
    with pytest.raises(PeerError, match="neither option"):
        open_passwords({}, "x_")("site")


def test_a_key_manager_gives_passphrases_of_any_length_and_no_keys_are_needed(tmp_path):
    manager = MockKeyManager()
    found, wrong = manager.store("test", Passphrase("p4ss phrase")), manager.store("test", Passphrase(""))
    other = manager.store("test", SymmetricKey("AES", 256, bytes(32)))
    path = tmp_path / "castellan.conf"
    write(
        path,
        f"[key_manager]\nbackend = {MANAGER}\nauth_type = password\nusername = sluice\npassword = swordfish\n"
        f"[sluice]\nkeys = site:{found},empty:{wrong},key:{other}\n",
    )
    ring = CastellanPasswords(path, lambda conf: manager)
    assert ring.secret("site") == b"p4ss phrase"
    with pytest.raises(MissingKey, match="secret `empty` is no passphrase"):
        ring.secret("empty")
    assert "active" not in ring.problem
