"""``python -m sluice_controller`` is ``sluice-api``."""

import sys

from sluice_controller.app.cli import main

sys.exit(main())
