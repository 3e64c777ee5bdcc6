"""The targets are not an installed package: they are imported from this folder, as the runner does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
