"""The distribution that this process comes from, and the one of a former name that must not be installed beside it.

Both have the same files.  So the second one that is installed overwrites the first one, and ``pip uninstall`` of either
deletes the files of both.  On PyPI ``sluice`` is a tool for ZFS snapshots; it has none of Sluice's packages and may
stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata
from typing import Final

from sluice_core.errors import SluiceError

DISTRIBUTION: Final = "openstack-sluice"
#: The name before 0.2.0.
FORMER: Final = "sluice"
#: A package of Sluice that every installation has.
_OURS: Final = "sluice_core"
#: A file that an installation writes; the ``egg-info`` of a source folder, which is not installed, has none.
_METADATA: Final = "METADATA"


class TwoDistributions(SluiceError):
    """The distribution is installed under both of its names."""


def installed_version() -> str:
    """The version of the distribution, or a text that says that it is not installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "without an installation"


def refuse_two_distributions(path: Iterable[str] | None = None) -> None:
    """Refuse to start from an installation that has both names.

    :param path: folders of installed packages; by default those of this interpreter
    :raises TwoDistributions: naming both, and the commands to run
    """
    found = {name: _installed(name, path) for name in (FORMER, DISTRIBUTION)}
    former, present = found[FORMER], found[DISTRIBUTION]
    if former is None or present is None:
        return
    raise TwoDistributions(
        f"`{FORMER}` {former.version} and `{DISTRIBUTION}` {present.version} are both installed, with the same files; "
        f"expected `{DISTRIBUTION}` alone: run `pip uninstall {FORMER}`, which deletes these files, and then "
        f"`pip install --force-reinstall --no-deps {DISTRIBUTION}=={present.version}`"
    )


def _installed(name: str, path: Iterable[str] | None) -> metadata.Distribution | None:
    """Return the installed distribution of this name, if it is Sluice's."""
    given = {"name": name} if path is None else {"name": name, "path": list(path)}
    found = metadata.distributions(**given)
    return next((one for one in found if one.read_text(_METADATA) is not None and _is_ours(one)), None)


def _is_ours(distribution: metadata.Distribution) -> bool:
    """Whether it has Sluice's packages, or a program from one of them."""
    packages = (distribution.read_text("top_level.txt") or "").split()
    programs = distribution.entry_points.select(group="console_scripts")
    return _OURS in packages or any(one.name == "sluice-agent" and one.value.startswith("sluice_") for one in programs)
