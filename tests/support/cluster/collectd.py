"""CollectD as a child process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sluice_aio.base.server import Child
from sluice_aio.conf.collectd import PROGRAM, configuration, write_collectd


class CollectdDaemon:
    """One CollectD that sends the values of this machine as ``node``."""

    def __init__(
        self,
        folder: str | Path,
        node: str,
        amqp_url: str,
        interval: int = 10,
        links: Sequence[str] = (),
        tied: bool = False,
    ) -> None:
        self._folder = Path(folder)
        self._text = configuration(node, amqp_url, self._folder, interval, links)
        settings = self._folder / "collectd.conf"
        self._child = Child([PROGRAM, "-f", "-C", str(settings)], self._folder / "collectd.log", tied=tied)

    def start(self) -> None:
        """Start it; it connects with its first values."""
        write_collectd(self._folder, self._text)
        self._child.start()

    def stop(self) -> None:
        """Stop it."""
        self._child.stop()
