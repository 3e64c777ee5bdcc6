"""``python -m sluice_controller`` runs ``sluice-api``."""

import sys

from sluice_controller.app.cli import main

sys.exit(main())
