"""``python -m sluice_dsl`` is ``sluice-dsl``."""

import sys

from sluice_dsl.cli import main

sys.exit(main())
