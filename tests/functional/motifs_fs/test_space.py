"""A mount keeps its items within the target size, which may be changed, and reports its state.

Tests docs/admin/motif-file-system.md.
"""

import json
import os
import time

import pytest

SPACE = "user.sluice.space"
SIZE = 100_000
COUNT = 20
ALL = COUNT * SIZE


def content(number):
    return bytes([number]) * SIZE


def fill(mount):
    """Items of as many sources."""
    for number in range(COUNT):
        (mount.path / f"source{number}").write_bytes(content(number))
        (mount.path / f"copy{number}").write_bytes(content(number))
        mount.attach(f"copy{number}", "concat", of=f"source{number}")


def space(mount):
    return json.loads(os.getxattr(mount.path, SPACE))


def settled(mount, **wanted):
    """The space as soon as it has the expected state."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = space(mount)
        if wanted.items() <= found.items():
            return found
        time.sleep(0.05)
    raise AssertionError(f"expected {wanted}, found {found}")


def expanded(mount):
    return [number for number in range(COUNT) if mount.state(f"copy{number}") == "expanded"]


def test_items_are_contracted_to_the_target_size(unmounted):
    mount = unmounted.start("--target-size", "500KB")
    fill(mount)
    settled(mount, state="kept", used=5 * SIZE)
    there = expanded(mount)
    assert (len(there), there[-1]) == (5, COUNT - 1)
    for number in range(COUNT):
        assert (mount.path / f"copy{number}").read_bytes() == content(number)


def test_a_target_is_changed_while_it_is_mounted_and_spare_space_is_filled(mount):
    fill(mount)
    assert settled(mount, used=ALL)["target"] is None
    (mount.path / "copy0").read_bytes()
    said = mount.run("space", mount.path, "--target-size", "500KB", "--policy", "lru")
    assert (said.returncode, said.stdout.splitlines()[:2]) == (0, ["target\t500000", "policy\tlru"])
    settled(mount, state="kept", used=5 * SIZE, contracted=15 * SIZE, items=5, contracted_items=15)
    assert expanded(mount) == [0, *range(COUNT - 4, COUNT)]
    os.setxattr(mount.path, SPACE, b'{"target_size": 1000000}')
    found = settled(mount, state="kept", used=9 * SIZE)
    assert (found["expansions"], found["misses"]) == (0, 0), "nobody waited for what was filled"
    assert {0, *range(COUNT - 4, COUNT)} < set(expanded(mount))
    assert mount.run("space", mount.path, "--target-size", "none").stdout.startswith("target\n")
    assert settled(mount, target=None)["used"] == 9 * SIZE


def test_reads_are_hits_or_misses(unmounted):
    mount = unmounted.start("--target-size", "500KB")
    fill(mount)
    settled(mount, state="kept", used=5 * SIZE)
    (mount.path / f"copy{COUNT - 1}").read_bytes()
    (mount.path / "copy0").read_bytes()
    found = settled(mount, hits=1, misses=1)
    assert (found["hit_rate"], found["expansions"]) == (0.5, 1)
    fields = dict(line.split("\t") for line in mount.run("space", mount.path).stdout.splitlines() if "\t" in line)
    assert (fields["hits"], fields["misses"], fields["hit_rate"]) == ("1", "1", "0.5")


def test_what_somebody_has_open_stays_until_it_is_closed(mount):
    fill(mount)
    settled(mount, used=ALL)
    with (mount.path / "copy0").open("rb") as file:
        mount.run("space", mount.path, "--target-size", "0")
        assert settled(mount, state="above", used=SIZE)["reason"] == "1 are open"
        assert file.read() == content(0)
    settled(mount, state="kept", used=0)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"5", "expected a JSON object with `target_size`, `policy`, or both"),
        (b"{", "the space is no JSON"),
        (b'{"size": 5}', "expected a JSON object with `target_size`, `policy`, or both"),
        (b'{"target_size": true}', "`target_size` is `True`, expected bytes, or null for no target"),
        (b'{"target_size": -1}', "size `-1` is negative, expected at least 0 bytes"),
        (b'{"policy": "lrru"}', "unknown replacement policy `lrru`, did you mean `lru`"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(mount, value, reason):
    before = space(mount)
    with pytest.raises(OSError, match="Invalid argument"):
        os.setxattr(mount.path, SPACE, value)
    assert os.getxattr(mount.path, "user.sluice.motif.reason").decode().startswith(reason)
    assert space(mount) == before


def test_only_the_top_of_a_mount_has_a_space(mount):
    (mount.path / "file").write_bytes(b"")
    assert SPACE in os.listxattr(mount.path)
    assert SPACE not in os.listxattr(mount.path / "file")
    with pytest.raises(OSError, match="No data available"):
        os.getxattr(mount.path / "file", SPACE)
    with pytest.raises(PermissionError):
        os.setxattr(mount.path / "file", SPACE, b"{}")
