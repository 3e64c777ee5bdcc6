"""The Django application, which only registers checks."""

from __future__ import annotations

from django.apps import AppConfig


class ControllerConfig(AppConfig):
    """Registers the system checks and the schema of Sluice's authentication."""

    name = "sluice_controller"

    def ready(self) -> None:
        """Called by Django once all applications are loaded."""
        from sluice_controller.api import openapi  # noqa: F401  (importing registers them)
        from sluice_controller.app import checks  # noqa: F401
