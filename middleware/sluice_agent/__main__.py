"""``python -m sluice_agent``"""

import sys

from sluice_agent.cli import main

sys.exit(main())
