"""Passphrases of volumes: the same from a key file and from a key manager, and from old root secrets as well."""

import dataclasses

import pytest
from castellan.common.objects.symmetric_key import SymmetricKey
from castellan.tests.unit.key_manager.mock_key_manager import MockKeyManager

from sluice_controller.config import Config
from sluice_controller.volumes.encryption import active_key, passphrase
from sluice_core.errors import PeerError
from sluice_filters.encryption.keys.key_file import SECRET_SIZE, render_ring
from sluice_filters.encryption.keys.ring import Ring

VOLUME = "5c0f7a52-8d2b-4a5e-9a43-0d2a6c1f7e11"
SECRETS = {"2025": b"1" * SECRET_SIZE, "2026": b"2" * SECRET_SIZE}
CONF = """\
[key_manager]
backend = castellan.tests.unit.key_manager.mock_key_manager.MockKeyManager
auth_type = password
username = sluice
password = swordfish
[sluice]
active = 2026
keys = 2025:id-of-2025,2026:id-of-2026
"""


@pytest.fixture
def write(tmp_path):
    """A function that writes a file that only its owner may read, and returns its path."""

    def written(name, data):
        path = tmp_path / name
        path.touch(mode=0o600)
        path.write_bytes(data)
        return str(path)

    return written


@pytest.fixture
def key_file(write):
    return lambda active: Config(volume_key_file=write(active, render_ring(Ring(active, SECRETS))))


def test_a_root_secret_that_is_no_longer_active_still_opens_its_volumes(key_file):
    before, after = key_file("2025"), key_file("2026")
    assert (active_key(before), active_key(after)) == ("2025", "2026")
    assert passphrase(after, "2025", VOLUME) == passphrase(before, "2025", VOLUME)
    assert passphrase(after, "2026", VOLUME) != passphrase(after, "2025", VOLUME)


def test_a_passphrase_is_of_one_volume_and_has_no_root_secret_in_it(key_file):
    config = key_file("2026")
    assert passphrase(config, "2026", VOLUME) != passphrase(config, "2026", VOLUME[::-1])
    assert SECRETS["2026"].hex() not in passphrase(config, "2026", VOLUME)


def test_a_key_manager_gives_the_same_passphrases_as_a_file_with_its_secrets(write, key_file, monkeypatch):
    def get(self, context, managed_object_id):
        return SymmetricKey("AES", 8 * SECRET_SIZE, SECRETS[managed_object_id.removeprefix("id-of-")])

    monkeypatch.setattr(MockKeyManager, "get", get)
    config = Config(volume_key_manager_conf=write("castellan.conf", CONF.encode()))
    assert active_key(config) == "2026"
    for key in SECRETS:
        assert passphrase(config, key, VOLUME) == passphrase(key_file("2026"), key, VOLUME)


def test_a_key_that_is_not_there_is_named_with_where_it_was_looked_for(key_file):
    config = key_file("2026")
    with pytest.raises(PeerError, match=f"volume `{VOLUME}` cannot be made now: no key `2027` in key file"):
        passphrase(config, "2027", VOLUME)


def test_a_file_and_a_key_manager_at_once_are_refused(key_file):
    config = dataclasses.replace(key_file("2026"), volume_key_manager_conf="/etc/castellan.conf")
    with pytest.raises(PeerError, match="`volume_key_file` and `volume_key_manager_conf`: expected one of them"):
        active_key(config)
