"""A mount keeps its items within the target size."""

import time

SIZE = 100_000
COUNT = 20


def test_items_are_contracted_to_the_target_size(unmounted):
    mount = unmounted.start("--target-size", "500KB")
    for number in range(COUNT):
        content = bytes([number]) * SIZE
        (mount.path / f"source{number}").write_bytes(content)
        (mount.path / f"copy{number}").write_bytes(content)
        mount.attach(f"copy{number}", "concat", of=f"source{number}")
    expanded = COUNT
    end = time.monotonic() + 30
    while expanded > 5 and time.monotonic() < end:
        expanded = [mount.state(f"copy{number}") for number in range(COUNT)].count("expanded")
        time.sleep(0.05)
    assert expanded == 5
    assert mount.state(f"copy{COUNT - 1}") == "expanded"
    for number in range(COUNT):
        assert (mount.path / f"copy{number}").read_bytes() == bytes([number]) * SIZE
