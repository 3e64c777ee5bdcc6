"""Every command by its words, which ``sluice``, ``openstack`` and the documentation are made of.

A new command is a class in a module of this package or one below it; ``make generate`` tells ``openstack`` of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import walk_packages
from typing import Final

from sluice_client.command_base.command import SluiceCommand

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)

#: ``policy list``, for ``sluice policy list`` and ``openstack sluice policy list``, → its class.
COMMANDS: Final[Mapping[str, type[SluiceCommand]]] = dict(sorted(SluiceCommand.by_words.items()))
#: Earlier words, of ``sluice`` alone; they are not in its help.
EARLIER: Final[Mapping[str, type[SluiceCommand]]] = SluiceCommand.by_earlier_words
