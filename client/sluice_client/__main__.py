"""``python -m sluice_client`` is ``sluice``."""

import sys

from sluice_client.cli import main

sys.exit(main())
