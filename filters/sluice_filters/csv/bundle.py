"""``python -m sluice_filters.csv.bundle csv_select.zip``: the code of csv_select for hosts without Sluice.

Python imports from the archive directly.  The code needs only the standard library; the vectorised engine is included
and is used if pyarrow is installed.  The same code gives the same bytes.
"""

from __future__ import annotations

import io
import sys
import zipfile
from importlib import resources
from pathlib import Path
from typing import Final

_MODULES: Final = {
    "sluice_core": ("__init__", "describe", "errors", "messages/__init__", "messages/predicate"),
    "sluice_filters": (
        *("__init__", "api", "key_ring", "stream", "visits"),
        *("csv/__init__", "csv/arrow", "csv/arrow_where", "csv/dialect", "csv/language", "csv/mask"),
        *("csv/parser", "csv/plain", "csv/query", "csv/select", "csv/stream"),
    ),
}
#: The earliest timestamp of a zip archive.
_TIME: Final = (1980, 1, 1, 0, 0, 0)


def bundle() -> bytes:
    """The archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for package, modules in _MODULES.items():
            for module in modules:
                name = f"{module}.py"
                code = resources.files(package).joinpath(name).read_bytes()
                archive.writestr(zipfile.ZipInfo(f"{package}/{name}", _TIME), code, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def main() -> int:
    """Write the archive to the file on the command line."""
    if len(sys.argv) != 2:
        print("usage: python -m sluice_filters.csv.bundle FILE", file=sys.stderr)
        return 2
    Path(sys.argv[1]).write_bytes(bundle())
    return 0


if __name__ == "__main__":
    sys.exit(main())
