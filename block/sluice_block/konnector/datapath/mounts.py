"""What is mounted where; whoever serves it is not asked, and so not waited for."""

from __future__ import annotations

from pathlib import Path

from sluice_block.konnector.datapath import processes


def is_mounted(place: Path) -> bool:
    """Whether something is mounted at ``place`` (proc(5): field 5 of mountinfo)."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    wanted = str(place).replace(" ", "\\040")
    return any(line.split(" ")[4] == wanted for line in lines)


def unmount(place: Path) -> None:
    """Undo a mount at ``place``, if there is one.

    :raises PeerError: when somebody uses it
    """
    if is_mounted(place):
        processes.run(["umount", str(place)], f"`{place}` stays mounted")
