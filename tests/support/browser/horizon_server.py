"""A further Horizon beside a cluster's, before the same Keystone and API: another theme, or another environment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import free_port, probe
from sluice_aio.base.server import Server
from sluice_aio.conf import horizon
from sluice_aio.keystone import venv


class HorizonServer(Server):
    """Horizon with its settings in ``folder``; its ``layout`` is that of ``shared`` but for folder and port.

    :param python: of its environment; by default the launcher's, with the panels of this clone
    """

    name = "horizon"
    patience = 120.0

    def __init__(self, folder: Path, shared: Layout, theme: str = "default", python: Path | None = None) -> None:
        self.layout = replace(shared, folder=folder, ports={**shared.ports, "horizon": free_port()})
        super().__init__(self.layout.ports["horizon"], horizon.folder(self.layout), tied=True)
        horizon.write_horizon(self.layout, panels=python is None, theme=theme)
        if python is None:
            self._command = horizon.command(self.layout, venv.python(service="horizon"))
        else:
            self._command = horizon.command(self.layout, python, roots=())

    def argv(self) -> list[str]:
        return self._command

    def answers(self) -> bool:
        return probe(self.port, b"GET /auth/login/ HTTP/1.0\r\n\r\n")[9:12] == b"200"
