"""``python -m sluice_actors``."""

import sys

from sluice_actors.cli import main

sys.exit(main())
