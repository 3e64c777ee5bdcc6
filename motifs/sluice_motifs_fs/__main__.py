"""``python -m sluice_motifs_fs``."""

from __future__ import annotations

import sys

from sluice_motifs_fs.cli import main

sys.exit(main())
