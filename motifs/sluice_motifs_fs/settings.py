"""The options of a mount's configuration file, declared once; the command line has what is of one mount."""

from __future__ import annotations

import os
from typing import Any, Final

from sluice_core.options import Option, OptionError, read_file
from sluice_motifs.space.keeper import SHARE
from sluice_motifs.templates import options

SECTION: Final = "motif-fs"
OPTIONS: Final = (
    Option(
        "reexpansion_share",
        SHARE,
        "part of all seconds that a mount may take to make again what it contracted minutes before; "
        "one whose target would need more stays larger; inf: its target is kept whatever that costs",
    ),
    *options.OPTIONS,
)
#: Files that are read anew while a mount goes on, which works in the folder that it shows.
_FOLLOWED: Final = ("motif_password_file", "motif_key_manager_conf")


def defaults() -> dict[str, Any]:
    """The options of a mount without a file."""
    return {option.name: option.default for option in OPTIONS}


def read_settings(path: str) -> dict[str, Any]:
    """The options of ``[motif-fs]`` in the file at ``path``.

    :raises OptionError: when it cannot be read or an option in it cannot be used
    """
    values = read_file(OPTIONS, path, SECTION)
    if not values["reexpansion_share"] > 0:
        raise OptionError(f"option `reexpansion_share` is `{values['reexpansion_share']}`, expected more than 0")
    for name in _FOLLOWED:
        values[name] = values[name] and os.path.abspath(values[name])
    return values
