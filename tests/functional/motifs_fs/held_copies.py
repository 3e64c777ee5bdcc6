"""A template that makes half of an item, and the rest when a test lets it."""

import time
from pathlib import Path

from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_motifs.api import Source, Template


class HeldCopy(Template):
    """Copies its source; while the file ``hold`` is in its folder, it stops before the last half.

    It appends a letter to the file ``begun`` in its folder each time it reaches that point.
    """

    info = ActionInfo(
        "held_copy",
        MOTIF,
        "a copy that can be held up",
        (Parameter("of", "str", "source", required=True), Parameter("folder", "str", "a folder", required=True)),
    )

    def sources(self, item):
        return [Source(str(self.params["of"]))]

    def expand(self, call):
        folder = Path(str(self.params["folder"]))
        content = b"".join(call.read(str(self.params["of"])))
        half = len(content) // 2
        yield content[:half]
        with (folder / "begun").open("a") as begun:
            begun.write("x")
        while (folder / "hold").exists():
            call.check()
            time.sleep(0.01)
        yield content[half:]
