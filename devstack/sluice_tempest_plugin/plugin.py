"""The interface of a Tempest plugin; Tempest finds this class by the entry point ``tempest.test_plugins``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tempest import config
from tempest.test_discover import plugins

from sluice_tempest_plugin import config as sluice_config


class SluiceTempestPlugin(plugins.TempestPlugin):
    """Tests, options and the service client."""

    def load_tests(self) -> tuple[str, str]:
        """Return the folder of the tests, and the top folder of their names."""
        package = Path(__file__).resolve().parent
        return str(package / "tests"), str(package.parent)

    def register_opts(self, conf: Any) -> None:
        """Add the options to ``conf``."""
        conf.register_opt(sluice_config.service_option, group="service_available")
        config.register_opt_group(conf, sluice_config.sluice_group, sluice_config.SluiceGroup)
        config.register_opt_group(conf, sluice_config.sluice_feature_group, sluice_config.SluiceFeaturesGroup)

    def get_opt_lists(self) -> list[tuple[str, list[Any]]]:
        """Return the same, for the sample of ``tempest.conf``."""
        return [
            ("service_available", [sluice_config.service_option]),
            (sluice_config.sluice_group.name, sluice_config.SluiceGroup),
            (sluice_config.sluice_feature_group.name, sluice_config.SluiceFeaturesGroup),
        ]

    def get_service_clients(self) -> list[dict[str, Any]]:
        """Return ``sluice.SluiceClient`` for every client manager."""
        return [
            {
                "name": "sluice",
                "service_version": "sluice.v1",
                "module_path": "sluice_tempest_plugin.services",
                "client_names": ["SluiceClient"],
                **config.service_client_config("sluice"),
            }
        ]
