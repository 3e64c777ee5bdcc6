"""Sluice's csv_select as a storlet: the native filter's own code, with the same output.

The code is a dependency beside this file, ``csv_select.zip``, which ``python -m sluice_filters.csv.bundle`` writes; it
needs only Python's standard library, and runs faster if pyarrow is installed.  Parameters: those of the native filter;
``select`` and ``range`` are the values of ``X-Csv-Select`` and ``X-Csv-Range``.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_CODE = Path(__file__).with_name("csv_select.zip")
_PIECE = 256 << 10
_TEXTS = ("columns", "where", "header", "delimiter", "quote")


class CsvSelect:
    """Returns some columns and rows of CSV."""

    def __init__(self, logger: Any) -> None:
        self.logger = logger
        if _CODE.exists() and str(_CODE) not in sys.path:
            sys.path.insert(0, str(_CODE))

    def __call__(self, in_files: Sequence[Any], out_files: Sequence[Any], params: Mapping[str, str]) -> None:
        """From the first input to the first output."""
        from sluice_filters.api import Hint
        from sluice_filters.csv import select

        given: dict[str, Any] = {name: params[name] for name in _TEXTS if params.get(name)}
        if params.get("multiline"):
            given["multiline"] = params["multiline"].lower() in ("true", "yes")
        asked = {
            name: params[short]
            for name, short in ((select.SELECT, "select"), (select.RANGE, "range"))
            if params.get(short)
        }
        source, target = in_files[0], out_files[0]
        stream = select.CsvSelect(given).reader(Hint(asked=asked))
        target.set_metadata(source.get_metadata())
        while piece := source.read(_PIECE):
            target.write(stream.feed(piece))  # also when done: the writer must not find a closed pipe
        target.write(stream.finish())
        target.close()
