"""Third-party plugins, by entry point: an unusable plugin is reported and left out.

So a broken package does not keep Swift, an agent or the API from starting.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from sluice_core.process.entry_points import installed_entry_points

T = TypeVar("T")

_log = logging.getLogger(__name__)


def load_plugins(
    group: str,
    built_in: Iterable[type[T]],
    name_of: Callable[[type[T]], str],
    unfit: Callable[[object], str],
    failures: dict[str, str] | None = None,
) -> dict[str, type[T]]:
    """Return every usable class by its name: built-in ones first, then those of the entry point ``group``.

    :param unfit: returns why a loaded object cannot be used; empty when it can
    :param failures: receives the reason of each plugin that was left out, by the entry point's name
    """
    plugins = {name_of(one): one for one in built_in}
    for entry in installed_entry_points(group):
        try:
            plugin = entry.load()
            reason = unfit(plugin)
            if not reason and plugins.get(name_of(plugin), plugin) is not plugin:
                reason = f"name `{name_of(plugin)}` is taken"
        except Exception as error:  # noqa: BLE001  a stranger's import may raise anything; it is reported
            reason = f"{type(error).__name__}: {error}"
        if not reason:
            plugins[name_of(plugin)] = plugin
            continue
        _log.warning("plugin `%s` (%s) of `%s` is left out: %s", entry.name, entry.value, group, reason)
        if failures is not None:
            failures[entry.name] = reason
    return plugins
