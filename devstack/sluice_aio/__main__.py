"""``python -m sluice_aio`` is ``sluice-aio``."""

import sys

from sluice_aio.cli import main

if __name__ == "__main__":
    sys.exit(main())
