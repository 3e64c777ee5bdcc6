"""Django's settings, for what translates and makes forms; those of the API do, beside whose tests these may run."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sluice_controller.app.settings")
