"""Returns its input: the smallest storlet, in Python."""

from collections.abc import Mapping, Sequence
from typing import Any

_PIECE = 64 * 1024


class Identity:
    """Storlets makes one instance per run."""

    def __init__(self, logger: Any) -> None:
        self.logger = logger

    def __call__(self, in_files: Sequence[Any], out_files: Sequence[Any], params: Mapping[str, str]) -> None:
        """Copy the input to the output, for all parameters."""
        source, target = in_files[0], out_files[0]
        target.set_metadata(source.get_metadata())
        while data := source.read(_PIECE):
            target.write(data)
        target.close()
